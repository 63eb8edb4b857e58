"""What the proofs of kinds ``infer`` and ``speed`` share: a pass over a few inputs from drawn weights, held against the reference."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rosetta.catalog import Row
from rosetta.verify import levels, probes
from rosetta.verify.kinds import proof
from rosetta.verify.levels import Finding, Judge, exact, failed
from rosetta.verify.probes import Outputs, Prober, Reference

TOLERANCES = {
    "carried": 1e-6,  # level 1: largest difference of the exported weights from the given ones, by the tensor's largest number
    "output": 1e-4,  # level 3: of each input, L2 norm of the difference by the mean norm of the reference's outputs
}
SAVED = ("weights.npz", "outputs.npy")


@dataclass(frozen=True)
class Pass:
    """A network of the reference, the parameters of a run of it, and how many inputs that computes."""

    network: Any
    parameters: dict[str, Any]
    n: int
    name: str = ""


def judge(row: Row, probe: Prober, reference: Reference, passes: Iterable[Pass]) -> tuple[list[Finding], Outputs]:
    """Levels 1 and 3 over all passes, and what the first of them left."""
    tolerances = levels.tolerances(proof(reference.task.kind_name).TOLERANCES, reference.task, row)
    first, third, left = Judge(1, tolerances), Judge(3, tolerances), None
    for one in passes:
        start = {name: array.astype(np.float32, copy=False) for name, array in one.network.initial_weights(1).items()}
        outputs = probes.from_weights(probe, start, reference.task.without_chance | one.parameters)
        left = left or outputs
        if outputs.error:
            return [] if outputs.skipped else failed((1, 3), f"{one.name}{outputs.error}"), left
        first.place = third.place = one.name
        _judge(first, third, one, start, outputs, reference.synthetic)
    return [first.finding, third.finding], left


def _judge(first: Judge, third: Judge, one: Pass, start: dict, outputs: Outputs, synthetic: bool) -> None:
    network, metrics = one.network, outputs.record.metrics
    fits = levels.weights(first, outputs.weights, metrics.parameters, network)
    counted = getattr(metrics, "multiply_adds", None)
    if counted is not None:
        what = f"{counted} multiply-adds instead of {network.MULTIPLY_ADDS}"
        first.at_most("multiply-adds", abs(counted - network.MULTIPLY_ADDS), what, tolerance=0)
    if not fits:
        return third.fail("the weights are not those of this network")
    for name, given in start.items():
        difference = np.abs(outputs.weights[name] - given).max() / max(np.abs(given).max(), 1e-30)
        first.at_most("carried", difference, f"{name} is not what INITIAL_WEIGHTS holds")
    weights = {name: exact(array) for name, array in outputs.weights.items()}
    expected = network.outputs(weights, exact(network.inputs(one.n, synthetic)))
    if outputs.outputs.shape != expected.shape:
        return third.fail(f"outputs of shape {outputs.outputs.shape} instead of {expected.shape}")
    mine, wanted = outputs.outputs.reshape(one.n, -1), expected.reshape(one.n, -1)
    differences = np.linalg.norm(mine - wanted, axis=1) / np.linalg.norm(wanted, axis=1).mean()
    return third.at_most("output", differences.max(), "the outputs differ")
