"""Proves kind ``train``, by two or three short runs of each notebook.

``trained``: three steps from given weights, nothing random. The run is given INITIAL_WEIGHTS, EPOCHS, N_TRAIN, BATCHSIZE, N_TEST and
what the task names in ``without_chance``. ``dropped``: many steps at a learning rate of 0 from the notebook's own initial weights, with
whatever is random as the notebook has it. It is given LR, EPOCHS, N_TRAIN, BATCHSIZE and N_TEST; what it saves in the end are the
initial weights. Where a network has no dropout that is one step, and a third run shows the order of the examples: see ``order``. All
save, in SAVE_TO, ``weights.npz`` and ``outputs.npy``: the probabilities of the test examples
(``common.weights.save_outputs``).

The reference of the task offers ``WEIGHT_SHAPES``, ``initial_weights(seed)``, ``initial_bound(name)`` (0 for what is 0 at first),
``train(weights, batches, constants)`` (the weights after a step a batch, and the loss before each), ``probabilities(weights, x)`` and,
where training is random, ``dropout_losses(weights, x, y, passes, rng)``. The task's ``data`` offers ``load(n_train=, n_test=, synthetic=)``.
"""

import importlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rosetta.catalog import Row
from rosetta.verify import levels, order, probes
from rosetta.verify.levels import Finding, Judge, exact, failed
from rosetta.verify.probes import Outputs, Prober

PROOF = 1  # raise it when a level asks for more: rows are proven again
LEVELS = {1: "weights", 2: "initial", 3: "forward", 4: "training", 5: "random"}
COLUMNS = {
    1: (),
    2: ("variance",),
    3: ("probability",),
    4: ("loss", "weights", "update"),
    5: ("mean", "spread", "steps", "order"),
}
TOLERANCES = {
    "probability": 1e-4,  # level 3, and 5 for the test: largest absolute difference
    "loss": 1e-4,  # level 4: largest absolute difference over the steps
    "weights": 1e-4,  # level 4: of each tensor after the steps, L2 norm of the difference by that of the tensor
    "update": 4e-3,  # level 4: the same of the tensors' change alone, their median; sees weight decay
    "bias": 0,  # level 2: largest number of what is 0 at first
    "bound": 1e-5,  # level 2: how far a weight lies beyond its bound, relative
    # Levels 2 and 5 compare random numbers: so many standard errors of the statistic are chance
    "mean": 5.0,
    "variance": 5.0,
    "spread": 5.0,
    "steps": 5.0,
    "order": 2.0,  # level 5: how many times nearer to the examples' own order than orders are by chance
}
SAVED = ("weights.npz", "outputs.npy")

STEPS, BATCH = 3, 64  # of ``trained``
# More than there are examples: the batch is a short one, where frameworks pad or divide by the wrong number
BATCHSIZE = 96
DROP_BATCH = 8  # of ``dropped``
REFERENCE_STEPS = 200  # as many losses the reference draws to compare with


@dataclass(frozen=True)
class Size:
    """How much of a row's probes there is."""

    # Notebooks evaluate 500 at once. A recorded step is made in its second call and replayed from the third on, and the last batch is short
    n_test: int
    drop_steps: int
    n_drop_test: int  # the test tells whether dropout is off then


USUAL = Size(n_test=1510, drop_steps=100, n_drop_test=100)
SLOW = Size(n_test=20, drop_steps=30, n_drop_test=20)  # where a step takes seconds: it shall end in a minute or two


class Reference(probes.Reference):
    """The task on the examples of the probes; what does not depend on the row is computed once."""

    def data(self, n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(x_train, y_train, x_test, y_test) as a notebook with these sizes loads them, in float64.

        Loaded for the very sizes: synthetic data depends on how much there is.
        """
        loader = importlib.import_module(f"common.data.{self.task.data}")
        return tuple(map(exact, loader.load(n_train=n_train, n_test=n_test, synthetic=self.synthetic)))

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        """The weights that ``trained`` starts from: initial ones, but with biases other than 0, so that each must be in its place.

        Rounded to the float32 that notebooks are given.
        """
        rng = np.random.RandomState(1)
        start = self.network.initial_weights(seed=1)
        start |= {name: rng.uniform(-0.1, 0.1, array.shape) for name, array in start.items() if array.ndim == 1}
        return {name: array.astype(np.float32).astype(np.float64) for name, array in start.items()}

    @cached_property
    def _trained(self) -> tuple[dict[str, np.ndarray], list[float]]:
        x, y, _, _ = self.data(BATCH, n_test=1)
        return self.network.train(self.start, [(x, y)] * STEPS, self.task.constants())

    def trained(self) -> tuple[dict[str, np.ndarray], list[float]]:
        """The weights after the steps, and the loss before each."""
        with self.lock:
            return self._trained

    def tested(self, weights: dict[str, np.ndarray], n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities, labels) of the test examples of a run of these sizes, with its weights."""
        _, _, x, y = self.data(n_train, n_test)
        return self.network.probabilities({name: exact(array) for name, array in weights.items()}, x), y

    @cached_property
    def _shuffled(self) -> tuple[order.Trained, list[order.Trained]]:
        return order.drawn(self)

    def shuffled(self) -> tuple[order.Trained, list[order.Trained]]:
        """What training on the examples in their own order leads to, and in others."""
        with self.lock:
            return self._shuffled

    @property
    def drops(self) -> bool:
        """Whether training is random by more than the order of the examples."""
        return hasattr(self.network, "dropout_losses")

    def dropped_losses(self, weights: dict[str, np.ndarray]) -> np.ndarray:
        """Losses with random dropout on the examples of ``dropped``; float32 is exact enough for what is random."""
        x, y, _, _ = self.data(DROP_BATCH, n_test=1)
        x = x.astype(np.float32) if x.dtype.kind == "f" else x
        weights = {name: array.astype(np.float32) for name, array in weights.items()}
        return self.network.dropout_losses(weights, x, y, REFERENCE_STEPS, np.random.RandomState(3))


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    size = SLOW if row.facts.slow_on_cpu and not gpu else USUAL
    tolerances = levels.tolerances(TOLERANCES, reference.task, row)
    first = trained(probe, reference, size)
    if first.skipped:
        return [], first
    findings = of_trained(first, reference, tolerances, size)
    findings += of_dropped(dropped(probe, reference, size), reference, tolerances, size)
    if not reference.drops:
        findings += of_shuffled(order.shuffled(probe, reference, size.n_drop_test), reference, tolerances)
    return sorted(findings, key=lambda finding: finding.level), first


def trained(probe: Prober, reference: Reference, size: Size) -> Outputs:
    sizes = {"EPOCHS": STEPS, "N_TRAIN": BATCH, "BATCHSIZE": BATCHSIZE, "N_TEST": size.n_test}
    return probes.from_weights(probe, reference.start, reference.task.without_chance | sizes)


def dropped(probe: Prober, reference: Reference, size: Size) -> Outputs:
    steps = size.drop_steps if reference.drops else 1
    sizes = {"EPOCHS": steps, "N_TRAIN": DROP_BATCH, "BATCHSIZE": DROP_BATCH, "N_TEST": size.n_drop_test}
    return probe({"LR": 0.0} | sizes)


def of_trained(outputs: Outputs, reference: Reference, tolerances: dict, size: Size) -> list[Finding]:
    """Levels 1, 3 and 4."""
    if outputs.error:
        return failed((1, 3, 4), outputs.error)
    metrics, first = outputs.record.metrics, Judge(1)
    if not levels.weights(first, outputs.weights, metrics.parameters, reference.network):
        return [first.finding, *failed((3, 4), "the weights are not those of this network")]
    expected, losses = reference.trained()
    probabilities, labels = reference.tested(outputs.weights, BATCH, size.n_test)
    return [
        first.finding,
        forward(outputs.outputs, probabilities, labels, metrics.accuracy, tolerances),
        training(outputs.weights, metrics.loss, reference.start, expected, losses, tolerances),
    ]


def of_dropped(outputs: Outputs, reference: Reference, tolerances: dict, size: Size) -> list[Finding]:
    """Level 2, and 5 where there is dropout."""
    network = reference.network
    own = (2, 5) if reference.drops else (2,)
    if outputs.error:
        return failed(own, outputs.error)
    if not levels.weights(Judge(1), outputs.weights, outputs.record.metrics.parameters, network):
        return failed(own, "the weights are not those of this network")
    findings = [initial(outputs.weights, network.initial_bound, tolerances)]
    if 5 in own:
        losses = reference.dropped_losses(outputs.weights)
        probabilities, _ = reference.tested(outputs.weights, DROP_BATCH, size.n_drop_test)
        findings.append(dropout(outputs.record.metrics.loss, losses, outputs.outputs, probabilities, tolerances))
    return findings


def of_shuffled(outputs: Outputs, reference: Reference, tolerances: dict) -> list[Finding]:
    """Level 5 where there is no dropout."""
    if outputs.error:
        return failed((5,), outputs.error)
    metrics = outputs.record.metrics
    if not levels.weights(Judge(1), outputs.weights, metrics.parameters, reference.network):
        return failed((5,), "the weights are not those of this network")
    return [order.judged(metrics.loss, outputs.weights, reference, tolerances)]


def initial(fresh: dict, bound, tolerances: dict) -> Finding:
    """Level 2: uniform weights, by their bound, mean and variance. ``bound``: name -> the bound; 0 of what is 0."""
    judge = Judge(2, tolerances)
    for name, array in fresh.items():
        array = exact(array)
        if not bound(name):
            judge.at_most("bias", np.abs(array).max(), f"{name} is not zero")
            continue
        scaled = array / bound(name)  # uniform in [-1, 1]: mean 0, variance 1/3, that of the squares 4/45
        excess = np.abs(scaled).max() - 1
        mean = np.abs(scaled.mean()) / np.sqrt(1 / 3 / scaled.size)
        variance = np.abs((scaled**2).mean() - 1 / 3) / np.sqrt(4 / 45 / scaled.size)
        for quantity, value in (("bound", excess), ("mean", mean), ("variance", variance)):
            judge.at_most(quantity, value, f"{name} is not uniform within its bound, by its {quantity}")
    return judge.finding


def forward(mine, reference, labels, accuracy: float | None, tolerances: dict) -> Finding:
    """Level 3: the notebook's test probabilities are the reference's with the same weights, and its accuracy is theirs."""
    judge = Judge(3, tolerances)
    _same_probabilities(judge, mine, reference)
    if judge.finding.passed:
        hits = float((np.argmax(mine, axis=1) == labels).mean())
        difference = abs(hits - (accuracy or 0.0))
        judge.at_most("accuracy", difference, "the accuracy is not that of the probabilities", 0.5 / len(labels))
    return judge.finding


def training(mine: dict, losses: list, start: dict, reference: dict, expected: list, tolerances: dict) -> Finding:
    """Level 4: after a few steps from the same start, the losses and every tensor are the reference's."""
    judge = Judge(4, tolerances)
    losses = np.array(losses, float)  # None becomes NaN
    if losses.shape != (len(expected),):
        judge.fail(f"{len(losses)} steps instead of {len(expected)}")
        return judge.finding
    judge.at_most("loss", np.abs(losses - expected).max(), "the losses differ")
    changes = []
    for name, wanted in reference.items():
        judge.at_most("weights", _distance(mine[name], wanted, wanted), f"{name} differs")
        if wanted.ndim > 1:
            changes.append(_distance(mine[name], wanted, wanted - start[name]))
    # Steps change a tensor by a thousandth, so what acts on all weights alike hides behind their size. The median, because
    # where pixels of a pooling window tie, frameworks may differ in the gradients of the layers below.
    judge.at_most("update", float(np.median(changes)), "the change of the weights differs")
    return judge.finding


def dropout(losses: list, expected, mine, reference, tolerances: dict) -> Finding:
    """Level 5: with fixed weights the losses of training scatter as the reference's do, and the test knows no dropout.

    losses: of many steps on the same examples at a learning rate of 0; expected: the reference's, with random masks.
    """
    judge = Judge(5, tolerances)
    losses = np.array(losses, float)  # None becomes NaN
    if len(losses) < 2:
        judge.fail(f"only {len(losses)} steps")
        return judge.finding
    spread, wanted = losses.std(ddof=1), expected.std(ddof=1)
    shift = abs(losses.mean() - expected.mean()) / (wanted * np.sqrt(1 / len(losses) + 1 / len(expected)))
    # the logarithm of a standard deviation from n normal numbers has a standard error of 1 / sqrt(2 n)
    log_ratio = abs(np.log(max(spread, 1e-12) / wanted)) if np.isfinite(spread) else np.nan
    scatter = log_ratio / np.sqrt(0.5 / len(losses) + 0.5 / len(expected))
    if np.ptp(losses) < tolerances["loss"] < wanted:
        judge.fail("the losses are all the same: is dropout off in training?")
    judge.at_most("mean", shift, f"mean loss {losses.mean():.4f} instead of {expected.mean():.4f}, in sigmas")
    judge.at_most("spread", scatter, f"losses scatter by {spread:.4f} instead of {wanted:.4f}, in sigmas")
    _same_probabilities(judge, mine, reference)
    return judge.finding


def _same_probabilities(judge: Judge, mine, reference) -> None:
    if mine.shape != reference.shape:
        judge.fail(f"test probabilities of shape {mine.shape} instead of {reference.shape}")
    else:
        judge.at_most("probability", np.abs(mine - reference).max(), "test probabilities differ")


def _distance(mine, reference, scale) -> float:
    return float(np.linalg.norm(mine - reference) / np.linalg.norm(scale))
