"""Where everything is on the site. Addresses start at its root unless they are made ``relative`` to a page."""

import os
from pathlib import Path
from urllib.parse import quote

from rosetta import records
from rosetta.paths import NOTEBOOKS, RESULTS, ROOT
from rosetta.records import Record

RECORDS = "records"
CONFORMANCE = "docs/conformance.html"


def compare(task: str, names: list[str] | None = None, role: str | None = None) -> str:
    """The compare page, or these columns at one step of it."""
    chosen = "+".join(quote(name, safe="") for name in names or [])
    fragment = chosen + (f"/{role}" if role else "")
    return f"compare/{task}.html" + (f"#{fragment}" if fragment else "")


def concepts(task: str) -> str:
    return f"concepts/{task}.html"


def network(task: str) -> str:
    return f"network/{task}.html"


def framework(task: str, key: str) -> str:
    return f"frameworks/{task}/{key}.html"


def notebook(task: str, key: str) -> str:
    return f"notebooks/{task}/{key}.ipynb"


def code(task: str, key: str) -> str:
    """What the compare page loads of a program."""
    return f"code/{task}/{key}.js"


def record(one: Record, suffix: str = ".json") -> str:
    """A file of a run: its record, or the executed notebook."""
    return records.path(one, Path(RECORDS), suffix).as_posix()


def executed(one: Record) -> str | None:
    """The page of the executed notebook; None where the run has left none."""
    return record(one, ".html") if one.notebook.executed else None


def of_file(file: Path) -> str | None:
    """The page that a file of the repository became, from the root of the site; None for most."""
    fixed = {
        ROOT / "README.md": "index.html",
        ROOT / "results.md": "results.html",
        RESULTS / "conformance.md": "docs/conformance.html",
    }
    if file in fixed:
        return fixed[file]
    if file.suffix == ".md" and file.parent == ROOT / "docs":
        return network(file.stem) if is_definition(file) else f"docs/{file.stem}.html"
    if file.suffix == ".ipynb" and file.parent.parent == NOTEBOOKS:
        return framework(file.parent.name, file.stem)
    return None


def is_definition(document: Path) -> bool:
    """Whether a page of docs/ defines the network of a task: it has the task's name."""
    return (NOTEBOOKS / document.stem).is_dir()


def root(href: str) -> str:
    """The way from a page up to the root of the site."""
    return "../" * href.count("/")


def relative(target: str, href: str) -> str:
    """An address from the root of the site, as a page writes it."""
    path, mark, fragment = target.partition("#")
    return Path(os.path.relpath(path, Path(href).parent)).as_posix() + mark + fragment
