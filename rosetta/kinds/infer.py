"""Kind ``infer``: a forward pass over a set of inputs, once to warm up and once for the clock."""

from typing import Any

from rosetta.figures import MILLISECONDS, ROUGH, SECONDS
from rosetta.files import Count, Number, Seconds
from rosetta.kinds.kind import (
    BATCH,
    BUILD,
    DATA,
    MEASURED,
    NETWORK,
    RECORD,
    SETUP,
    Kind,
    Metrics,
    Quantity,
    Role,
    Trouble,
)


class InferMetrics(Metrics):
    """Seconds of whole passes, copies to and from the device included."""

    warm_up_s: Seconds | None = None  # the first pass: it holds loading and compiling
    pass_s: Seconds | None = None  # the timed pass
    thousand_s: Seconds | None = None  # of 1,000 inputs
    examples_per_s: Number | None = None
    inputs: Count | None = None  # of a pass; None: as many as the constants say
    latency_s: Seconds | None = None  # of a single input, where it was measured: the median
    latency_99_s: Seconds | None = None  # its 99th percentile


class Infer(Kind):
    name = "infer"
    roles = (*NETWORK, Role("predict", "Prediction"), RECORD)
    constants = {"BATCHSIZE": 1, "N_INPUTS": 1, "SEED": 0}
    metrics = InferMetrics
    timed = SETUP
    turns, phases = "passes", ("forward",)
    main = (
        Quantity("1,000 inputs", lambda m: m.thousand_s, SECONDS, better="less", spread=True),
        Quantity("examples/s", lambda m: m.examples_per_s, ROUGH),
    )
    details = (
        Quantity("first pass", lambda m: m.warm_up_s, SECONDS),
        Quantity("latency", lambda m: m.latency_s, MILLISECONDS, always=False),
        Quantity("latency, 99th percentile", lambda m: m.latency_99_s, MILLISECONDS, always=False),
        DATA,
        BUILD,
        *MEASURED,
    )

    figures = """
- *1,000 inputs* is the timed pass, copies to and from the device included, scaled to 1,000. The *first pass* before it
  holds what a framework loads, compiles or warms up lazily.
"""

    def items(self, constants: dict[str, Any]) -> float:
        """Inputs of both passes."""
        return 2 * constants["N_INPUTS"]

    def size(self, constants: dict[str, Any]) -> str:
        return f"{constants['N_INPUTS']:,} inputs in batches of {constants['BATCHSIZE']}"

    def steps(self, constants: dict[str, Any]) -> int:
        """Full batches of a pass."""
        return constants["N_INPUTS"] // constants[BATCH]

    def short(self, constants: dict[str, Any], steps: int, turns: int) -> dict[str, Any]:
        """Parameters of a run with passes of so few batches: to measure by."""
        return {"N_INPUTS": steps * constants[BATCH]}

    def trouble(self, metrics: InferMetrics, params: dict[str, Any]) -> Trouble | None:
        if not metrics.pass_s or metrics.inputs == 0:
            return Trouble("failed", "the notebook reported no pass")
        if metrics.inputs not in (None, params["N_INPUTS"]) and not params.get("IMAGES"):
            return Trouble("failed", f"a pass had {metrics.inputs:,} inputs, expected {params['N_INPUTS']:,}")
        return None

    def complete(self, metrics: InferMetrics, params: dict[str, Any], marked_j: float | None) -> None:
        if metrics.pass_s:
            examples = metrics.inputs or params["N_INPUTS"]
            metrics.examples_per_s = round(examples / metrics.pass_s, 1)
            metrics.thousand_s = round(1000 * metrics.pass_s / examples, 4)
