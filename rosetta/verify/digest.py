"""What decides the proof of a row, as a SHA-256: a row whose digest is the one that was kept need not be proven again."""

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rosetta import identity
from rosetta.catalog import Row
from rosetta.paths import ROOT
from rosetta.records import Gpu
from rosetta.run.kernels import Kernels
from rosetta.tasks import Task

_read = cache(Path.read_bytes)


def of(row: Row, task: Task, kernels: Kernels, synthetic: bool, gpus: Sequence[Gpu] = ()) -> str:
    """Over the notebook's code, the row's parameters, what its task says of the proof, the modules of ``common`` that notebook and
    reference import, the reference's text if it has one, the environment's recipe and lock (or the interpreter that the user
    named), whether data is synthetic, and what proves its kind.
    """
    code = identity.code(row.notebook)
    roots = [f"common/params/{task.key}.py", f"common/reference/{task.key}.py", f"rosetta/verify/{task.kind_name}.py"]
    text = f"common/reference/{task.key}.txt"  # that a reference may train on
    roots += [text] if (ROOT / text).is_file() else []
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
        identity.sources(code, *roots, read=_read),
    ]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
