"""Kind ``infer``: a forward pass over a set of inputs, once to warm up and once for the clock."""

from typing import Any

from rosetta.figures import MILLISECONDS, SECONDS, WHOLE
from rosetta.files import Number, Seconds
from rosetta.kinds.kind import BUILD, DATA, MEASURED, NETWORK, RECORD, SETUP, Kind, Metrics, Quantity, Role


class InferMetrics(Metrics):
    """Seconds of whole passes, copies to and from the device included."""

    warm_up_s: Seconds | None = None  # the first pass: it holds loading and compiling
    pass_s: Seconds | None = None  # the timed pass
    thousand_s: Seconds | None = None  # of 1,000 inputs
    examples_per_s: Number | None = None
    latency_s: Seconds | None = None  # of a single input, where it was measured


class Infer(Kind):
    name = "infer"
    roles = (*NETWORK, Role("predict", "Prediction"), RECORD)
    constants = {"BATCHSIZE": 1, "BATCHES": 1, "SEED": 0}
    metrics = InferMetrics
    timed = SETUP
    main = (
        Quantity("1,000 inputs", lambda m: m.thousand_s, SECONDS, better="less", spread=True),
        Quantity("examples/s", lambda m: m.examples_per_s, WHOLE),
    )
    details = (
        Quantity("first pass", lambda m: m.warm_up_s, SECONDS),
        Quantity("latency", lambda m: m.latency_s, MILLISECONDS, always=False),
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
        return 2 * constants["BATCHSIZE"] * constants["BATCHES"]

    def size(self, constants: dict[str, Any]) -> str:
        batches = "1 batch" if constants["BATCHES"] == 1 else f"{constants['BATCHES']} batches"
        return f"{batches} of {constants['BATCHSIZE']}"

    def complete(self, metrics: InferMetrics, params: dict[str, Any], marked_j: float | None) -> None:
        if metrics.pass_s:
            examples = params["BATCHSIZE"] * params["BATCHES"]
            metrics.examples_per_s = round(examples / metrics.pass_s, 1)
            metrics.thousand_s = round(1000 * metrics.pass_s / examples, 4)
