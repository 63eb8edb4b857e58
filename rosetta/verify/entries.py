"""Proves kind ``entries``: every entry is answered, and each answer is NumPy's.

The run is given nothing but SAVE_TO, where it saves ``answers.npz``: an array an entry (``common.weights.save_answers``).
The reference of the task offers ``answers()``: a dict of arrays, numbers and texts by the entries' names. Numbers of floating point are
compared within a tolerance; all else must be equal.
"""

import numpy as np

from rosetta.catalog import Row
from rosetta.verify.proof import Finding, Judge, Outputs, Prober, Reference, cast, failed, tolerances

__all__ = ["COLUMNS", "LEVELS", "PROOF", "TOLERANCES", "Reference", "judge"]

PROOF = 1  # raise it when a level asks for more: rows are proven again
LEVELS = {1: "answered", 2: "answers"}
COLUMNS = {1: (), 2: ("answer",)}
# Level 2: largest difference, relative to the answer's largest number where that is above 1
TOLERANCES = {"answer": 1e-5}


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    outputs = probe(reference.task.without_chance)
    if outputs.error:
        return [] if outputs.skipped else failed((1, 2), outputs.error), outputs
    mine, wanted = outputs.answers, {name: np.asarray(answer) for name, answer in reference.network.answers().items()}
    first, second = Judge(1), Judge(2, tolerances(TOLERANCES, reference.task, row))
    missing = [name for name in wanted if name not in mine]
    unknown = [name for name in mine if name not in wanted]
    first.at_most("missing", len(missing), f"no answer for {', '.join(missing)}", tolerance=0)
    first.at_most("unknown", len(unknown), f"the reference has no {', '.join(unknown)}", tolerance=0)
    for name in wanted:
        if name in mine:
            _compare(second, name, mine[name], wanted[name])
    return [first.finding, second.finding], outputs


def _compare(judge: Judge, name: str, mine: np.ndarray, wanted: np.ndarray) -> None:
    if mine.shape != wanted.shape:
        judge.fail(f"{name} has the shape {mine.shape} instead of {wanted.shape}")
    elif wanted.dtype.kind != "f" or mine.dtype.kind != "f":
        if not np.array_equal(mine, wanted):
            judge.fail(f"{name} is {mine.tolist()} instead of {wanted.tolist()}")
    elif wanted.size:
        difference = np.abs(cast(mine) - wanted).max() / max(np.abs(wanted).max(), 1.0)
        judge.at_most("answer", difference, f"{name} differs")
