"""Kind ``speed``: timed steps of a named network; what was measured are the record's points."""

from typing import Any

from rosetta.figures import MILLISECONDS, PERCENT, SECONDS, WHOLE
from rosetta.files import Count, Fraction, Number, Seconds
from rosetta.kinds.kind import (
    BATCH,
    BUILD,
    MEASURED,
    NETWORK,
    PASSES,
    RECORD,
    SETUP,
    Kind,
    Metrics,
    Quantity,
    Role,
    Trouble,
)


class SpeedMetrics(Metrics):
    multiply_adds: Count | None = None  # of one example's forward pass, where the framework counts them
    warm_up_s: Seconds | None = None  # the steps that are not counted: they hold loading and compiling
    step_s: Seconds | None = None  # mean of the repeats
    waiting: Fraction | None = (
        None  # share of a step in which Python waits for the next batch, where it is read from files
    )
    result: Number | None = None  # the mean of what the last step has computed
    examples_per_s: Number | None = None


class Speed(Kind):
    name = "speed"
    roles = (*NETWORK, Role("step", "Step"), RECORD)
    lines = 135  # every kind of layer has one; batches may come from files, networks from a zoo
    constants = {"NETWORK": "", "BATCHSIZE": 1, "PHASE": "", "WARMUP": 0, "STEPS": 1, "REPEATS": 1, "SEED": 0}
    metrics = SpeedMetrics
    timed = SETUP
    turns = "repeats"
    protocols, which = True, "NETWORK"
    main = (
        Quantity("a step", lambda m: m.step_s, MILLISECONDS, better="less", spread=True),
        Quantity("examples/s", lambda m: m.examples_per_s, WHOLE),
    )
    details = (
        Quantity("warm-up", lambda m: m.warm_up_s, SECONDS),
        Quantity("waiting for data", lambda m: m.waiting, PERCENT, always=False),
        BUILD,
        *MEASURED,
    )

    figures = """
- *A step* is the mean of the repeats. The *warm-up* before them holds what a framework loads, compiles or tunes lazily.
"""

    def items(self, constants: dict[str, Any]) -> float:
        """Examples of all steps."""
        return constants["BATCHSIZE"] * (constants["WARMUP"] + constants["STEPS"] * constants["REPEATS"])

    def steps(self, constants: dict[str, Any]) -> int:
        """Of a repeat."""
        return constants["STEPS"]

    def short(self, constants: dict[str, Any], steps: int, turns: int) -> dict[str, Any]:
        """Parameters of a run with repeats of so few steps: to measure by."""
        return {"WARMUP": 1, "STEPS": steps, "REPEATS": turns}

    def share(self, params: Any, constants: dict[str, Any]) -> float:
        """By the multiply-adds, where the task counts them."""
        usual = {"NETWORK": params.NETWORK, "PHASE": "step", BATCH: 1}
        if work := self.flop(params, constants | {BATCH: 1}):
            return work / self.flop(params, usual)
        return _passes(constants) / _passes(usual)

    def flop(self, params: Any, constants: dict[str, Any]) -> int | None:
        if not hasattr(params, "network"):
            return None
        return 2 * params.network(constants["NETWORK"]).MULTIPLY_ADDS * _passes(constants) * constants[BATCH]

    def size(self, constants: dict[str, Any]) -> str:
        repeats = f"{constants['REPEATS']} x {constants['STEPS']} steps"
        return f"{constants['NETWORK']}, {constants['PHASE']}, batch {constants['BATCHSIZE']}, {repeats}"

    def complete(self, metrics: SpeedMetrics, params: dict[str, Any], marked_j: float | None) -> None:
        if metrics.step_s:
            metrics.examples_per_s = round(params["BATCHSIZE"] / metrics.step_s, 1)

    def trouble(self, metrics: SpeedMetrics, params: dict[str, Any]) -> Trouble | None:
        return Trouble("diverged", "the last step has computed no finite number") if metrics.result is None else None


def _passes(constants: dict[str, Any]) -> int:
    """A gradient computes twice what a forward pass does; an update is next to nothing."""
    return 1 if constants["PHASE"] == "forward" else PASSES
