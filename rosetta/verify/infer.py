"""Proves kind ``infer``: the pass over a few inputs computes what the reference does.

The run is given INITIAL_WEIGHTS, BATCHSIZE and N_INPUTS, so that the last batch is a short one. It saves, in SAVE_TO, ``weights.npz``
and ``outputs.npy``: what the timed pass has computed of every input, in their order (``common.weights.save_outputs``).

The reference of the task offers ``WEIGHT_SHAPES``, ``initial_weights(seed)`` (all that is no input, with values that keep
activations in range), ``inputs(n, synthetic)`` (the first n inputs, as notebooks have them) and ``outputs(weights, x)``.
Where not every number is trained, ``PARAMETERS`` counts those that are. In the task's mistakes, the values of FORWARD offer
``outputs(weights, x)``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rosetta import markdown
from rosetta.catalog import Row
from rosetta.verify.proof import (
    Bench,
    Crossing,
    Finding,
    Judge,
    Outputs,
    Prober,
    Reference,
    cast,
    cast_all,
    failed,
    from_weights,
    misplaced,
    named,
    tolerances,
    transposed,
)

PROOF = 1  # raise it when a level asks for more: rows are proven again
LEVELS = {1: "weights", 3: "forward"}
COLUMNS = {1: (), 3: ("output",)}
TOLERANCES = {
    "carried": 1e-6,  # level 1: largest difference of the exported weights from the given ones, by the tensor's largest number
    "output": 1e-4,  # level 3: of each input, L2 norm of the difference by the mean norm of the reference's outputs
}
BATCHSIZE, N_INPUTS = 4, 10


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    limits = tolerances(TOLERANCES, reference.task, row)
    first, third = Judge(1, limits), Judge(3, limits)
    parameters = {"BATCHSIZE": BATCHSIZE, "N_INPUTS": N_INPUTS}
    outputs = forward(first, third, probe, reference, reference.network, parameters, N_INPUTS)
    if outputs.error:
        return [] if outputs.skipped else failed((1, 3), outputs.error), outputs
    return [first.finding, third.finding], outputs


def forward(
    first: Judge,
    third: Judge,
    probe: Prober,
    reference: Reference,
    network: Any,
    parameters: dict[str, Any],
    n: int,
    quantities: tuple[str, ...] = ("output",),
) -> Outputs:
    """Run a pass from drawn weights, and judge it unless it fails: levels 1 and 3.

    network: one of the reference's. parameters: of the run. n: inputs that it computes. quantities: that the outputs' difference
    is noted as.
    """
    start = cast_all(network.initial_weights(seed=1), np.float32)
    outputs = from_weights(probe, start, reference.task.without_chance | parameters)
    if outputs.error:
        return outputs
    fits, counted = outputs.fit(network, first), getattr(outputs.record.metrics, "multiply_adds", None)
    if counted is not None:
        what = f"{counted} multiply-adds instead of {network.MULTIPLY_ADDS}"
        first.at_most("multiply-adds", abs(counted - network.MULTIPLY_ADDS), what, tolerance=0)
    if not fits:
        third.fail("the weights are not those of this network")
        return outputs
    for name, array in start.items():
        difference = np.abs(outputs.weights[name] - array).max() / max(np.abs(array).max(), 1e-30)
        first.at_most("carried", difference, f"{name} is not what INITIAL_WEIGHTS holds")
    expected = network.outputs(cast_all(outputs.weights), cast(network.inputs(n, reference.synthetic)))
    if outputs.outputs.shape != expected.shape:
        third.fail(f"outputs of shape {outputs.outputs.shape} instead of {expected.shape}")
        return outputs
    for quantity in quantities:
        difference = _difference(outputs.outputs, expected)
        third.at_most(quantity, difference, "the outputs differ", third.tolerances["output"])
    return outputs


def _flat(outputs: np.ndarray) -> np.ndarray:
    """A row an input."""
    return outputs.reshape(len(outputs), -1)


def _difference(mine: np.ndarray, wanted: np.ndarray) -> float:
    """The largest L2 norm of an input's difference, by the mean norm of the wanted outputs."""
    apart = np.linalg.norm(_flat(mine) - _flat(wanted), axis=1)
    return float(apart.max() / np.linalg.norm(_flat(wanted), axis=1).mean())


# ---- Diagnosis: known mistakes are replayed in float32, on the first batch


def diagnose(findings: list[Finding], outputs: Outputs, reference: Reference, row: Row) -> dict[int, str]:
    """What is known of the failed levels: level -> sentence. outputs: what the run of the row has left."""
    if outputs.weights is None:
        return {}
    if not findings[0].passed:
        level, said = 1, transposed(outputs.weights, reference.network.WEIGHT_SHAPES) or _carried(outputs, reference)
    else:
        level, said = 3, _replayed(outputs, reference, tolerances(TOLERANCES, reference.task, row))
    return {level: said} if said else {}


def _carried(outputs: Outputs, reference: Reference) -> str | None:
    """The mistake that changes no other tensors than those that have changed."""
    start = reference.network.initial_weights(seed=1)
    if set(start) != set(outputs.weights):
        return None
    changed = {name for name, array in start.items() if not np.allclose(outputs.weights[name], array, rtol=1e-5)}
    for name, tensors in reference.mistakes.CARRIED.items():
        if changed and changed <= set(tensors):
            return f"this is what happens with {name}: {len(changed)} tensors have changed, {min(changed)} and so on"
    return None


def _replayed(outputs: Outputs, reference: Reference, limits: dict[str, float]) -> str | None:
    weights = cast_all(outputs.weights, np.float32)
    x = reference.network.inputs(N_INPUTS, reference.synthetic)[:BATCHSIZE]
    right, mine = reference.network.outputs(weights, x), outputs.outputs
    if mine.shape[1:] != right.shape[1:]:
        return None
    size = np.linalg.norm(_flat(right), axis=1).mean()
    if said := misplaced(_flat(mine) / size, _flat(right) / size, N_INPUTS, limits["output"]):
        return said

    def judged(theirs: np.ndarray) -> Finding:
        judge = Judge(3, limits)
        judge.at_most("output", _difference(mine[: len(x)], theirs), "")
        return judge.finding

    mistakes = reference.mistakes.FORWARD.items()
    return named(judged(right), ((name, judged(each.outputs(weights, x))) for name, each in mistakes))


# ---- Crossing: each row computes the same inputs with the same weights, and what they find is compared, pair by pair

TIE = 1e-4  # of the distances to the two nearest inputs, relative
SIZES = ("N_INPUTS", "BATCHSIZE")
CROSSED = (*SIZES, "IMAGES")  # what the user may set of a crossing: the weights are the reference's
INPUTS = {"N_INPUTS": 40}  # with a short last batch, and enough of them to be near to each other


class Agreement(Crossing):
    """apart[i][j]: the largest difference of an input's output between rows i and j, by the mean norm of row i's outputs.

    For inputs that count in ``others``, another input is the nearest one. own: parameters of the user by which rows make their
    inputs themselves; what they then compute differs by their ways to do so.
    """

    own: list[str]
    inputs: int | None = None
    apart: list[list[float | None]]

    corner, other = "", "another nearest"

    @property
    def passed(self) -> bool:
        """Every input has the same nearest one for all rows, ties aside; given inputs have the same outputs, too."""
        if any(None in line for line in self.apart) or any(map(any, self.others)):
            return False
        return bool(self.own) or max(map(max, self.apart)) <= TOLERANCES["output"]

    def cells(self) -> list[list[str]]:
        return [["failed" if value is None else f"{value:.0e}" for value in apart] for apart in self.apart]

    def explained(self) -> tuple[str, str]:
        made_by = f"all frameworks share. Allowed is {TOLERANCES['output']:g}"
        if self.own:
            made_by = (
                f"each framework makes itself of the same {', '.join(map(markdown.code, self.own))}. They differ by how it does "
                "so. So only the nearest ones are judged"
            )
        return ", ".join(["The same outputs", *self.own]), (
            f"All rows have the same weights, and compute {self.inputs or 'no'} inputs, which {made_by}. A figure compares two "
            "rows: it is the largest difference of an input's output, divided by the mean norm of the outputs. Every row also "
            "finds the nearest other input of each input, by the distance of their outputs. *Another nearest* counts inputs "
            "for which some row finds another one than the row of the line. *Ties* are inputs with two nearest ones, whose "
            f"distances differ by less than {TIE:g}, relative: they are not counted."
        )


def same_network(one: Reference, other: Reference) -> bool:
    """Whether both flavours compute the same outputs from the same weights: they differ in nothing but what is superfluous."""
    weights, theirs = (reference.network.initial_weights(seed=1) for reference in (one, other))
    if {name: w.shape for name, w in weights.items()} != {name: w.shape for name, w in theirs.items()}:
        return False
    x = one.network.inputs(1, one.synthetic).astype(np.float64)
    ones, others = (reference.network.outputs(weights, x) for reference in (one, other))
    return np.allclose(ones, others, rtol=0, atol=1e-9 * np.abs(ones).max())


def cross(
    rows: list[Row], reference: Reference, bench: Bench, note: Callable[[str], None], changed: dict[str, Any]
) -> Agreement:
    """Let every row compute its outputs from the reference's weights, and compare them.

    note: called as each run ends. changed: parameters that the user has set.
    """
    outputs: list[np.ndarray | None] = [None] * len(rows)
    own, apart = [name for name in changed if name not in SIZES], [[None] * len(rows) for _ in rows]
    agreement = Agreement.empty(rows, bench, own=own, apart=apart)
    start = cast_all(reference.network.initial_weights(seed=1), np.float32)

    def run(number: int) -> tuple[int, Outputs]:
        return number, from_weights(bench.prober(rows[number], reference), start, INPUTS | changed)

    for number, left in bench.workers.each(run, range(len(rows))):
        agreement.commit, error = left.record.commit, left.error
        if not error:
            inputs = len(left.outputs)
            agreement.inputs = agreement.inputs or inputs
            if inputs < 2:
                error = "a single input has no other one that is near"
            elif inputs != agreement.inputs:
                error = f"{inputs} inputs, where another row has {agreement.inputs}"
        if error:
            agreement.errors.append(f"{rows[number].name}: {error}")
            note(agreement.errors[-1])
        else:
            outputs[number] = cast(_flat(left.outputs))
            note(f"{rows[number].name}: {inputs} inputs")
    compare(agreement, outputs)
    return agreement


def compare(agreement: Agreement, outputs: list[np.ndarray | None]) -> None:
    """Fill in what is said of the rows' outputs; None is that of a run that failed."""
    nearest = [None if each is None else _nearest(each) for each in outputs]
    for i, one in enumerate(outputs):
        if one is None:
            continue
        chosen, tied = nearest[i]
        agreement.ties[i] = int(tied.sum())
        for j, other in enumerate(outputs):
            if other is not None:
                agreement.apart[i][j] = _difference(other, one)
                agreement.others[i][j] = int((~tied & (chosen != nearest[j][0])).sum())


def _nearest(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each input the nearest other one, and whether a second one is as near."""
    distances = np.array([np.linalg.norm(outputs - each, axis=1) for each in outputs])
    np.fill_diagonal(distances, np.inf)
    first, second = np.sort(distances, axis=1)[:, :2].T
    return distances.argmin(axis=1), second - first < TIE * second
