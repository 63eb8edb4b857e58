"""Short runs of a row's own notebook, by nothing but its parameters, and the reference that they are held against."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock

import numpy as np

from common.weights import save_weights
from rosetta.catalog import Row
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run.execute import execute
from rosetta.run.kernels import Kernels
from rosetta.run.workers import Workers
from rosetta.tasks import Task
from rosetta.verify.kinds import proof

PRESET = "verify"
TIMEOUT_S = 900


@dataclass(frozen=True)
class Outputs:
    """What a probe has left, by the files' names. ``error`` says why it left nothing."""

    record: Record
    weights: dict[str, np.ndarray] | None = None
    outputs: np.ndarray | None = None
    answers: dict[str, np.ndarray] | None = None
    error: str | None = None

    @property
    def skipped(self) -> bool:
        """Whether this machine cannot run the row."""
        return self.record.status == "skipped"


class Reference:
    """A task in NumPy: ``network`` is its reference module, or what its ``of(flavour)`` returns where it has flavours."""

    def __init__(self, task: Task, flavour: str | None = None, synthetic: bool = False):
        module = task.reference
        self.task, self.flavour, self.synthetic = task, flavour, synthetic
        self.network = module.of(flavour) if hasattr(module, "of") else module
        self.lock = RLock()  # rows are verified by several threads


Prober = Callable[[dict], Outputs]  # parameters over the notebook's own -> what the run left


def from_weights(probe: Prober, weights: dict[str, np.ndarray], parameters: dict) -> Outputs:
    """A run that starts from these weights."""
    with TemporaryDirectory(prefix="rosetta-") as folder:
        start = Path(folder) / "start.npz"
        save_weights(start, weights)
        return probe(parameters | {"INITIAL_WEIGHTS": str(start)})


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
                    kind_name=task.kind_name,
                    preset=PRESET,
                    parameters=own | ({"SYNTHETIC": True} if synthetic else {}),
                    constants={name: own.get(name, value) for name, value in task.constants().items()},
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
        files = [folder / name for name in proof(record.kind).SAVED]
        return Outputs(record, **{file.stem: _read(file) for file in files})
    except (OSError, ValueError) as error:
        return Outputs(record, error=f"the notebook has not saved what is compared: {error}")


def _read(file: Path) -> np.ndarray | dict[str, np.ndarray]:
    if file.suffix == ".npy":
        return np.load(file, allow_pickle=False)
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)
