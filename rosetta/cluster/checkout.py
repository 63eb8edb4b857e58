"""What is checked out, as digests: two checkouts with equal ones run the same thing the same way."""

from rosetta import files
from rosetta.paths import COMMON, ENVIRONMENTS, NOTEBOOKS, ROOT

RECIPES = (".toml", ".in", ".txt", ".py")  # what decides an environment, unlike what is installed beside it


def contents() -> dict[str, str]:
    """SHA-256 of each part that decides what a run does, by its name."""
    parts = {
        "notebooks": (file for file in NOTEBOOKS.glob("*/*") if file.suffix in (".ipynb", ".toml")),
        "common": COMMON.rglob("*.py"),
        "environments": (file for file in ENVIRONMENTS.glob("*/*") if file.suffix in RECIPES),
        "rosetta": (ROOT / "rosetta").rglob("*.py"),
    }
    return {name: files.digest(part, ROOT) for name, part in parts.items()}
