"""What is checked out, as digests: two checkouts with equal ones run the same thing the same way."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from rosetta.paths import COMMON, ENVIRONMENTS, NOTEBOOKS, ROOT

RECIPES = (".toml", ".in", ".txt", ".py")  # what decides an environment, unlike what is installed beside it


def contents() -> dict[str, str]:
    """SHA-256 of each part that decides what a run does, by its name."""
    return {
        "notebooks": _digest(file for file in NOTEBOOKS.glob("*/*") if file.suffix in (".ipynb", ".toml")),
        "common": _digest(COMMON.rglob("*.py")),
        "environments": _digest(file for file in ENVIRONMENTS.glob("*/*") if file.suffix in RECIPES),
        "rosetta": _digest((ROOT / "rosetta").rglob("*.py")),
    }


def difference(theirs: dict[str, str], ours: dict[str, str]) -> str | None:
    """In a line, in which parts this checkout is not the one of the batch; None where both are the same."""
    parts = " and ".join(f"{name}/" for name in theirs if ours.get(name) != theirs[name])
    if not parts:
        return None
    return f"its checkout has another {parts} than this one: bring both to one commit and start the worker anew"


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        content = hashlib.sha256(file.read_bytes()).digest()
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + content)
    return digest.hexdigest()
