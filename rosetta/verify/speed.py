"""Proves kind ``speed``: each network of the task has the reference's weights, computes what it does, and moves its weights as it does.

A run a network is given NETWORK, INITIAL_WEIGHTS, BATCHSIZE, PHASE ("forward"), WARMUP, STEPS and REPEATS. It saves, in SAVE_TO, ``weights.npz``
and ``outputs.npy``: what the last step has computed of the batch (``common.weights.save_outputs``). It may report ``multiply_adds``, which
are then judged. Some networks are run in the phase "step", too: their weights are those after the steps, their output is the last loss.

The reference of the task offers ``NAMES`` (of its networks) and ``network(name)``: an object with ``WEIGHT_SHAPES``, ``MULTIPLY_ADDS`` (of one
input's forward pass), ``initial_weights(seed)``, ``inputs(n, synthetic)`` (the first batch of n, as notebooks have it) and
``outputs(weights, x)``. Where not every number is trained, ``PARAMETERS`` counts those that are. It offers ``TRAINED``: names of networks,
each with parameters of its run in the phase "step", and for these ``trained(weights, n, steps, constants, synthetic)``: (the weights after the steps,
the loss before the last update).

Where a row has a ``zoo``, its notebook takes SOURCE = "zoo", too. What ``task.toml`` says of each of these networks is judged on level 3: one that
is the same computes the reference's outputs, another one does not.
"""

from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from common.weights import save_weights
from rosetta.catalog import Row
from rosetta.kinds.kind import FROM_ZOO
from rosetta.verify import infer, proof
from rosetta.verify.proof import Finding, Judge, Outputs, Prober, cast, failed, from_weights, tolerances

PROOF = 1  # raise it when a level asks for more: rows are proven again
LEVELS = {1: "network", 3: "forward", 4: "step"}
COLUMNS = {1: (), 3: ("output",), 4: ("loss", "update")}
TOLERANCES = infer.TOLERANCES | {
    "loss": 1e-4,  # level 4: difference of the last loss
    "update": 4e-3,  # level 4: of each tensor's change, L2 norm of the difference by that of the change
}
BATCHSIZE = 2
STEP = {"BATCHSIZE": BATCHSIZE, "PHASE": "forward", "WARMUP": 1, "STEPS": 1, "REPEATS": 1}
SEED = 4  # of the weights: no input of a ReLU lies so near to 0 that float32 would turn its sign
STEPS = STEP["WARMUP"] + STEP["STEPS"] * STEP["REPEATS"]


class Reference(proof.Reference):
    """The task, with what does not depend on the row computed once."""

    @cached_property
    def computed(self) -> dict[str, "Network"]:
        return {name: Network(self, name) for name in self.network.NAMES}


class Network:
    """A network of the reference: it draws its weights once, and computes once what becomes of its first batch with them.

    Large networks have half a gigabyte of weights, so these lie on the disk.
    """

    def __init__(self, reference: Reference, name: str):
        self._network, self._reference = reference.network.network(name), reference
        self._folder = TemporaryDirectory(prefix="rosetta-")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def initial_weights(self, seed: int) -> dict[str, np.ndarray]:
        """In float32, as notebooks are given them; always those of ``SEED``."""
        file = Path(self._folder.name, "start.npz")
        with self._reference.lock:
            if not file.exists():
                save_weights(file, self._network.initial_weights(SEED))
        with np.load(file) as arrays:
            return dict(arrays)

    def outputs(self, weights: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
        start = self.initial_weights(SEED)
        if not all(np.array_equal(weights[name], array) for name, array in start.items()):
            return self._network.outputs(weights, x)
        with self._reference.lock:
            if "_outputs" not in vars(self):
                self._outputs = self._network.outputs(weights, x)
        return self._outputs


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    """Networks that the row cannot have are left out."""
    limits, lacking = tolerances(TOLERANCES, reference.task, row), row.facts.lacking(gpu)
    first, third, left = Judge(1, limits), Judge(3, limits), None
    here = [name for name in reference.computed if name not in lacking]
    runs = {name: STEP | {"NETWORK": name} for name in here}
    zoo = {name: STEP | FROM_ZOO | {"NETWORK": name} for name in row.facts.zoo}
    runs |= {in_zoo(name): zoo[name] for name, other in row.facts.zoo.items() if not other}
    for place, parameters in runs.items():
        first.place = third.place = f"{place}: "
        network, quantities = reference.computed[parameters["NETWORK"]], ("output", output_of(place))
        outputs = infer.forward(first, third, probe, reference, network, parameters, BATCHSIZE, quantities)
        left = left or outputs
        if outputs.error:
            return [] if outputs.skipped else failed((1, 3), f"{place}: {outputs.error}"), left
    for name, other in row.facts.zoo.items():
        third.place = f"{in_zoo(name)}: "
        if other and (wrong := _the_same(reference.computed[name], zoo[name], probe, reference)):
            third.fail(wrong)
    trained = {name: changed for name, changed in reference.network.TRAINED.items() if name in here}
    return [first.finding, third.finding, steps(row, probe, reference, trained)], left


def in_zoo(name: str) -> str:
    """The place of a network that comes from the framework's own zoo."""
    return f"{name} of the zoo"


def output_of(place: str) -> str:
    """The quantity of level 3 that one network has."""
    return f"output of {place}"


def _the_same(network: Network, parameters: dict[str, Any], probe: Prober, reference: Reference) -> str | None:
    """Why a network that is said to be another one is none: it has as many parameters, and computes the reference's outputs."""
    alone = probe(parameters)  # it may fail at last: weights of another network cannot be saved as canonical ones
    if alone.record.metrics.parameters is None:
        return alone.error
    if alone.record.metrics.parameters != network.PARAMETERS:
        return None
    start = network.initial_weights(SEED)
    outputs = from_weights(probe, start, parameters)
    if outputs.error:
        return None
    wanted = network.outputs(start, cast(network.inputs(BATCHSIZE, reference.synthetic)))
    if not np.allclose(outputs.outputs, wanted, rtol=0, atol=TOLERANCES["output"] * np.abs(wanted).max()):
        return None
    return "it is the task's network, and task.toml says that it is another one"


def steps(row: Row, probe: Prober, reference: Reference, trained: dict[str, dict[str, Any]]) -> Finding:
    """Level 4. trained: parameters of the runs, by the networks' names."""
    judge = Judge(4, tolerances(TOLERANCES, reference.task, row))
    for name, changed in trained.items():
        network, parameters = reference.computed[name], STEP | {"NETWORK": name, "PHASE": "step"} | changed
        start = network.initial_weights(SEED)
        outputs = from_weights(probe, start, parameters)
        if outputs.error:
            return failed((4,), f"{name}: {outputs.error}")[0]
        judge.place = f"{name}: "
        if not outputs.fit(network, judge):
            return judge.finding
        if outputs.outputs.size != 1:
            judge.fail(f"what the last step has computed has the shape {outputs.outputs.shape}: it is not a loss")
            return judge.finding
        start = {tensor: cast(array) for tensor, array in start.items()}
        constants = reference.task.constants() | parameters
        expected, loss = network.trained(start, BATCHSIZE, STEPS, constants, reference.synthetic)
        judge.at_most("loss", abs(outputs.outputs.item() - loss), "the last losses differ")
        for tensor, wanted in expected.items():
            change = np.linalg.norm(wanted - start[tensor])
            if change:  # statistics that training gathers are no weights
                difference = np.linalg.norm(outputs.weights[tensor] - wanted) / change
                judge.at_most("update", difference, f"the change of {tensor} differs")
    return judge.finding
