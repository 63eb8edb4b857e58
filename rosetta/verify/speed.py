"""Proves kind ``speed``: each network of the task has the reference's weights, computes what it does, and moves its weights as it does.

A run a network is given NETWORK, INITIAL_WEIGHTS, BATCHSIZE, PHASE ("forward"), WARMUP, STEPS and REPEATS. It saves, in SAVE_TO, ``weights.npz``
and ``outputs.npy``: what the last step has computed of the batch (``common.weights.save_outputs``). It may report ``multiply_adds``, which
are then judged. Some networks are run in the phase "step", too: their weights are those after the steps, their output is the last loss.

The reference of the task offers ``NAMES`` (of its networks) and ``network(name)``: an object with ``WEIGHT_SHAPES``, ``MULTIPLY_ADDS`` (of one
input's forward pass), ``initial_weights(seed)``, ``inputs(n, synthetic)`` (the first batch of n, as notebooks have it) and
``outputs(weights, x)``. Where not every number is trained, ``PARAMETERS`` counts those that are. It offers ``TRAINED``: names of networks,
each with parameters of its run in the phase "step", and for these ``trained(weights, n, steps, constants, synthetic)``: (the weights after the steps,
the loss before the last update).
"""

from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from common.weights import save_weights
from rosetta.catalog import Row
from rosetta.verify import forward, levels, probes
from rosetta.verify.forward import SAVED, Pass
from rosetta.verify.levels import Finding, Judge, exact, failed
from rosetta.verify.probes import Outputs, Prober

__all__ = ["COLUMNS", "LEVELS", "SAVED", "TOLERANCES", "Reference", "judge"]

LEVELS = {1: "network", 3: "forward", 4: "step"}
COLUMNS = {1: (), 3: ("output",), 4: ("loss", "update")}
TOLERANCES = forward.TOLERANCES | {
    "loss": 1e-4,  # level 4: difference of the last loss
    "update": 4e-3,  # level 4: of each tensor's change, L2 norm of the difference by that of the change
}
BATCHSIZE = 2
STEP = {"BATCHSIZE": BATCHSIZE, "PHASE": "forward", "WARMUP": 1, "STEPS": 1, "REPEATS": 1}
SEED = 4  # of the weights: no input of a ReLU lies so near to 0 that float32 would turn its sign
STEPS = STEP["WARMUP"] + STEP["STEPS"] * STEP["REPEATS"]


class Reference(probes.Reference):
    """The task, with what does not depend on the row computed once."""

    @cached_property
    def known(self) -> dict[str, "Known"]:
        return {name: Known(self.network.network(name), self.lock) for name in self.network.NAMES}


class Known:
    """A network of the reference: it draws its weights once, and computes once what becomes of its first batch with them.

    Large networks have half a gigabyte of weights, so these lie on the disk.
    """

    def __init__(self, network: Any, lock):
        self._network, self._lock, self._folder, self._outputs = (
            network,
            lock,
            TemporaryDirectory(prefix="rosetta-"),
            None,
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def initial_weights(self, seed: int) -> dict[str, np.ndarray]:
        """In float32, as notebooks are given them; always those of ``SEED``."""
        file = Path(self._folder.name, "start.npz")
        with self._lock:
            if not file.exists():
                save_weights(file, self._network.initial_weights(SEED))
        with np.load(file) as arrays:
            return dict(arrays)

    def outputs(self, weights: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
        start = self.initial_weights(SEED)
        if not all(np.array_equal(weights[name], array) for name, array in start.items()):
            return self._network.outputs(weights, x)
        with self._lock:
            if self._outputs is None:
                self._outputs = self._network.outputs(weights, x)
        return self._outputs


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    """Networks that the row cannot have are left out."""
    here = {name: network for name, network in reference.known.items() if name not in row.facts.lacks}
    passes = (Pass(one, STEP | {"NETWORK": name}, BATCHSIZE, name=f"{name}: ") for name, one in here.items())
    findings, first = forward.judge(row, probe, reference, passes)
    if first.skipped:
        return findings, first
    trained = {name: own for name, own in reference.network.TRAINED.items() if name in here}
    return [*findings, _steps(row, probe, reference, trained)], first


def _steps(row: Row, probe: Prober, reference: Reference, trained: dict[str, dict[str, Any]]) -> Finding:
    """Level 4."""
    judge = Judge(4, levels.tolerances(TOLERANCES, reference.task, row))
    for name, own in trained.items():
        network, parameters = reference.known[name], STEP | {"NETWORK": name, "PHASE": "step"} | own
        start = network.initial_weights(SEED)
        outputs = probes.from_weights(probe, start, parameters)
        if outputs.error:
            return failed((4,), f"{name}: {outputs.error}")[0]
        judge.place = f"{name}: "
        if not levels.weights(judge, outputs.weights, outputs.record.metrics.parameters, network):
            return judge.finding
        if outputs.outputs.size != 1:
            judge.fail(f"what the last step has computed has the shape {outputs.outputs.shape}: it is not a loss")
            return judge.finding
        start = {name: exact(array) for name, array in start.items()}
        constants = reference.task.constants() | parameters
        expected, loss = network.trained(start, BATCHSIZE, STEPS, constants, reference.synthetic)
        judge.at_most("loss", abs(outputs.outputs.item() - loss), "the last losses differ")
        for tensor, wanted in expected.items():
            change = np.linalg.norm(wanted - start[tensor])
            if change:  # statistics that training gathers are no weights
                difference = np.linalg.norm(outputs.weights[tensor] - wanted) / change
                judge.at_most("update", difference, f"the change of {tensor} differs")
    return judge.finding
