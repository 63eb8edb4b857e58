"""The five levels: what a row's probes have left, held against the reference. Pure functions of arrays.

1 names, shapes and count of the weights; 2 initial weights; 3 forward; 4 training; 5 dropout.
"""

from dataclasses import dataclass, field

import numpy as np
from pydantic import BaseModel, ConfigDict

from common.weights import WeightsError, check_weights

LEVELS = {1: "weights", 2: "initial", 3: "forward", 4: "training", 5: "dropout"}

# What a row may differ by. A row that needs more says so in the catalog, with the reason.
TOLERANCES = {
    "probability": 1e-4,  # level 3, and 5 for the test: largest absolute difference
    "loss": 1e-4,  # level 4: largest absolute difference over the steps
    "weights": 1e-4,  # level 4: of each tensor after the steps, L2 norm of the difference by that of the tensor
    "update": 4e-3,  # level 4: the same of the tensors' change alone, their median; sees weight decay
}
# Level 2 and 5 compare random numbers: so many standard errors of the statistic are chance
SIGMAS = 5.0


class Finding(BaseModel):
    """What one level found. ``measured`` and ``tolerances`` have the same keys."""

    model_config = ConfigDict(extra="forbid")

    level: int
    passed: bool
    measured: dict[str, float | None] = {}
    tolerances: dict[str, float] = {}
    reason: str | None = None  # why it failed, in one line


@dataclass
class Judge:
    """Collects the measurements of one level and the first reason to fail it."""

    level: int
    tolerances: dict[str, float]
    measured: dict[str, float | None] = field(default_factory=dict)
    allowed: dict[str, float] = field(default_factory=dict)
    reason: str | None = None

    def fail(self, reason: str) -> None:
        self.reason = self.reason or reason

    def at_most(self, quantity: str, value: float, what: str, tolerance: float | None = None) -> None:
        """Note a measured difference; one that is larger than its tolerance, or no number, fails the level."""
        limit = self.tolerances[quantity] if tolerance is None else tolerance
        self.measured[quantity] = float(value) if np.isfinite(value) else None
        self.allowed[quantity] = limit
        if not value <= limit:
            self.fail(f"{what}: {value:.2g}, allowed {limit:.2g}")

    def finding(self) -> Finding:
        return Finding(
            level=self.level,
            passed=self.reason is None,
            measured=self.measured,
            tolerances=self.allowed,
            reason=self.reason,
        )


def failed(level: int, reason: str) -> Finding:
    """A level that could not be looked at because its probe did not end well."""
    return Finding(level=level, passed=False, reason=reason)


def weights(exported: dict, counted: int | None, shapes: dict) -> Finding:
    """Level 1: the exported weights have the canonical names and shapes, and the notebook counts as many numbers."""
    judge = Judge(1, {})
    try:
        check_weights(exported, shapes)
    except WeightsError as error:
        judge.fail(str(error))
    expected = sum(int(np.prod(shape)) for shape in shapes.values())
    judge.at_most("count", abs((counted or 0) - expected), f"{counted} parameters instead of {expected}", tolerance=0)
    return judge.finding()


def initial(fresh: dict, bound) -> Finding:
    """Level 2: Glorot uniform weights, by their bound, mean and variance; biases zero. ``bound``: shape -> Glorot's bound."""
    judge = Judge(2, {})
    for name, array in fresh.items():
        array = np.asarray(array, np.float64)
        if array.ndim == 1:
            judge.at_most("bias", np.abs(array).max(), f"{name} is not zero", tolerance=0)
            continue
        scaled = array / bound(array.shape)  # uniform in [-1, 1]: mean 0, variance 1/3, that of the squares 4/45
        excess = np.abs(scaled).max() - 1
        mean = np.abs(scaled.mean()) / np.sqrt(1 / 3 / scaled.size)
        variance = np.abs((scaled**2).mean() - 1 / 3) / np.sqrt(4 / 45 / scaled.size)
        for quantity, value, limit in (("bound", excess, 1e-5), ("mean", mean, SIGMAS), ("variance", variance, SIGMAS)):
            worst = max(value, judge.measured.get(quantity) or 0.0)
            judge.at_most(quantity, worst, f"{name} is not Glorot uniform by its {quantity}", limit)
    return judge.finding()


def forward(mine, reference, labels, accuracy: float | None, tolerances: dict) -> Finding:
    """Level 3: the notebook's test probabilities are the reference's with the same weights, and its accuracy is theirs."""
    judge = Judge(3, tolerances)
    _same_probabilities(judge, mine, reference)
    if judge.reason is None:
        hits = float((np.argmax(mine, axis=1) == labels).mean())
        judge.at_most(
            "accuracy",
            abs(hits - (accuracy or 0.0)),
            "the accuracy is not that of the probabilities",
            0.5 / len(labels),
        )
    return judge.finding()


def training(mine: dict, losses: list, start: dict, reference: dict, expected: list, tolerances: dict) -> Finding:
    """Level 4: after a few steps of momentum from the same start, the losses and every tensor are the reference's."""
    judge = Judge(4, tolerances)
    losses = np.array([np.nan if loss is None else loss for loss in losses])
    if losses.shape != (len(expected),):
        judge.fail(f"{len(losses)} steps instead of {len(expected)}")
        return judge.finding()
    judge.at_most("loss", np.abs(losses - expected).max(), "the losses differ")
    relative = {name: _distance(mine[name], reference[name], reference[name]) for name in reference}
    worst = max(relative, key=lambda name: np.nan_to_num(relative[name], nan=np.inf))
    judge.at_most("weights", relative[worst], f"{worst} differs")
    # Steps change a tensor by a thousandth, so what acts on all weights alike hides behind their size. The median, because
    # where pixels of a pooling window tie, frameworks may differ in the gradients of the layers below.
    changes = [
        _distance(mine[name], reference[name], reference[name] - start[name])
        for name in reference
        if reference[name].ndim > 1
    ]
    judge.at_most("update", float(np.median(changes)), "the change of the weights differs")
    return judge.finding()


def dropout(losses: list, expected, mine, reference, tolerances: dict) -> Finding:
    """Level 5: with fixed weights the losses of training scatter as the reference's do, and the test knows no dropout.

    losses: of many steps on the same images at a learning rate of 0; expected: the reference's, with random masks.
    """
    judge = Judge(5, tolerances)
    losses = np.array([np.nan if loss is None else loss for loss in losses])
    if len(losses) < 2:
        judge.fail(f"only {len(losses)} steps")
        return judge.finding()
    spread, wanted = losses.std(ddof=1), expected.std(ddof=1)
    shift = abs(losses.mean() - expected.mean()) / (wanted * np.sqrt(1 / len(losses) + 1 / len(expected)))
    # the logarithm of a standard deviation from n normal numbers has a standard error of 1 / sqrt(2 n)
    log_ratio = abs(np.log(max(spread, 1e-12) / wanted)) if np.isfinite(spread) else np.nan
    scatter = log_ratio / np.sqrt(0.5 / len(losses) + 0.5 / len(expected))
    judge.at_most("mean", shift, f"mean loss {losses.mean():.4f} instead of {expected.mean():.4f}, in sigmas", SIGMAS)
    judge.at_most("spread", scatter, f"losses scatter by {spread:.4f} instead of {wanted:.4f}, in sigmas", SIGMAS)
    _same_probabilities(judge, mine, reference)
    return judge.finding()


def _same_probabilities(judge: Judge, mine, reference) -> None:
    if mine.shape != reference.shape:
        judge.fail(f"test probabilities of shape {mine.shape} instead of {reference.shape}")
    else:
        judge.at_most("probability", np.abs(mine - reference).max(), "test probabilities differ")


def _distance(mine, reference, scale) -> float:
    return float(np.linalg.norm(mine - reference) / np.linalg.norm(scale))
