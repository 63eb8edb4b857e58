"""Where things lie in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMON = ROOT / "common"
NOTEBOOKS = ROOT / "notebooks"
ENVIRONMENTS = ROOT / "environments"
RESULTS = ROOT / "results"
CATALOG = ROOT / "catalog.toml"
DATA, SYNTHETIC = (
    "ROSETTA_DATA",
    "synthetic",
)  # the variable that names the folder of the data, its word for generated data


def portable(text: str) -> str:
    """A text without the paths of this machine: the repository becomes ``.``, the home folder ``~``."""
    return text.replace(str(ROOT), ".").replace(str(Path.home()) + "/", "~/")


def from_root(path: Path) -> str:
    """A path as records and tables name it: from the repository's root where it lies below it."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
