"""Proves kind ``infer``: the pass over a few inputs computes what the reference does.

The run is given INITIAL_WEIGHTS, BATCHSIZE and N_INPUTS, so that the last batch is a short one. It saves, in SAVE_TO, ``weights.npz``
and ``outputs.npy``: what the timed pass has computed of every input, in their order (``common.weights.save_outputs``).

The reference of the task offers ``WEIGHT_SHAPES``, ``initial_weights(seed)`` (all that is no input, with values that keep
activations in range), ``inputs(n, synthetic)`` (the first n inputs, as notebooks have them) and ``outputs(weights, x)``.
Where not every number is trained, ``PARAMETERS`` counts those that are.
"""

from rosetta.catalog import Row
from rosetta.verify import forward
from rosetta.verify.forward import SAVED, TOLERANCES, Pass
from rosetta.verify.levels import Finding
from rosetta.verify.probes import Outputs, Prober, Reference

__all__ = ["COLUMNS", "LEVELS", "SAVED", "TOLERANCES", "Reference", "judge"]

PROOF = 1  # raise it when a level asks for more: rows are proven again
LEVELS = {1: "weights", 3: "forward"}
COLUMNS = {1: (), 3: ("output",)}
BATCHSIZE, N_INPUTS = 4, 10


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    parameters = {"BATCHSIZE": BATCHSIZE, "N_INPUTS": N_INPUTS}
    return forward.judge(row, probe, reference, [Pass(reference.network, parameters, N_INPUTS)])
