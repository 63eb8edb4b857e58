"""Proves kind ``speed``: each network of the task has the reference's weights and multiply-adds, and computes what it does.

A run a network is given NETWORK, INITIAL_WEIGHTS, BATCHSIZE, PHASE ("forward"), WARMUP, STEPS and REPEATS. It saves, in SAVE_TO, ``weights.npz``
and ``outputs.npy``: what the last step has computed of the batch (``common.weights.save_outputs``), and reports ``multiply_adds``.

The reference of the task offers ``NETWORKS`` (their names) and ``network(name)``: an object with ``WEIGHT_SHAPES``, ``MULTIPLY_ADDS`` (of one
input's forward pass), ``initial_weights(seed)``, ``inputs(n, synthetic)`` (the first batch of n, as notebooks have it) and
``outputs(weights, x)``. Where not every number is trained, ``PARAMETERS`` counts those that are.
"""

from rosetta.catalog import Row
from rosetta.verify import forward
from rosetta.verify.forward import SAVED, TOLERANCES, Pass
from rosetta.verify.levels import Finding
from rosetta.verify.probes import Outputs, Prober, Reference

__all__ = ["COLUMNS", "LEVELS", "SAVED", "TOLERANCES", "Reference", "judge"]

LEVELS = {1: "network", 3: "forward"}
COLUMNS = {1: (), 3: ("output",)}
BATCHSIZE = 4
STEP = {"BATCHSIZE": BATCHSIZE, "PHASE": "forward", "WARMUP": 1, "STEPS": 1, "REPEATS": 1}


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    task = reference.network
    passes = (Pass(task.network(name), STEP | {"NETWORK": name}, BATCHSIZE, name=f"{name}: ") for name in task.NETWORKS)
    return forward.judge(row, probe, reference, passes)
