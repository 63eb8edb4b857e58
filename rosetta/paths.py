"""Where things lie in the repository, and how a path is told to others."""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = "ROSETTA_DATA"  # the variable that names the folder of the data
SYNTHETIC = "synthetic"  # its word for generated data
CACHE = "XDG_CACHE_HOME"  # the variable that names the folder into which data is downloaded

# Around a path that is replaced: neither a longer name nor a longer path.
# ``file://`` or a terminal's colour may stand before it
BEFORE = r"(?:(?<![\w.~+@%-])(?<!(?<!:/)/)|(?P<colour>\x1b\[[\d;]*m))"
AFTER = r"(?![\w+@%=~-]|\.\w)"


def _below(name: str) -> property:
    """A path below the root of a checkout, wherever that is."""
    return property(lambda checkout: checkout.root / name)


@dataclass
class Checkout:
    """The folders of a copy of the repository."""

    root: Path

    common = _below("common")
    notebooks = _below("notebooks")
    environments = _below("environments")
    docs = _below("docs")
    programs = _below("programs")
    catalog = _below("catalog.toml")
    results = _below("results")  # committed: written only where a command names it
    runs = _below("runs")  # of the user's own commands; git ignores it
    kernels = _below(".jupyter")  # of JupyterLab: made anew each time, and JUPYTER_PATH leads there
    site = _below("site")  # below it a page of the site is named by its own address

    def overview(self, results: Path) -> Path:
        """The first page of a folder of results; that of the committed ones is at the root."""
        return (self.root if results == self.results else results) / "results.md"

    @property
    def git(self) -> tuple[str, ...]:
        """Calls git on this checkout alone: a copy without a repository of its own may lie in another one."""
        return "git", "-C", str(self.root), f"--git-dir={self.root / '.git'}", f"--work-tree={self.root}"


checkout = Checkout(Path(__file__).resolve().parent.parent)  # the one that this program works in


def portable(text: str) -> str:
    """A text without the paths of this machine: the repository becomes ``.``, the home folder ``~``, a folder of data
    the variable that names it. A folder is replaced only as a whole, where a path begins with it."""
    names, pattern = _names(checkout.root, os.path.expanduser("~"), os.environ.get(DATA), os.environ.get(CACHE))
    return pattern.sub(lambda match: (match["colour"] or "") + names[match["folder"]], text) if names else text


@cache
def _names(root: Path, home: str, data: str | None, cache: str | None) -> tuple[dict[str, str], re.Pattern]:
    """What the folders of this machine are called in a text, by their paths; of two that fit, the first counts."""
    names: dict[str, str] = {}
    for name, folder in {".": root, "~": home, f"${DATA}": data, f"${CACHE}": cache}.items():
        if folder and folder != SYNTHETIC:
            path = os.path.abspath(os.path.expanduser(folder))
            names |= {path: name, os.path.realpath(path): name}
    names.pop("/", None)
    return names, re.compile(f"{BEFORE}(?P<folder>{'|'.join(map(re.escape, names))}){AFTER}")


def from_root(path: Path) -> str:
    """A path as records and tables name it: from the repository's root where it lies below it."""
    return path.relative_to(checkout.root).as_posix() if path.is_relative_to(checkout.root) else str(path)
