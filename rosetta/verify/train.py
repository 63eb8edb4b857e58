"""Proves kind ``train``, by three or four short runs of each notebook.

``trained``: three steps from given weights, nothing random. The run is given INITIAL_WEIGHTS, EPOCHS, N_TRAIN, BATCHSIZE, N_TEST and
what the task names in ``without_chance``. ``fresh``: one step at a learning rate of 0 from the notebook's own initial weights; what it
saves in the end are the initial weights. ``shuffled``: a few epochs on five examples in two batches, of which the second is short,
nothing random but the order of the examples. ``dropped``, where the network has dropout: many steps at a learning rate of 0, from weights
for which all examples are alike, so that only the masks of dropout make the losses differ. All save, in SAVE_TO, ``weights.npz`` and
``outputs.npy``: the probabilities of the test examples (``common.weights.save_outputs``).

The reference of the task offers ``WEIGHT_SHAPES``, ``initial_weights(seed)``, ``initial_bound(name)`` (0 for what is 0 at first),
``train(weights, batches, constants)`` (the weights after a step a batch, and the loss before each), ``probabilities(weights, x)``;
where initial weights would hide a mistake, ``given_weights(seed)`` for the runs to start from; and where training has dropout, ``dropout_losses(weights, x, y, passes, rng)`` and ``weights_for_masks(weights, y)`` (with which all examples,
of labels y, are alike). The task's ``data`` offers ``load(n_train=, n_test=, synthetic=)``; where it has none, the reference offers
``data(n_train, n_test)``.

A reference may have ``PROBE``: parameters of all runs in the place of those above. Then ``train`` takes the examples of an epoch in the
place of a batch. With it goes ``ORDER``, what ``shuffled`` has over PROBE, and ``orders(weights, x, y, constants)``: the losses that an
epoch can have at a learning rate of 0. ``score(outputs, labels)`` is there where the share of right classes is not what is told. In the task's mistakes, the values of FORWARD
offer ``probabilities(weights, x)``, those of TRAINING ``train(weights, batches, constants)``.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

from common.reference import mistakes as shared
from common.weights import save_weights
from rosetta.catalog import Row
from rosetta.verify import proof
from rosetta.verify.proof import (
    CERTAIN,
    GUESS,
    Bench,
    Crossing,
    Finding,
    Judge,
    Outputs,
    Prober,
    Replay,
    cast,
    cast_all,
    failed,
    from_weights,
    misplaced,
    named,
    spoken_of,
    tolerances,
    transposed,
)

PROOF = 2  # raise it when a level asks for more: rows are proven again
LEVELS = {1: "weights", 2: "initial", 3: "forward", 4: "training", 5: "random"}
COLUMNS = {
    1: (),
    2: ("variance",),
    3: ("probability",),
    4: ("loss", "weights", "update"),
    5: ("mean", "spread", "order"),
}
# At most ten times what rows measure, on CPUs and on an H200; more for ``bound``, where float32 itself rounds so much
TOLERANCES = {
    "probability": 2e-6,  # level 3, and 5 for the test: largest absolute difference
    "loss": 2e-5,  # level 4: largest absolute difference over the steps
    "weights": 5e-5,  # level 4: of each tensor after the steps, L2 norm of the difference by that of the tensor
    "update": 4e-3,  # level 4: the same of each tensor's change alone; sees weight decay of a layer
    "bias": 0,  # level 2: largest number of what is 0 at first
    "bound": 2e-7,  # level 2: how far a weight lies beyond its bound, relative: as much as float32 rounds
    # Levels 2 and 5 compare random numbers: so many standard errors of the statistic are chance
    "mean": 5.0,
    "variance": 5.0,
    "spread": 5.0,
    # Level 5: difference of an epoch's mean loss from that of the nearest order of the examples. It is 7e-5 where rounding has made
    # another value the largest of a pooling window
    "order": 2e-4,
}

STEPS, BATCH = 3, 64  # of ``trained``
# More than there are examples: the batch is a short one, where frameworks pad or divide by the wrong number
BATCHSIZE = 96
DROP_BATCH = 8  # of ``dropped``
FEW = 20  # test examples where the test is not looked at
REFERENCE_STEPS = 200  # as many losses the reference draws to compare with
# Of ``shuffled``. Chance repeats the order of the first epoch in all others once in 10,000 times
EXAMPLES, LONG_BATCH, EPOCHS = 5, 3, 5
FOLLOWED = 2  # epochs whose order is looked for: later losses differ by what rounding has turned before
# An order: the examples of the first batch, the others follow
FIRST_BATCHES = list(combinations(range(EXAMPLES), LONG_BATCH))

Weights = dict[str, np.ndarray]
OTHER_WEIGHTS = "the weights are not those of this network"


@dataclass(frozen=True)
class Size:
    """How much of a row's probes there is."""

    # Notebooks evaluate 500 at once. A recorded step is made in its second call and replayed from the third on, and the last batch is short
    n_test: int
    drop_steps: int
    n_drop_test: int  # the test tells whether dropout is off then


USUAL = Size(n_test=1510, drop_steps=100, n_drop_test=100)
SLOW = Size(n_test=20, drop_steps=30, n_drop_test=20)  # where a step takes seconds: it shall end in a minute or two


class Reference(proof.Reference):
    """The task on the examples of the probes; what does not depend on the row is computed once."""

    def data(self, n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(x_train, y_train, x_test, y_test) as a notebook with these sizes loads them, in float64.

        Loaded for the very sizes: synthetic data depends on how much there is.
        """
        if self.task.data is None:
            return tuple(map(cast, self.network.data(n_train, n_test)))
        loader = importlib.import_module(f"common.data.{self.task.data}")
        return tuple(map(cast, loader.load(n_train=n_train, n_test=n_test, synthetic=self.synthetic)))

    @property
    def probe(self) -> dict[str, Any]:
        """Parameters of all runs, where the reference has some."""
        return getattr(self.network, "PROBE", {})

    @property
    def sizes(self) -> dict[str, Any]:
        """Parameters of ``trained``."""
        return {"EPOCHS": STEPS, "N_TRAIN": BATCH, "BATCHSIZE": BATCHSIZE} | self.probe

    @property
    def constants(self) -> dict[str, Any]:
        """Of the task, as ``trained`` has them."""
        return self.task.constants() | self.sizes

    @cached_property
    def start(self) -> Weights:
        """The weights that ``trained`` starts from: initial ones, but with biases other than 0, so that each must be in its place.

        Rounded to the float32 that notebooks are given.
        """
        if hasattr(self.network, "given_weights"):
            return cast_all(cast_all(self.network.given_weights(seed=1), np.float32))
        rng = np.random.RandomState(1)
        start = self.network.initial_weights(seed=1)
        start |= {name: rng.uniform(-0.1, 0.1, array.shape) for name, array in start.items() if array.ndim == 1}
        return cast_all(cast_all(start, np.float32))

    def tested(self, weights: Weights, n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities, labels) of the test examples of a run of these sizes, with its weights."""
        _, _, x, y = self.data(n_train, n_test)
        return self.network.probabilities(cast_all(weights), x), y

    @cached_property
    def mistakes(self) -> SimpleNamespace:
        """The task's own, and behind them those that any classifier knows."""
        found = super().mistakes
        if self.probe:  # its epochs are no batches, and its labels no classes
            return found
        x, _, _, _ = self.data(BATCH, n_test=1)
        classes = self.network.probabilities(self.start, x[:1]).shape[1]
        of_any = shared.of_any(self.network.train, classes, self.task.constants())
        found.TRAINING = {**found.TRAINING, **{name: one for name, one in of_any.items() if name not in found.TRAINING}}
        return found


def judge(row: Row, probe: Prober, reference: Reference, gpu: bool) -> tuple[list[Finding], Outputs]:
    size = SLOW if row.facts.slow_on_cpu and not gpu else USUAL
    limits = tolerances(TOLERANCES, reference.task, row)
    findings, first = trained(probe, reference, limits, size)
    if first.skipped:
        return [], first
    fifth = Judge(5, limits)
    fourth = findings[-1]
    if fourth.measured and not fourth.passed:  # an order is told by the losses that it leads to
        fifth.fail("the order of the examples is not judged where level 4 fails")
    else:
        shuffled(probe, reference, fifth)
    if hasattr(reference.network, "dropout_losses"):
        dropped(probe, reference, fifth, size)
    findings += [fresh(probe, reference, limits), fifth.finding]
    return sorted(findings, key=lambda finding: finding.level), first


# ---- The runs: what the levels find that each shows, and what it has left


def trained(probe: Prober, reference: Reference, limits: dict, size: Size) -> tuple[list[Finding], Outputs]:
    """Levels 1, 3 and 4."""
    sizes = {"N_TEST": size.n_test} | reference.sizes
    outputs = from_weights(probe, reference.start, reference.task.without_chance | sizes)
    if outputs.error:
        return failed((1, 3, 4), outputs.error), outputs
    metrics, first = outputs.record.metrics, Judge(1)
    if not outputs.fit(reference.network, first):
        return [first.finding, *failed((3, 4), OTHER_WEIGHTS)], outputs
    probabilities, labels = reference.tested(outputs.weights, sizes["N_TRAIN"], sizes["N_TEST"])
    score = getattr(reference.network, "score", right)  # what a notebook tells of its outputs and the labels
    third = forward(outputs.outputs, probabilities, labels, metrics.accuracy, limits, score)
    fourth = training(outputs.weights, metrics.loss, reference.start, *reference.once(_steps), limits)
    return [first.finding, third, fourth], outputs


def fresh(probe: Prober, reference: Reference, limits: dict) -> Finding:
    """Level 2."""
    sizes = {"N_TRAIN": DROP_BATCH, "BATCHSIZE": DROP_BATCH, "N_TEST": FEW} | reference.probe
    outputs = probe(sizes | {"LR": 0.0, "EPOCHS": 1})
    if outputs.error or not outputs.fit(reference.network, Judge(1)):
        return failed((2,), outputs.error or OTHER_WEIGHTS)[0]
    return initial(outputs.weights, reference.network.initial_bound, limits)


def shuffled(probe: Prober, reference: Reference, fifth: Judge) -> None:
    """Level 5, the order of the examples."""
    sizes = {"EPOCHS": EPOCHS, "N_TRAIN": EXAMPLES, "BATCHSIZE": LONG_BATCH, "N_TEST": FEW}
    parameters = reference.task.without_chance | sizes
    if reference.probe:
        parameters = reference.probe | {"EPOCHS": EPOCHS, "LR": 0.0} | reference.network.ORDER
    outputs = from_weights(probe, reference.start, parameters)
    if outputs.error or not outputs.fit(reference.network, Judge(1)):
        fifth.fail(outputs.error or OTHER_WEIGHTS)
    elif reference.probe:
        epochs_apart(outputs.record.metrics.loss, reference, fifth)
    else:
        order(outputs.record.metrics.loss, reference, fifth)


def dropped(probe: Prober, reference: Reference, fifth: Judge, size: Size) -> None:
    """Level 5, dropout."""
    x, y, _, _ = reference.data(DROP_BATCH, n_test=1)
    start = reference.network.weights_for_masks(reference.start, y)
    sizes = {"EPOCHS": size.drop_steps, "N_TRAIN": DROP_BATCH, "BATCHSIZE": DROP_BATCH, "N_TEST": size.n_drop_test}
    outputs = from_weights(probe, start, {"LR": 0.0} | sizes)
    if outputs.error or not outputs.fit(reference.network, Judge(1)):
        fifth.fail(outputs.error or OTHER_WEIGHTS)
        return
    losses = reference.once(_dropout_losses)
    probabilities, _ = reference.tested(start, DROP_BATCH, size.n_drop_test)
    dropout(outputs.record.metrics.loss, losses, outputs.outputs, probabilities, fifth)


def _dropout_losses(reference: Reference) -> np.ndarray:
    """Training losses of the batch of ``dropped`` under random masks."""
    x, y, _, _ = reference.data(DROP_BATCH, n_test=1)
    weights = reference.network.weights_for_masks(reference.start, y)
    weights, x = cast_all(weights, np.float32), cast(x, np.float32)  # will do: it is random
    return reference.network.dropout_losses(weights, x, y, REFERENCE_STEPS, np.random.RandomState(3))


def _steps(reference: Reference) -> tuple[Weights, list[float]]:
    """The weights after the steps of ``trained``, and the loss before each."""
    x, y, _, _ = reference.data(reference.sizes["N_TRAIN"], n_test=1)
    return reference.network.train(reference.start, [(x, y)] * reference.sizes["EPOCHS"], reference.constants)


# ---- The levels. Losses are numbers, one an epoch, and there is an accuracy: else the run has failed (``Train.trouble``)


def initial(fresh: dict, bound, tolerances: dict) -> Finding:
    """Level 2: uniform weights, by their bound, mean and variance. ``bound``: name -> the bound; 0 of what is 0; None: not looked at."""
    judge = Judge(2, tolerances)
    for name, array in fresh.items():
        array = cast(array)
        if bound(name) is None:
            continue
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


def right(outputs, labels) -> float:
    """The share of the examples that are classified rightly."""
    return float((np.argmax(outputs, axis=1) == labels).mean())


def forward(mine, reference, labels, accuracy: float, tolerances: dict, score: Callable = right) -> Finding:
    """Level 3: the notebook's test probabilities are the reference's with the same weights, and its accuracy is theirs."""
    judge = Judge(3, tolerances)
    _same_probabilities(judge, mine, reference)
    if judge.finding.passed:
        difference = abs(score(mine, labels) - accuracy)
        judge.at_most("accuracy", difference, "the accuracy is not that of the probabilities", 0.5 / len(labels))
    return judge.finding


def training(mine: dict, losses: list, start: dict, reference: dict, expected: list, tolerances: dict) -> Finding:
    """Level 4: after a few steps from the same start, the losses and every tensor are the reference's."""
    judge = Judge(4, tolerances)
    judge.at_most("loss", np.abs(np.subtract(losses, expected)).max(), "the losses differ")
    for name, wanted in reference.items():
        difference, change = np.linalg.norm(mine[name] - wanted), np.linalg.norm(wanted - start[name])
        judge.at_most("weights", difference / np.linalg.norm(wanted), f"{name} differs")
        # Steps change a tensor by a thousandth, so what acts on all its weights alike hides behind their size
        if change:  # a known mistake may leave a tensor as it is
            judge.at_most("update", difference / change, f"the change of {name} differs")
    return judge.finding


def dropout(losses: list, expected, mine, reference, judge: Judge) -> None:
    """Level 5: with fixed weights the losses of training scatter as the reference's do, and the test knows no dropout.

    losses: of many steps on the same examples at a learning rate of 0; expected: the reference's, with random masks.
    """
    losses = np.array(losses)
    spread, wanted = losses.std(ddof=1), expected.std(ddof=1)
    shift = abs(losses.mean() - expected.mean()) / (wanted * np.sqrt(1 / len(losses) + 1 / len(expected)))
    # the logarithm of a standard deviation from n normal numbers has a standard error of 1 / sqrt(2 n)
    scatter = abs(np.log(max(spread, 1e-12) / wanted)) / np.sqrt(0.5 / len(losses) + 0.5 / len(expected))
    if np.ptp(losses) < judge.tolerances["loss"] < wanted:
        judge.fail("the losses are all the same: is dropout off in training, or are its masks the same in every step?")
    judge.at_most("mean", shift, f"mean loss {losses.mean():.4f} instead of {expected.mean():.4f}, in sigmas")
    judge.at_most("spread", scatter, f"losses scatter by {spread:.4f} instead of {wanted:.4f}, in sigmas")
    _same_probabilities(judge, mine, reference)


def order(losses: list, reference: Reference, judge: Judge) -> None:
    """Level 5: every epoch has each example once, the batches weigh by their sizes, and the order is another one in each epoch.

    losses: one an epoch. There are so few orders that the reference tries them all: one of them leads to just this loss.
    """
    path: tuple = ()
    for epoch, loss in enumerate(losses[:FOLLOWED]):
        means = np.array([reference.once(_means, (*path, batch))[epoch] for batch in FIRST_BATCHES])
        nearest = int(np.argmin(np.abs(means - loss)))
        path = (*path, FIRST_BATCHES[nearest])
        what = (
            f"no order of {EXAMPLES} examples in batches of {LONG_BATCH} leads to the loss {loss:.6g} of epoch {epoch + 1} "
            f"({means[nearest]:.6g} is nearest): is an example left out or taken twice, or is it a mean of the batches' means"
        )
        judge.at_most("order", abs(means[nearest] - loss), what)
    repeated = np.array([reference.once(_means, (batch,) * len(losses)) for batch in FIRST_BATCHES])
    distances = np.abs(repeated - losses).max(axis=1)
    # Not within the tolerance: what rounding has turned grows from epoch to epoch. Fresh orders lie several times as far away
    nearest, near = int(distances.argmin()), told_apart(reference, len(losses)) / 2
    if distances[nearest] <= near and judge.tolerances["order"] < near:
        which = "the order that they are stored in" if nearest == 0 else "the same order"
        judge.fail(f"all {len(losses)} epochs take the examples in {which}: are they shuffled anew in each epoch?")


def epochs_apart(losses: list, reference: Reference, judge: Judge) -> None:
    """Level 5 where no weight changes: each loss is that of some choice of the examples, and the epochs choose differently.

    losses: one an epoch.
    """
    possible = np.array(reference.once(_orders))
    for epoch, loss in enumerate(losses, start=1):
        nearest = possible[np.abs(possible - loss).argmin()]
        what = f"no choice of the examples has the loss {loss:.6g} of epoch {epoch} ({nearest:.6g} is nearest): is one taken twice"
        judge.at_most("order", abs(nearest - loss), what)
    if np.ptp(losses) < np.diff(possible).min() / 2:
        judge.fail(f"all {len(losses)} epochs take the same examples: are they shuffled anew in each epoch?")


def _orders(reference: Reference) -> list[float]:
    constants = reference.constants | reference.network.ORDER
    x, y, _, _ = reference.data(constants["N_TRAIN"], n_test=1)
    return reference.network.orders(reference.start, x, y, constants)


def told_apart(reference: Reference, epochs: int = EPOCHS) -> float:
    """How far the losses of two runs lie apart at least, of which each repeats an order of its own.

    Where a row's tolerance is wider (BF16), level 5 cannot tell whether it shuffles anew: its reason in task.toml says so.
    """
    repeated = [np.array(reference.once(_means, (batch,) * epochs)) for batch in FIRST_BATCHES]
    return min(float(np.abs(one - other).max()) for one, other in combinations(repeated, 2))


def _means(reference: Reference, batches: tuple[tuple[int, ...], ...]) -> list[float]:
    """The mean loss of each epoch. batches: the examples of the first batch, epoch by epoch."""
    x, y, _, _ = reference.data(EXAMPLES, n_test=1)
    parts = [part for first in batches for part in (list(first), [i for i in range(EXAMPLES) if i not in first])]
    _, losses = reference.network.train(reference.start, [(x[part], y[part]) for part in parts], reference.constants)
    return list(np.average(np.reshape(losses, (-1, 2)), axis=1, weights=[LONG_BATCH, EXAMPLES - LONG_BATCH]))


def _same_probabilities(judge: Judge, mine, reference) -> None:
    if mine.shape != reference.shape:
        judge.fail(f"test probabilities of shape {mine.shape} instead of {reference.shape}")
    else:
        judge.at_most("probability", np.abs(mine - reference).max(), "test probabilities differ")


# ---- Diagnosis: known mistakes are replayed on what ``trained`` has left, in float32 and on few examples

LOOKED_AT, REPLAYED = 100, 16  # of the test: of the first so many those that are off most


def diagnose(findings: list[Finding], outputs: Outputs, reference: Reference, row: Row) -> dict[int, str]:
    """What is known of the failed levels: level -> sentence. outputs: what ``trained`` has left."""
    failing = {finding.level: finding for finding in findings if not finding.passed}
    limits, level, said = tolerances(TOLERANCES, reference.task, row), min(failing, default=0), None
    if outputs.weights is None:
        said = spoken_of(outputs.error or "", reference.mistakes, BATCH)
    elif 1 in failing:
        said = transposed(outputs.weights, reference.network.WEIGHT_SHAPES)
    elif 3 in failing and "accuracy" not in failing[3].measured:  # the network's mistakes show in training, too
        level, said = 3, _forward(outputs, reference, limits)
    elif 4 in failing:
        level, said = 4, _training(failing[4], outputs, reference, limits)
    return {level: said} if said else {}


def _forward(outputs: Outputs, reference: Reference, limits: dict) -> str | None:
    _, _, x, _ = reference.data(reference.sizes["N_TRAIN"], outputs.record.params["N_TEST"])
    mine, weights = outputs.outputs, cast_all(outputs.weights, np.float32)
    first = cast(x[: min(LOOKED_AT, len(mine))], np.float32)
    right = reference.network.probabilities(weights, first)
    if mine.shape[1:] != right.shape[1:]:
        return None
    if said := misplaced(mine, right, len(x), limits["probability"]):
        return said
    worst = np.argsort(np.abs(mine[: len(first)] - right).max(axis=1))[-REPLAYED:]

    def judged(network: Any) -> Finding:
        judge = Judge(3, limits)
        _same_probabilities(judge, mine[worst], network.probabilities(weights, first[worst]))
        return judge.finding

    mistakes = reference.mistakes.FORWARD.items()
    return named(judged(reference.network), ((name, judged(network)) for name, network in mistakes))


def _training(failing: Finding, outputs: Outputs, reference: Reference, limits: dict) -> str:
    losses, (_, expected), (start, _) = outputs.record.metrics.loss, reference.once(_steps), reference.once(_first_step)
    numbers = _compared(losses, expected, limits["loss"])
    if all(np.array_equal(outputs.weights[name], array) for name, array in start.items()):
        if abs(losses[0] - expected[0]) <= limits["loss"]:
            return f"{numbers}; the weights are those of the start: does the optimizer take a step?"
        n, batch = reference.sizes["N_TRAIN"], reference.sizes["BATCHSIZE"]
        return f"no batch came out of {n} images at batch {batch}: is the short batch dropped?"

    def replays() -> Iterator[Replay]:
        for name in reference.mistakes.TRAINING:
            _, (loss,) = reference.once(_replayed, name, 1)
            if abs(losses[0] - loss) * GUESS > max(abs(losses[0] - expected[0]), limits["loss"]):
                continue  # it begins elsewhere: the other steps need not be computed
            weights, theirs = reference.once(_replayed, name, reference.sizes["EPOCHS"])
            yield name, training(outputs.weights, losses, start, weights, theirs, limits)

    said = named(failing, replays(), certain=CERTAIN)
    return f"{numbers}; {said}" if said else numbers


def _compared(losses: list, expected: list, tolerance: float) -> str:
    rows = [" ".join(f"{loss:#.4g}" for loss in row) for row in (losses, expected)]
    n = [*(abs(loss - wanted) <= tolerance for loss, wanted in zip(losses, expected)), False].index(False)
    agree = "none agrees" if n == 0 else "the first agrees" if n == 1 else f"the first {n} agree"
    return f"losses {rows[0]}, reference {rows[1]}; {agree}"


def _first_step(reference: Reference) -> tuple[Weights, tuple[np.ndarray, np.ndarray]]:
    """What ``trained`` starts with, in float32: weights, and the batch."""
    x, y, _, _ = reference.data(reference.sizes["N_TRAIN"], n_test=1)
    return cast_all(reference.start, np.float32), (cast(x, np.float32), y)


def _replayed(reference: Reference, name: str, steps: int) -> tuple[Weights, list[float]]:
    """The weights after so many steps with a known mistake, and the loss before each."""
    start, batch = reference.once(_first_step)
    return reference.mistakes.TRAINING[name].train(start, [batch] * steps, reference.constants)


# ---- Crossing: the weights that each row has trained, evaluated by every row on the same test examples

TIE = 1e-4  # the two likeliest classes of an example are nearer to each other than this: float32 may put it in either
TIED = -1
CROSSED = ("N_TRAIN", "N_TEST")  # what the user may set of a crossing: it decides everything else itself
TRAINING = {"EPOCHS": 2, "N_TRAIN": 5000}  # enough to be no longer the initial weights, in minutes
EVALUATION = {"EPOCHS": 1, "N_TRAIN": 64, "LR": 0.0}  # one step that changes nothing


class Matrix(Crossing):
    """hits[i][j]: how many of the test examples row j classifies rightly with the weights that row i has trained.

    What it puts in another class than row i does counts in ``others``.
    """

    synthetic: bool
    training: dict[str, int]
    n_test: int
    hits: list[list[int | None]]

    corner, other = "trained by / evaluated by", "in another class"

    @property
    def passed(self) -> bool:
        """Every example is in one class for all rows, but for ties, which may also change how many are right."""
        if any(None in line for line in (*self.hits, *self.others)) or any(map(any, self.others)):
            return False
        return all(max(hits) - min(hits) <= ties for hits, ties in zip(self.hits, self.ties))

    def cells(self) -> list[list[str]]:
        return [["failed" if count is None else f"{count:,}" for count in hits] for hits in self.hits]

    def explained(self) -> tuple[str, str]:
        examples = f"{self.n_test:,} {'SYNTHETIC ' if self.synthetic else ''}test examples"
        return "Cross-loading", (
            f"Each line has the weights that one framework trained ({self.training['EPOCHS']} epochs of "
            f"{self.training['N_TRAIN']:,} examples). A figure says how many of {examples} a framework classifies rightly with "
            "them. *In another class* counts examples that some framework puts elsewhere than the one that trained the weights. "
            f"*Ties* are examples whose two likeliest classes differ by less than {TIE:g}: they are not counted."
        )


def same_network(one: Reference, other: Reference) -> bool:
    """Whether both flavours compute the same probabilities from the same weights: they differ in nothing but training."""
    if one.network.WEIGHT_SHAPES != other.network.WEIGHT_SHAPES:
        return False
    (ones, _), (others, _) = (reference.tested(one.start, BATCH, n_test=8) for reference in (one, other))
    return np.allclose(ones, others, rtol=0, atol=1e-9)


def cross(
    rows: list[Row], reference: Reference, bench: Bench, note: Callable[[str], None], changed: dict[str, Any]
) -> Matrix:
    """Train every row, then let every row evaluate the weights of all.

    note: called as each run ends. changed: parameters that the user has set.
    """
    constants, numbers = reference.task.constants(), range(len(rows))
    n_test = changed.get("N_TEST", constants["N_TEST"])
    n_train = changed.get("N_TRAIN", min(TRAINING["N_TRAIN"], constants["N_TRAIN"]))
    matrix = Matrix.empty(
        rows,
        bench,
        synthetic=reference.synthetic,
        training=TRAINING | {"N_TRAIN": n_train},
        n_test=n_test,
        hits=[[None] * len(rows) for _ in rows],
    )
    classes: dict[int, np.ndarray] = {}  # of the test examples by each row's own weights
    with TemporaryDirectory(prefix="rosetta-") as folder:
        weights = [Path(folder) / f"{row.stem}.npz" for row in rows]

        def probe(pair: tuple[int, int]) -> tuple[int, int, Outputs]:
            """Row i trains where it meets itself; any other row j evaluates its weights."""
            i, j = pair
            job = matrix.training if i == j else EVALUATION | {"INITIAL_WEIGHTS": str(weights[i])}
            return i, j, bench.prober(rows[j], reference)(job | {"N_TEST": n_test})

        diagonal = [(i, i) for i in numbers]
        for pairs in (diagonal, [(i, j) for i in numbers for j in numbers if i != j]):
            ready = [(i, j) for i, j in pairs if i == j or i in classes]
            for i, j, outputs in bench.workers.each(probe, ready):
                matrix.commit = outputs.record.commit
                if outputs.error:
                    matrix.errors.append(f"{rows[j].name} with the weights of {rows[i].name}: {outputs.error}")
                    note(matrix.errors[-1])
                    continue
                likeliest = outputs.outputs.argmax(axis=1)
                if i == j:
                    save_weights(weights[i], outputs.weights)
                    second, first = np.sort(outputs.outputs, axis=1)[:, -2:].T
                    classes[i] = np.where(first - second < TIE, TIED, likeliest)
                    matrix.ties[i] = int((classes[i] == TIED).sum())
                hits = matrix.hits[i][j] = round(outputs.record.metrics.accuracy * n_test)
                others = matrix.others[i][j] = int(((classes[i] != TIED) & (classes[i] != likeliest)).sum())
                apart = f", {others:,} in another class" if others else ""
                note(f"{rows[i].name} -> {rows[j].name}: {hits:,} of {n_test:,}{apart}")
    return matrix
