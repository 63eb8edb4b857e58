"""Is this the same experiment? What decides the outcome of a run or of a proof, as SHA-256."""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from rosetta.catalog import Row
from rosetta.notebook import Read, code
from rosetta.paths import ROOT
from rosetta.tasks import Task

FETCHING = "common/data/download.py"  # it decides nothing: what is downloaded has a SHA-256 of its own
IMPORT = re.compile(r"^\s*(?:from|import) (common\b[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)


def content(file: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def sources(text: str, *others: str, read: Read = Path.read_bytes) -> dict[str, str]:
    """The SHA-256 of the files of ``common`` that a text imports, directly or not, by their paths.

    others: paths from the repository's root of files that count as well, with what they import.
    """
    digests: dict[str, str] = {}
    waiting = [*others, *_imported(text)]
    while waiting:
        file = waiting.pop()
        if file not in digests and file != FETCHING:
            content = read(ROOT / file)
            digests[file] = hashlib.sha256(content).hexdigest()
            waiting += _imported(content.decode("utf-8"))
    return dict(sorted(digests.items()))


def _imported(text: str) -> Iterator[str]:
    """The files of the modules that a text imports."""
    for module, names in IMPORT.findall(text):
        base = module.replace(".", "/")
        paths = [f"{base}/{name.strip()}.py" for name in names.split(",")] + [f"{base}.py", f"{base}/__init__.py"]
        yield from (path for path in paths if (ROOT / path).is_file())


def proof(row: Row, task: Task, number: int, environment: str, synthetic: bool, gpu: bool) -> str:
    """SHA-256 over what decides the proof of a row: one whose digest is the one that was kept need not be proven again.

    That is the notebook's code, the row's parameters and variables, what its task says of the proof, and the modules of
    ``common`` that notebook and reference import. number: ``PROOF`` of the kind. environment: fingerprint of its recipe and
    pins, or the interpreter that the user named. synthetic: whether data is generated. gpu: whether the proof's machine has one.
    """
    cells = code(row.notebook)
    roots = [f"common/params/{task.key}.py", f"common/reference/{task.key}.py"]
    text = f"common/reference/{task.key}.txt"  # that a reference may train on
    roots += [text] if (ROOT / text).is_file() else []
    looser = {quantity: looser.tolerance for quantity, looser in row.facts.looser.items()}
    of_row = [row.parameters, row.variables, row.facts.flavour, looser, row.facts.slow_on_cpu is None]
    lacking = row.facts.lacking(gpu)
    if lacking or row.facts.zoo:  # of tasks of several networks alone
        of_row.append([sorted(lacking), row.facts.zoo])
    decisive = [
        number,
        cells,
        of_row,
        task.without_chance,
        task.tolerances,
        synthetic,
        environment,
        sources(cells, *roots, read=_read),
    ]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


_read = cache(Path.read_bytes)
