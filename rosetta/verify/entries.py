"""Proves kind ``entries``: each cell of a notebook gives an answer, and the answer is NumPy's.

The run is given nothing but SAVE_TO, where it saves ``answers.npz`` (``common.answers.record_answers``). The reference of the task offers
``answers()``: by the entry's id an array, a number or a text; a tuple of them; or a function that is called with the answer and returns
in a few words what is wrong with it, None where nothing is: where the answer is random. Numbers of floating point are compared within
a tolerance; all else must be equal.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from common.answers import named
from rosetta import entries
from rosetta.catalog import Row
from rosetta.verify.proof import Finding, Judge, Outputs, Prober, Reference, cast, failed, tolerances

PROOF = 1  # raise it when a level asks for more: rows are proven again
LEVELS = {1: "answered", 2: "answers"}
COLUMNS = {1: (), 2: ("answer",)}
# Level 2: largest difference, relative to the answer's largest number where that is above 1
TOLERANCES = {"answer": 1e-5}


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    outputs = probe(reference.task.without_chance)
    if outputs.error:
        return [] if outputs.skipped else failed((1, 2), outputs.error), outputs
    wanted = reference.network.answers()
    first, second = Judge(1), Judge(2, tolerances(TOLERANCES, reference.task, row))
    found = entries.answers(row.notebook, reference.task)
    unknown = [name for name in found if name not in wanted]
    first.at_most("unknown", len(unknown), f"the reference has no {', '.join(unknown)}", tolerance=0)
    mine = {name: _answer(outputs.answers, answer.code) for name, answer in found.items() if name in wanted}
    missing = [name for name, answer in mine.items() if answer is None]
    first.at_most("missing", len(missing), f"no answer for {', '.join(missing)}", tolerance=0)
    if not mine:
        first.fail("the notebook answers nothing")
    wrong = []
    for name in mine.keys() - set(missing):
        wrong += [f"{name} {what}" for what in _wrong(mine[name], wanted[name], second)]
    if wrong:
        second.fail("; ".join(sorted(wrong)))
    return [first.finding, second.finding], outputs


def _answer(saved: dict[str, np.ndarray], code: str) -> np.ndarray | tuple[np.ndarray, ...] | None:
    """What the cell of this code has given."""
    name = named(code)
    if name in saved:
        return saved[name]
    return tuple(saved[part] for part in (f"{name}.{number}" for number in range(len(saved))) if part in saved) or None


def _wrong(mine: np.ndarray | tuple[np.ndarray, ...], wanted: Any | Callable, judge: Judge) -> Iterator[str]:
    """What is wrong with an answer, in words that follow its name. ``judge`` notes the largest difference."""
    if callable(wanted):
        answer = [cast(part) for part in mine] if isinstance(mine, tuple) else cast(mine)
        if trouble := wanted(answer):
            yield trouble
        return
    if isinstance(mine, tuple) != isinstance(wanted, tuple) or isinstance(wanted, tuple) and len(mine) != len(wanted):
        sizes = (len(one) if isinstance(one, tuple) else "one" for one in (mine, wanted))
        yield "is {} instead of {} values".format(*sizes)
        return
    for one, other in zip(mine, wanted) if isinstance(wanted, tuple) else [(mine, wanted)]:
        yield from _differs(one, np.asarray(other), judge)


def _differs(mine: np.ndarray, wanted: np.ndarray, judge: Judge) -> Iterator[str]:
    if mine.shape != wanted.shape:
        yield f"has the shape {mine.shape} instead of {wanted.shape}"
    elif wanted.dtype.kind != "f" or mine.dtype.kind != "f":
        if not np.array_equal(mine, wanted):
            yield f"is {mine.tolist()!s:.60} instead of {wanted.tolist()!s:.60}"
    elif wanted.size:
        difference = float(np.abs(cast(mine) - wanted).max() / max(np.abs(wanted).max(), 1.0))
        limit = judge.finding.tolerances["answer"] = judge.tolerances["answer"]
        judge.finding.measured["answer"] = max(judge.finding.measured.get("answer", 0.0), difference)
        if not difference <= limit:
            yield f"differs by {difference:.2g}"
