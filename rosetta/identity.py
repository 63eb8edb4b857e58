"""Is this the same experiment? The only place that answers it: for ``resume``, ``verify``, measurements, results and stale marks."""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from rosetta import files
from rosetta.catalog import Row
from rosetta.notebook import Read, code
from rosetta.paths import checkout
from rosetta.records import Record
from rosetta.tasks import Task

FETCHING = "common/data/download.py"  # it decides nothing: what is downloaded has a SHA-256 of its own
IMPORT = re.compile(r"^\s*(?:from|import) (common\b[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)


def sources(text: str, *others: str, read: Read = files.read) -> dict[str, str]:
    """The SHA-256 of the files of ``common`` that a text imports, directly or not, by their paths.

    others: paths from the repository's root of files that count as well, with what they import.
    """
    digests: dict[str, str] = {}
    waiting = [*others, *_imported(text)]
    while waiting:
        file = waiting.pop()
        if file not in digests and file != FETCHING:
            content = read(checkout.root / file)
            digests[file] = hashlib.sha256(content).hexdigest()
            waiting += _imported(content.decode("utf-8"))
    return dict(sorted(digests.items()))


def _imported(text: str) -> Iterator[str]:
    """The files of the modules that a text imports."""
    for module, names in IMPORT.findall(text):
        base = module.replace(".", "/")
        paths = [f"{base}/{name.strip()}.py" for name in names.split(",")] + [f"{base}.py", f"{base}/__init__.py"]
        yield from (path for path in paths if (checkout.root / path).is_file())


def of_row(row: Row, read: Read = files.read) -> str:
    """SHA-256 of the code of a row's notebook, and of its program where a variant has one. Texts do not count."""
    return hashlib.sha256(_code(row, read).encode()).hexdigest()


def _code(row: Row, read: Read = files.read) -> str:
    """The code that decides a row: of its notebook and of its program."""
    return code(row.notebook, read) + (read(row.program).decode("utf-8") if row.program else "")


def is_todays(record: Record, row: Row) -> bool:
    """Whether a record is of the row's code as the checkout has it now."""
    return record.notebook.sha256 == of_row(row)


def conditions(record: Record) -> tuple:
    """What decides the outcome of a run, apart from the seed: runs with the same are one experiment."""
    params = {name: value for name, value in record.params.items() if name != "SEED"}
    return record.kind, *measured_with(record), json.dumps([params, record.cuda], sort_keys=True), record.threads


def measured_with(record: Record) -> tuple:
    """Notebook and versions: sessions of one row, machine and setting that share them are one measurement."""
    return record.notebook.sha256, json.dumps(record.versions, sort_keys=True)


def run(row: Row, parameters: dict[str, Any], environment: str, machine: str, read: Read = files.read) -> str:
    """SHA-256 over what decides the outcome of a run: the notebook's code, what it imports of ``common``, parameters, the row's
    variables, environment and machine.

    environment: fingerprint of its pins, or the interpreter that the user named. read: one that remembers, where the keys of
    many runs are wanted.
    """
    imported = sources(_code(row, read), read=read)
    decisive = [of_row(row, read), imported, parameters, row.variables, environment, machine]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def proof(row: Row, task: Task, number: int, environment: str, synthetic: bool, gpu: bool) -> str:
    """SHA-256 over what decides the proof of a row: one whose digest is the one that was kept need not be proven again.

    That is the code of the row, its parameters and variables, what its task says of the proof, and the modules of
    ``common`` that notebook and reference import. number: ``PROOF`` of the kind. environment: fingerprint of its recipe and
    pins, or the interpreter that the user named. synthetic: whether data is generated. gpu: whether the proof's machine has one.
    """
    cells = _code(row)
    roots = [f"common/params/{task.key}.py", f"common/reference/{task.key}.py"]
    text = f"common/reference/{task.key}.txt"  # that a reference may train on
    roots += [text] if (checkout.root / text).is_file() else []
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


_read = cache(files.read)
