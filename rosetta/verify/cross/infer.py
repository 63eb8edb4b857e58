"""Rows that infer: each computes the same inputs with the same weights, and what they find is compared, pair by pair."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rosetta import markdown
from rosetta.catalog import Row
from rosetta.files import Strict
from rosetta.records import Commit, Machine
from rosetta.verify.forward import TOLERANCES
from rosetta.verify.infer import Reference
from rosetta.verify.probes import Bench, Outputs, from_weights

TOLERANCE, TIE = TOLERANCES["output"], 1e-4  # of two outputs; of the distances to the two nearest inputs, relative
SIZES = ("N_INPUTS", "BATCHSIZE")
INPUTS = {"N_INPUTS": 40}  # with a short last batch, and enough of them to be near to each other


class Agreement(Strict):
    """apart[i][j]: the largest difference of an input's output between rows i and j, by the mean norm of row i's outputs.

    others[i][j]: of how many inputs another input is the nearest one in row j than in row i, ties aside. ties[i]: how many of row
    i's inputs have two that are as near. own: parameters of the user by which rows make their inputs themselves; what they then
    compute differs by their ways to do so. None: that run failed.
    """

    made: datetime
    commit: Commit
    machine: Machine
    own: list[str]
    inputs: int | None
    rows: list[str]
    apart: list[list[float | None]]
    others: list[list[int | None]]
    ties: list[int | None]
    errors: list[str] = []

    @property
    def passed(self) -> bool:
        """Every input has the same nearest one for all rows, ties aside; given inputs have the same outputs, too."""
        if any(None in line for line in self.apart) or any(map(any, self.others)):
            return False
        return bool(self.own) or max(map(max, self.apart)) <= TOLERANCE

    def section(self, titles: dict[str, str]) -> list[str]:
        """A section of the conformance page. titles: of the rows, by name."""
        names, others = [titles.get(name, name) for name in self.rows], self.others
        body = [
            [name, *("failed" if cell is None else f"{cell:.0e}" for cell in line), _most(other), _count(ties)]
            for name, line, other, ties in zip(names, self.apart, others, self.ties)
        ]
        verdict = "All agree" if self.passed else "**They do not agree**"
        made_by = (
            f"each framework makes itself of the same {', '.join(map(markdown.code, self.own))}. They differ by how it does so. "
            f"So only the nearest ones are judged"
            if self.own
            else f"all frameworks share. Allowed is {TOLERANCE:g}"
        )
        text = (
            f"All rows have the same weights, and compute {self.inputs or 'no'} inputs, which {made_by}. A figure compares two "
            "rows: it is the largest difference of an input's output, divided by the mean norm of the outputs. Every row also "
            "finds the nearest other input of each input, by the distance of their outputs. *Another nearest* counts inputs "
            "for which some row finds another one than the row of the line. *Ties* are inputs with two nearest ones, whose "
            f"distances differ by less than {TIE:g}, relative: they are not counted. {verdict}. "
            f"{self.machine.name}, {self.made:%Y-%m-%d}, commit {self.commit}."
        )
        heading = f"## The same outputs{', ' + ', '.join(self.own) if self.own else ''}"
        table = markdown.table(["", *names, "another nearest", "ties"], body)
        return [heading, text, table, *map(markdown.escape, self.errors)]


def same_network(one: Reference, other: Reference) -> bool:
    """Whether both flavours compute the same outputs from the same weights: they differ in nothing but what is superfluous."""
    weights, x = one.network.initial_weights(seed=1), one.network.inputs(1, one.synthetic)
    if {name: w.shape for name, w in weights.items()} != {
        name: w.shape for name, w in other.network.initial_weights(seed=1).items()
    }:
        return False
    ones, others = (reference.network.outputs(weights, x.astype(np.float64)) for reference in (one, other))
    return np.allclose(ones, others, rtol=0, atol=1e-9 * np.abs(ones).max())


def make(
    rows: list[Row], reference: Reference, bench: Bench, note: Callable[[str], None], given: dict[str, Any]
) -> Agreement:
    """Let every row compute its outputs from the reference's weights, and compare them. ``note``: called as each run ends."""
    found: list[np.ndarray | None] = [None] * len(rows)
    agreement = Agreement(
        made=datetime.now(UTC).replace(microsecond=0),
        commit=Commit(),
        machine=bench.workers.slots[0].machine,
        own=[name for name in given if name not in SIZES],
        inputs=None,
        rows=[row.name for row in rows],
        apart=[[None] * len(rows) for _ in rows],
        others=[[None] * len(rows) for _ in rows],
        ties=[None] * len(rows),
    )
    start = {name: array.astype(np.float32) for name, array in reference.network.initial_weights(seed=1).items()}

    def run(number: int) -> tuple[int, Outputs]:
        return number, from_weights(
            bench.prober(rows[number], reference.task, reference.synthetic), start, INPUTS | given
        )

    for number, outputs in bench.workers.each(run, range(len(rows))):
        agreement.commit = outputs.record.commit
        error, flat = outputs.error, None
        if not error:
            flat = outputs.outputs.reshape(len(outputs.outputs), -1).astype(np.float64)
            agreement.inputs = agreement.inputs or len(flat)
            if len(flat) < 2:
                error = "a single input has no other one that is near"
            elif len(flat) != agreement.inputs:
                error = f"{len(flat)} inputs, where another row has {agreement.inputs}"
        if error:
            agreement.errors.append(f"{rows[number].name}: {error}")
            note(agreement.errors[-1])
            continue
        found[number] = flat
        note(f"{rows[number].name}: {len(flat)} inputs")
    _compare(agreement, found)
    return agreement


def _compare(agreement: Agreement, found: list[np.ndarray | None]) -> None:
    nearest = [None if each is None else _nearest(each) for each in found]
    for i, one in enumerate(found):
        if one is None:
            continue
        chosen, tied = nearest[i]
        agreement.ties[i] = int(tied.sum())
        for j, other in enumerate(found):
            if other is not None:
                norms = np.linalg.norm(one, axis=1)
                agreement.apart[i][j] = float(np.linalg.norm(one - other, axis=1).max() / norms.mean())
                agreement.others[i][j] = int((~tied & (chosen != nearest[j][0])).sum())


def _nearest(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each input the nearest other one, and whether a second one is as near."""
    distances = np.array([np.linalg.norm(outputs - each, axis=1) for each in outputs])
    np.fill_diagonal(distances, np.inf)
    first, second = np.sort(distances, axis=1)[:, :2].T
    return distances.argmin(axis=1), second - first < TIE * second


def _most(others: list[int | None]) -> str:
    return "" if None in others else str(max(others))


def _count(ties: int | None) -> str:
    return "" if ties is None else str(ties)
