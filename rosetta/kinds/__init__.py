"""The kinds of task. A task names its kind in ``task.toml``; a kind says what its tasks, notebooks and records must have.

How a kind is proven stands in ``rosetta/verify/<kind>.py``.
"""

from math import sqrt
from statistics import median
from typing import Any

from rosetta.figures import MILLISECONDS, PERCENT, ROUGH, SECONDS, WHOLE
from rosetta.files import Count, Fraction, Number, Seconds
from rosetta.kinds.kind import (
    BATCH,
    BUILD,
    DATA,
    MEASURED,
    NETWORK,
    PARAMETERS,
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
    Verdict,
)

# ---- ``train``: the loss falls, accuracy counts, an epoch is what is timed


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
TO_TARGET = Quantity(
    "to target", lambda m: m.target_s, SECONDS, spread=True, always=False, tried=lambda m: bool(m.epoch_accuracy)
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
        TO_TARGET,
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
        devices = f"{constants['DEVICES']} x " if "DEVICES" in constants else ""
        return f"{epochs} of {constants['N_TRAIN']:,}, batch {devices}{constants[BATCH]}, {tests}"

    def steps(self, constants: dict[str, Any]) -> int:
        """Full steps of an epoch."""
        return constants["N_TRAIN"] // _of_all_devices(constants)

    def short(self, constants: dict[str, Any], steps: int, turns: int) -> dict[str, Any]:
        """Parameters of a run of so few steps an epoch that hardly tests: to measure by."""
        return {"EPOCHS": turns, "N_TRAIN": steps * _of_all_devices(constants), "N_TEST": 10}

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

    def trouble(self, metrics: TrainMetrics, params: dict[str, Any]) -> tuple[str, str] | None:
        unusable = [number for number, loss in enumerate(metrics.loss, start=1) if loss is None]
        if unusable:
            return "diverged", f"the loss is not a finite number from epoch {unusable[0]} on"
        if metrics.accuracy is None:
            return "failed", "the notebook reported no accuracy"
        for what, values in (("losses", metrics.loss), ("times", metrics.epoch_s)):
            if len(values) != params["EPOCHS"]:
                return "failed", (
                    f"the notebook reported {what} of {len(values)} epochs, expected {params['EPOCHS']}: "
                    "log.epoch is to be called once at the end of each"
                )
        return None


# ---- ``infer``: a forward pass over a set of inputs, once to warm up and once for the clock


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

    def trouble(self, metrics: InferMetrics, params: dict[str, Any]) -> tuple[str, str] | None:
        if not metrics.pass_s or metrics.inputs == 0:
            return "failed", "the notebook reported no pass"
        if metrics.inputs not in (None, params["N_INPUTS"]) and not params.get("IMAGES"):
            return "failed", f"a pass had {metrics.inputs:,} inputs, expected {params['N_INPUTS']:,}"
        return None

    def complete(self, metrics: InferMetrics, params: dict[str, Any], marked_j: float | None) -> None:
        if metrics.pass_s:
            examples = metrics.inputs or params["N_INPUTS"]
            metrics.examples_per_s = round(examples / metrics.pass_s, 1)
            metrics.thousand_s = round(1000 * metrics.pass_s / examples, 4)


# ---- ``speed``: timed steps of a named network; what was measured are the record's points


class SpeedMetrics(Metrics):
    multiply_adds: Count | None = None  # of one example's forward pass, where the framework counts them
    warm_up_s: Seconds | None = None  # the steps that are not counted: they hold loading and compiling
    step_s: Seconds | None = None  # mean of the repeats
    waiting: Fraction | None = None  # share of a step in which Python waits for a batch that is read from files
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

    def trouble(self, metrics: SpeedMetrics, params: dict[str, Any]) -> tuple[str, str] | None:
        return ("diverged", "the last step has computed no finite number") if metrics.result is None else None


def _of_all_devices(constants: dict[str, Any]) -> int:
    """Examples of a training step: BATCHSIZE is that of each device."""
    return constants[BATCH] * constants.get("DEVICES", 1)


def _passes(constants: dict[str, Any]) -> int:
    """A gradient computes twice what a forward pass does; an update is next to nothing."""
    return 1 if constants["PHASE"] == "forward" else PASSES


# ---- ``entries``: many small answers


class EntriesMetrics(Metrics):
    answers: Count | None = None  # how many entries the notebook has


class Entries(Kind):
    name = "entries"
    roles = (PARAMETERS, Role("setup", "Setup"), Role("answers", "Answers", many=True), RECORD)
    lines = 800  # eight an entry, and there may be a hundred
    core = "answers"
    constants = {"SEED": 0}
    saved = ("answers.npz",)
    metrics = EntriesMetrics
    timed = {"setup": "setup_s"}
    main = (Quantity("entries", lambda m: m.answers, WHOLE, better="more", timed=False),)
    details = MEASURED

    figures = """
- *Entries* is how many answers the notebook gives.
"""

    def items(self, constants: dict[str, Any]) -> float:
        return 0

    def size(self, constants: dict[str, Any]) -> str:
        return "all entries"

    def trouble(self, metrics: EntriesMetrics, params: dict[str, Any]) -> tuple[str, str] | None:
        return None if metrics.answers else ("failed", "the notebook reported no answers")


KINDS: dict[str, Kind] = {kind.name: kind for kind in (Train(), Infer(), Speed(), Entries())}
