"""Kind ``speed``: timed steps of a named network; what was measured are the record's points."""

from typing import Any

from rosetta.figures import MILLISECONDS, WHOLE
from rosetta.files import Count, Number, Seconds
from rosetta.kinds.kind import BUILD, MEASURED, NETWORK, RECORD, SETUP, Kind, Metrics, Quantity, Role


class SpeedMetrics(Metrics):
    multiply_adds: Count | None = None  # of one example's forward pass, as the notebook counts them
    step_s: Seconds | None = None  # mean of the repeats, warm-up not counted
    examples_per_s: Number | None = None


class Speed(Kind):
    name = "speed"
    roles = (*NETWORK, Role("step", "Step"), RECORD)
    constants = {"NETWORK": "", "BATCHSIZE": 1, "PHASE": "", "WARMUP": 0, "STEPS": 1, "REPEATS": 1, "SEED": 0}
    metrics = SpeedMetrics
    timed = SETUP
    main = (
        Quantity("a step", lambda m: m.step_s, MILLISECONDS, better="less", spread=True),
        Quantity("examples/s", lambda m: m.examples_per_s, WHOLE),
    )
    details = (BUILD, *MEASURED)

    figures = """
- *A step* is the mean of the repeats, after steps that are not counted.
"""

    def items(self, constants: dict[str, Any]) -> float:
        """Examples of all steps."""
        return constants["BATCHSIZE"] * (constants["WARMUP"] + constants["STEPS"] * constants["REPEATS"])

    def size(self, constants: dict[str, Any]) -> str:
        repeats = f"{constants['REPEATS']} x {constants['STEPS']} steps"
        return f"{constants['NETWORK']}, {constants['PHASE']}, batch {constants['BATCHSIZE']}, {repeats}"

    def complete(self, metrics: SpeedMetrics, params: dict[str, Any], marked_j: float | None) -> None:
        if metrics.step_s:
            metrics.examples_per_s = round(params["BATCHSIZE"] / metrics.step_s, 1)
