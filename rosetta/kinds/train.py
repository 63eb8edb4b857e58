"""Kind ``train``: the loss falls, accuracy counts, an epoch is what is timed."""

from math import sqrt
from statistics import median
from typing import Any

from rosetta.figures import PERCENT, ROUGH, SECONDS, WHOLE
from rosetta.files import Fraction, Number, Seconds
from rosetta.kinds.kind import (
    BATCH,
    BUILD,
    DATA,
    MEASURED,
    NETWORK,
    PASSES,
    RECORD,
    SETUP,
    Curves,
    Dots,
    Kind,
    Metrics,
    Quantity,
    Role,
    Series,
    Trouble,
    Verdict,
)


class TrainMetrics(Metrics):
    """Times in seconds, accuracies as fractions of the test set."""

    accuracy: Fraction | None = None
    loss: list[Number | None] = []  # mean training loss of each epoch
    epoch_s: list[Seconds] = []
    epoch_accuracy: list[Fraction | None] = []  # after each epoch, off the clock
    train_s: Seconds | None = None  # all epochs
    target_s: Seconds | None = None  # training until the task's target accuracy was first reached
    first_epoch_s: Seconds | None = None  # holds compilation and warm-up
    steady_epoch_s: Seconds | None = None  # median of the epochs after the first
    examples_per_s: Number | None = None  # training examples in a steady epoch, or in the only one
    evaluate_s: Seconds | None = None
    examples_per_j: Number | None = None  # training examples in the epochs after the first, a joule of the GPU
    devices: list[str] | None = None  # those that took part, each by what it says of itself, where a task has DEVICES


BESIDE = (
    Quantity("first epoch", lambda m: m.first_epoch_s, SECONDS),
    Quantity("steady", lambda m: m.steady_epoch_s, SECONDS, better="less", spread=True, every=lambda m: m.epoch_s[1:]),
)
ACCURACY = Quantity(
    "accuracy", lambda m: m.accuracy, PERCENT, better="more", spread=True, timed=False, share_of="N_TEST"
)
SURE = 3  # standard deviations above a guess
LEAST_SEEN = 0.1  # share of the training set, of which a network can be expected to learn something


class Train(Kind):
    name = "train"
    roles = (
        *NETWORK,
        Role("optimizer", "Loss and optimizer"),
        Role("evaluate", "Evaluation"),
        Role("train", "Training"),
        RECORD,
    )
    constants = {"EPOCHS": 1, "BATCHSIZE": 1, "LR": 0.0, "SEED": 0, "N_TRAIN": 1, "N_TEST": 1}
    judged = {"TARGET_ACCURACY": 0.0}
    loaded = {"train": "N_TRAIN", "test": "N_TEST"}
    bounded = ("N_TRAIN", "N_TEST")
    metrics = TrainMetrics
    timed = SETUP | {"record": "evaluate_s"}
    trains, turns = True, "epochs"
    lines = 140  # a network that is written out, and what several devices need
    phases = "forward", "backward", "step"
    free = frozenset({"SEED", "TARGET_ACCURACY"})
    beside = BESIDE
    main = (ACCURACY, Quantity("train", lambda m: m.train_s, SECONDS, better="less", spread=True))
    details = (
        Quantity(
            "to target",
            lambda m: m.target_s,
            SECONDS,
            spread=True,
            always=False,
            tried=lambda m: bool(m.epoch_accuracy),
        ),
        *BESIDE,
        Quantity("examples/s", lambda m: m.examples_per_s, WHOLE),
        DATA,
        BUILD,
        Quantity("test", lambda m: m.evaluate_s, SECONDS),
        *MEASURED,
        Quantity("examples/J", lambda m: m.examples_per_j, ROUGH, always=False),
    )
    charts = (
        Dots(
            "epochs",
            "First epoch against steady epochs: the distance is what a framework compiles, tunes or warms up lazily. "
            "In the order of the catalog.",
            "seconds an epoch (logarithmic)",
            (
                Series("first epoch", lambda m: m.first_epoch_s if m.steady_epoch_s else None),
                Series("steady epoch (median)", lambda m: m.steady_epoch_s),
            ),
            logarithmic=True,
        ),
        Curves(
            "curves",
            "Learning curves, one line a seed. Tests between epochs are off the clock.",
            "epoch",
            (
                Series("training loss", lambda m: m.loss),
                Series("test accuracy", lambda m: m.epoch_accuracy, share=True),
            ),
        ),
        Dots(
            "joules",
            "Training examples a joule of the GPU, in the epochs after the first.",
            "training examples a joule of the GPU",
            (Series("training examples a joule", lambda m: m.examples_per_j),),
        ),
    )

    figures = """
- *Accuracy* is over all test examples of the run, the last short batch included.
- *Train* is the sum of the epochs. The *first epoch* holds what a framework compiles or warms up lazily; *steady* is the
  median of the epochs after it. *To target* is the training time until a test after an epoch reached the target accuracy.
- Examples are in memory before the clock starts. An epoch ends when the loss is a number in Python, so a GPU's queue has
  been emptied.
"""

    def items(self, constants: dict[str, Any]) -> float:
        """Training examples; testing one is counted as a third of training on it: forward without backward."""
        return constants["EPOCHS"] * constants["N_TRAIN"] + constants["N_TEST"] / 3

    def flop(self, params: Any, constants: dict[str, Any]) -> int | None:
        counts = getattr(params, "MULTIPLY_ADDS", None)
        return counts and 2 * PASSES * counts["forward"] * constants[BATCH]

    def size(self, constants: dict[str, Any]) -> str:
        epochs = "1 epoch" if constants["EPOCHS"] == 1 else f"{constants['EPOCHS']} epochs"
        tests = f"tested on {constants['N_TEST']:,}"
        if constants.get("TEST_EACH_EPOCH"):
            tests += " after each epoch"
            tests += f", target {100 * constants['TARGET_ACCURACY']:g} %" if "TARGET_ACCURACY" in constants else ""
        return f"{epochs} of {constants['N_TRAIN']:,}, batch {constants['BATCHSIZE']}, {tests}"

    def steps(self, constants: dict[str, Any]) -> int:
        """Full steps of an epoch."""
        return constants["N_TRAIN"] // constants[BATCH]

    def short(self, constants: dict[str, Any], steps: int, turns: int) -> dict[str, Any]:
        """Parameters of a run of so few steps an epoch that hardly tests: to measure by."""
        return {"EPOCHS": turns, "N_TRAIN": steps * constants[BATCH], "N_TEST": 10}

    def verdict(self, quantity: Quantity, runs, constants: dict[str, Any], guessing: float) -> Verdict | None:
        """An accuracy means something once a run has seen as many examples as the task's training set has.

        Of shorter runs it is known whether they learn: whether all of them do better than a guess, beyond chance.
        """
        accuracies = [run.metrics.accuracy for run in runs]
        comparable = all({"EPOCHS", "N_TRAIN", "N_TEST"} <= run.params.keys() for run in runs)
        if quantity.of is not ACCURACY.of or None in accuracies or not comparable:
            return None
        seen = min(run.params["EPOCHS"] * run.params["N_TRAIN"] for run in runs) / constants["N_TRAIN"]
        if seen >= 1:
            return None
        if seen < LEAST_SEEN:
            return Verdict("too short", True)
        bounds = [guessing + SURE * sqrt(guessing * (1 - guessing) / run.params["N_TEST"]) for run in runs]
        learns = all(accuracy > bound for accuracy, bound in zip(accuracies, bounds))
        return Verdict("learns" if learns else "guesses", learns)

    def complete(self, metrics: TrainMetrics, params: dict[str, Any], marked_j: float | None) -> None:
        n_train, epochs, target = params["N_TRAIN"], metrics.epoch_s, params.get("TARGET_ACCURACY")
        metrics.target_s = None
        for number, accuracy in enumerate(metrics.epoch_accuracy, start=1):
            if target is not None and accuracy is not None and accuracy >= target:
                metrics.target_s = round(sum(epochs[:number]), 4)
                break
        if not epochs:
            return
        metrics.train_s = round(sum(epochs), 4)
        metrics.first_epoch_s = epochs[0]
        metrics.steady_epoch_s = round(median(epochs[1:]), 4) if epochs[1:] else None
        epoch_s = metrics.steady_epoch_s or epochs[0]
        metrics.examples_per_s = round(n_train / epoch_s, 1) if epoch_s else None  # an epoch of no work takes no time
        if marked_j and len(epochs) > 1:
            metrics.examples_per_j = round(n_train * (len(epochs) - 1) / marked_j, 2)

    def trouble(self, metrics: TrainMetrics, params: dict[str, Any]) -> Trouble | None:
        unusable = [number for number, loss in enumerate(metrics.loss, start=1) if loss is None]
        if unusable:
            return Trouble("diverged", f"the loss is not a finite number from epoch {unusable[0]} on")
        if metrics.accuracy is None:
            return Trouble("failed", "the notebook reported no accuracy")
        if "DEVICES" in params and len(metrics.devices or ()) != params["DEVICES"]:
            seen = ", ".join(metrics.devices or ()) or "none"
            return Trouble("failed", f"DEVICES is {params['DEVICES']}, and the devices that took part are: {seen}")
        for what, values in (("losses", metrics.loss), ("times", metrics.epoch_s)):
            if len(values) != params["EPOCHS"]:
                return Trouble(
                    "failed",
                    f"the notebook reported {what} of {len(values)} epochs, expected {params['EPOCHS']}: "
                    "log.epoch is to be called once at the end of each",
                )
        return None
