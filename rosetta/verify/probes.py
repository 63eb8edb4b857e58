"""Short runs of a row's own notebook, by nothing but its parameters, and what the reference makes of the same.

``trained``: three steps from given weights, without dropout. ``dropped``: many steps with dropout at a learning rate
of 0, from the notebook's own initial weights; what it saves in the end are therefore those.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock

import numpy as np

from common.weights import save_weights
from rosetta.batch.workers import Workers
from rosetta.catalog import Row, Task
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run.execute import execute
from rosetta.run.kernels import Kernels

PRESET = "verify"
STEPS, BATCH = 3, 64  # of ``trained``
# More than there are images: the batch is a short one, where frameworks pad or divide by the wrong number
BATCHSIZE = 96
DROP_STEPS, DROP_BATCH, DROP_N_TEST = 100, 8, 100  # of ``dropped``; the test tells whether dropout is off then
REFERENCE_STEPS = 200  # as many losses the reference draws to compare with
TIMEOUT_S = 900
N_TEST = 510  # notebooks evaluate up to 500 at once: the last batch is short


@dataclass(frozen=True)
class Outputs:
    """What a probe has left. ``error`` says why it left nothing."""

    record: Record
    weights: dict[str, np.ndarray] | None = None
    probabilities: np.ndarray | None = None
    error: str | None = None


@dataclass(frozen=True)
class Size:
    """How much of a row's probes there is."""

    n_test: int
    drop_steps: int
    n_drop_test: int

    @classmethod
    def of(cls, row: Row, gpu: bool) -> "Size":
        if row.slow_on_cpu and not gpu:  # seconds a step: it shall end in a minute or two
            return cls(n_test=20, drop_steps=30, n_drop_test=20)
        return cls(N_TEST, DROP_STEPS, DROP_N_TEST)


class Reference:
    """The task's definition on the images of the probes; what does not depend on the row is computed once."""

    def __init__(self, task: Task, synthetic: bool = False):
        self.task, self.synthetic = task, synthetic
        self.network = importlib.import_module(f"common.reference.{task.reference}")
        self._lock = RLock()  # rows are verified by several threads

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return self.network.WEIGHT_SHAPES

    def images(self, n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(x_train, y_train, x_test, y_test) as a notebook with these sizes loads them, in float64.

        Loaded for the very sizes: synthetic images depend on how many there are.
        """
        loader = importlib.import_module(f"common.data.{self.task.data}")
        x, y, x_test, y_test = loader.load("NCHW", n_train=n_train, n_test=n_test, synthetic=self.synthetic)
        return x.astype(np.float64), y, x_test.astype(np.float64), y_test

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
        x, y, _, _ = self.images(BATCH, n_test=1)
        constants = self.task.parameters()
        return self.network.train(self.start, [(x, y)] * STEPS, constants["LR"], constants["MOMENTUM"])

    def trained(self) -> tuple[dict[str, np.ndarray], list[float]]:
        """The weights after the steps, and the loss before each."""
        with self._lock:
            return self._trained

    def tested(self, weights: dict[str, np.ndarray], n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities, labels) of the test images of a run of these sizes, with its weights."""
        _, _, x, y = self.images(n_train, n_test)
        return self.network.probabilities({name: array.astype(np.float64) for name, array in weights.items()}, x), y

    def dropped_losses(self, weights: dict[str, np.ndarray]) -> np.ndarray:
        """Losses with random dropout on the images of ``dropped``; float32 is exact enough for what is random."""
        x, y, _, _ = self.images(DROP_BATCH, n_test=1)
        weights = {name: array.astype(np.float32) for name, array in weights.items()}
        rng = np.random.RandomState(3)
        return self.network.dropout_losses(weights, x.astype(np.float32), y, REFERENCE_STEPS, rng)


Prober = Callable[[dict], Outputs]  # parameters over the notebook's own -> what the run left


def trained(probe: Prober, reference: Reference, size: Size) -> Outputs:
    with TemporaryDirectory(prefix="rosetta-") as folder:
        start = Path(folder) / "start.npz"
        save_weights(start, reference.start)
        return probe(
            {
                "INITIAL_WEIGHTS": str(start),
                "DROPOUT": False,
                "EPOCHS": STEPS,
                "N_TRAIN": BATCH,
                "BATCHSIZE": BATCHSIZE,
                "N_TEST": size.n_test,
            }
        )


def dropped(probe: Prober, reference: Reference, size: Size) -> Outputs:
    return probe(
        {
            "LR": 0.0,
            "DROPOUT": True,
            "EPOCHS": size.drop_steps,
            "N_TRAIN": DROP_BATCH,
            "BATCHSIZE": DROP_BATCH,
            "N_TEST": size.n_drop_test,
        }
    )


@dataclass(frozen=True)
class Bench:
    """Where probes run: interpreters, and the workers that share the machine."""

    kernels: Kernels
    workers: Workers

    def prober(self, row: Row, task: Task, synthetic: bool) -> Prober:
        """Runs the row's notebook with given parameters and reads what it saves."""

        def probe(parameters: dict) -> Outputs:
            with self.workers.share() as slot, TemporaryDirectory(prefix="rosetta-") as folder:
                own = row.parameters | parameters | {"SAVE_TO": folder}
                plan = Plan(
                    row=row,
                    preset=PRESET,
                    parameters=own | ({"SYNTHETIC": True} if synthetic else {}),
                    constants={name: own.get(name, value) for name, value in task.parameters().items()},
                    expected={},  # level 1 is about that
                    dataset=task.data,
                    timeout_s=TIMEOUT_S,
                )
                run = execute(plan, slot, self.kernels, watch=lambda progress: None)
                try:
                    return _outputs(run.record, Path(folder))
                finally:
                    run.close()

        return probe


def _outputs(record: Record, folder: Path) -> Outputs:
    if record.status != "ok":
        return Outputs(record, error=f"the notebook's run: {record.status}: {record.error}")
    try:
        with np.load(folder / "weights.npz", allow_pickle=False) as file:
            weights = {name: file[name] for name in file.files}
        return Outputs(record, weights, np.load(folder / "probabilities.npy", allow_pickle=False))
    except (OSError, ValueError) as error:
        return Outputs(record, error=f"the notebook has not saved its weights and probabilities: {error}")
