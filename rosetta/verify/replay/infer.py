"""Replays of kind ``infer``: the values of FORWARD offer ``outputs(weights, x)``, computed in float32 on the first batch."""

import numpy as np

from rosetta.catalog import Row
from rosetta.verify import diagnosis, infer, levels
from rosetta.verify.diagnosis import Replay
from rosetta.verify.levels import Finding, Judge
from rosetta.verify.probes import Outputs, Reference
from rosetta.verify.replay import mistakes


def of(findings: list[Finding], left: list[Outputs], reference: Reference, row: Row) -> dict[int, str]:
    """What is known of the failed levels: level -> sentence. left: what the run of the row has left."""
    failed, outputs = {finding.level: finding for finding in findings if not finding.passed}, left[0]
    if outputs.weights is None:
        return {}
    if 1 in failed:
        said = diagnosis.transposed(outputs.weights, reference.network.WEIGHT_SHAPES) or _carried(outputs, reference)
        return {1: said} if said else {}
    said = _forward(failed[3], outputs, reference, levels.tolerances(infer.TOLERANCES, reference.task, row))
    return {3: said} if said else {}


def _carried(outputs: Outputs, reference: Reference) -> str | None:
    """The mistake that changes no other tensors than those that have changed."""
    given = reference.network.initial_weights(seed=1)
    if set(given) != set(outputs.weights):
        return None
    changed = {name for name, array in given.items() if not np.allclose(outputs.weights[name], array, rtol=1e-5)}
    for name, tensors in mistakes.known(reference).CARRIED.items():
        if changed and changed <= set(tensors):
            return f"this is what happens with {name}: {len(changed)} tensors have changed, {min(changed)} and so on"
    return None


def _forward(failed: Finding, outputs: Outputs, reference: Reference, tolerances: dict) -> str | None:
    weights = {name: array.astype(np.float32) for name, array in outputs.weights.items()}
    x = reference.network.inputs(infer.N_INPUTS, reference.synthetic)[: infer.BATCHSIZE]
    right, mine = reference.network.outputs(weights, x), outputs.outputs
    if mine.shape[1:] != right.shape[1:]:
        return None
    size = np.linalg.norm(right.reshape(len(x), -1), axis=1).mean()
    if said := diagnosis.misplaced(_rows(mine) / size, _rows(right) / size, infer.N_INPUTS, tolerances["output"]):
        return said

    def judged(theirs: np.ndarray) -> Finding:
        judge = Judge(3, tolerances)
        apart = np.linalg.norm(_rows(mine[: len(x)] - theirs), axis=1)
        judge.at_most("output", apart.max() / np.linalg.norm(_rows(theirs), axis=1).mean(), "")
        return judge.finding

    known = mistakes.known(reference).FORWARD
    return diagnosis.named(
        judged(right), (Replay(name, judged(each.outputs(weights, x))) for name, each in known.items())
    )


def _rows(outputs: np.ndarray) -> np.ndarray:
    return outputs.reshape(len(outputs), -1)
