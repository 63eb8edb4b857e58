"""What decides the proof of a row, as a SHA-256: a row whose digest is the one that was kept need not be proven again."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from rosetta.catalog import Row
from rosetta.paths import ROOT
from rosetta.plan import content
from rosetta.records import Gpu
from rosetta.run.kernels import Kernels
from rosetta.tasks import Task

_sha256 = cache(content)
FETCHING = "common/data/download.py"  # it decides nothing: what is downloaded has a SHA-256 of its own
IMPORT = re.compile(r"^\s*(?:from|import) ((?:common|rosetta\.verify)\b[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)


def of(row: Row, task: Task, kernels: Kernels, synthetic: bool, gpus: Sequence[Gpu] = ()) -> str:
    """Over the notebook's code, the row's parameters, what its task says of the proof, the modules of ``common`` that notebook and
    reference import, the reference's text if it has one, the environment's recipe and lock (or the interpreter that the user
    named), whether data is synthetic, and what proves its kind.
    """
    code = _code(row.notebook)
    roots = [f"common/params/{task.key}.py", f"common/reference/{task.key}.py", f"rosetta/verify/{task.kind_name}.py"]
    text = f"common/reference/{task.key}.txt"  # that a reference may train on
    files = _closure([*roots, *([text] if (ROOT / text).is_file() else []), *_imported(code)])
    looser = {quantity: looser.tolerance for quantity, looser in row.facts.looser.items()}
    of_row = [row.parameters, row.variables, row.facts.flavour, looser, row.facts.slow_on_cpu is None]
    lacking = row.facts.lacking(gpu=bool(gpus))
    if lacking or row.facts.zoo:  # of tasks of several networks alone
        of_row.append([sorted(lacking), row.facts.zoo])
    decisive = [
        code,
        of_row,
        task.without_chance,
        task.tolerances,
        synthetic,
        kernels.fingerprint(row, gpus),
        {file: _sha256(ROOT / file) for file in files},
    ]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def _code(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def _closure(roots: list[str]) -> list[str]:
    """The files, and those of ``common`` and the verifier that they import, directly or not."""
    files, waiting = set(), list(roots)
    while waiting:
        file = waiting.pop()
        if file not in files and file != FETCHING:
            files.add(file)
            waiting += _imported(_text(file))
    return sorted(files)


def _imported(text: str) -> Iterator[str]:
    """The files of the modules that a text imports from ``common`` or the verifier."""
    for module, names in IMPORT.findall(text):
        base = module.replace(".", "/")
        paths = [f"{base}/{name.strip()}.py" for name in names.split(",")] + [f"{base}.py", f"{base}/__init__.py"]
        yield from (path for path in paths if (ROOT / path).is_file())


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")
