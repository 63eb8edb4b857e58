"""What the proofs of all kinds share: findings, the judge that collects them, and the level of weights."""

import numpy as np

from common.weights import WeightsError, check_weights
from rosetta.catalog import Row, unknown
from rosetta.files import Strict
from rosetta.tasks import Task

UNITS = dict.fromkeys(("mean", "variance", "spread", "steps"), " σ") | {
    "order": " x"
}  # of quantities; the others have none


class Finding(Strict):
    """What one level found. ``measured`` and ``tolerances`` have the same keys."""

    level: int
    passed: bool
    measured: dict[str, float | None] = {}
    tolerances: dict[str, float] = {}
    reason: str | None = None  # why it failed, in one line


class Judge:
    """Collects in ``finding`` the measurements of one level, the largest of each quantity, and the first reason to fail it."""

    def __init__(self, level: int, tolerances: dict[str, float] | None = None):
        self.finding = Finding(level=level, passed=True)
        self.tolerances = tolerances or {}
        self.place = ""  # what is looked at now, in front of the reason

    def fail(self, reason: str) -> None:
        if self.finding.passed:
            self.finding.passed, self.finding.reason = False, self.place + reason

    def at_most(self, quantity: str, value: float, what: str, tolerance: float | None = None) -> None:
        """Note a measured difference; one that is larger than its tolerance, or no number, fails the level."""
        limit = self.tolerances[quantity] if tolerance is None else tolerance
        largest = self.finding.measured.get(quantity, 0.0)
        known = largest is not None and np.isfinite(value)
        self.finding.measured[quantity] = max(float(value), largest) if known else None
        self.finding.tolerances[quantity] = limit
        if not value <= limit:
            self.fail(f"{what}: {value:.2g}, allowed {limit:.2g}")


def failed(levels: tuple[int, ...], reason: str) -> list[Finding]:
    """Levels that could not be looked at."""
    return [Finding(level=level, passed=False, reason=reason) for level in levels]


def tolerances(usual: dict[str, float], task: Task, row: Row) -> dict[str, float]:
    """A kind's tolerances, with the task's own and the looser ones of a row. Raises RosettaError for a quantity that is none."""
    own = task.tolerances | {quantity: looser.tolerance for quantity, looser in row.facts.looser.items()}
    for quantity in own.keys() - usual.keys():
        raise unknown(f"tolerance in notebooks/{task.key}/task.toml:", quantity, usual)
    return usual | own


def weights(judge: Judge, exported: dict, counted: int | None, network) -> bool:
    """Level 1: the exported weights have the canonical names and shapes, and the notebook counts as many trained numbers.

    network: the reference. It may have PARAMETERS, where not every number of WEIGHT_SHAPES is trained. Returns whether the names
    and shapes are right.
    """
    expected = getattr(network, "PARAMETERS", sum(int(np.prod(shape)) for shape in network.WEIGHT_SHAPES.values()))
    try:
        check_weights(exported, network.WEIGHT_SHAPES)
    except WeightsError as error:
        judge.fail(str(error))
    fits = judge.finding.passed
    judge.at_most("count", abs((counted or 0) - expected), f"{counted} parameters instead of {expected}", tolerance=0)
    return fits


def exact(array: np.ndarray) -> np.ndarray:
    """In float64, where it holds floating-point numbers."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array
