"""Is this the same experiment? What decides the outcome of a run or of a proof, as SHA-256."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from rosetta.paths import ROOT

FETCHING = "common/data/download.py"  # it decides nothing: what is downloaded has a SHA-256 of its own
IMPORT = re.compile(r"^\s*(?:from|import) ((?:common|rosetta\.verify)\b[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)

Read = Callable[[Path], bytes]  # reads a file; one that remembers, where many runs are looked at


def content(file: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def code(notebook: Path, read: Read = Path.read_bytes) -> str:
    """The cells of code of a notebook: without its texts, outputs and metadata."""
    cells = json.loads(read(notebook).decode("utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def sources(text: str, *others: str, read: Read = Path.read_bytes) -> dict[str, str]:
    """The SHA-256 of the files of ``common`` and of the verifier that a text imports, directly or not, by their paths.

    others: paths from the repository's root of files that count as well, with what they import.
    """
    found: dict[str, str] = {}
    waiting = [*others, *_imported(text)]
    while waiting:
        file = waiting.pop()
        if file not in found and file != FETCHING:
            held = read(ROOT / file)
            found[file] = hashlib.sha256(held).hexdigest()
            waiting += _imported(held.decode("utf-8"))
    return {file: found[file] for file in sorted(found)}


def _imported(text: str) -> Iterator[str]:
    """The files of the modules that a text imports."""
    for module, names in IMPORT.findall(text):
        base = module.replace(".", "/")
        paths = [f"{base}/{name.strip()}.py" for name in names.split(",")] + [f"{base}.py", f"{base}/__init__.py"]
        yield from (path for path in paths if (ROOT / path).is_file())
