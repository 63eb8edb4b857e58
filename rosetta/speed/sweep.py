"""How long the phases of a training step take, for numbers of threads and batch sizes.

The protocol of the benchmarks of 2016 and 2017: warm-up excluded, many steps, repeated; forward, forward and backward, the whole step.
"""

import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from rosetta.catalog import Row, Task
from rosetta.plan import Plan
from rosetta.records import Commit, Machine
from rosetta.run.devices import Slot
from rosetta.run.execute import commit
from rosetta.run.kernels import Kernels
from rosetta.speed import scripts
from rosetta.speed.process import Process

NAME = "sweep"
KIND = "phases"
PHASES = {"forward": "forward", "backward": "forward + backward", "step": "full step"}
SLOW_BATCH = 64  # the largest batch of a row that takes seconds a step
WARM_UP = 3  # steps that are not timed
ROLES = ("parameters", "setup", "data", "model", "weights", "optimizer")  # what comes before the training


class Point(BaseModel):
    """One row with so many threads and images a batch: seconds a step of each phase, one number a repeat."""

    model_config = ConfigDict(extra="forbid")

    row: str
    title: str
    threads: int
    batch_size: int
    seconds: dict[str, list[float]]
    loss: dict[str, float]  # what each phase returned last, evidence that it computed
    steps: int
    synthetic: bool
    measured: datetime
    commit: Commit
    machine: Machine

    @property
    def place(self) -> tuple[str, int, int]:
        return self.row, self.threads, self.batch_size

    def ms(self, phase: str) -> float:
        return 1000 * statistics.mean(self.seconds[phase])

    def spread_ms(self, phase: str) -> float:
        """Standard deviation of the repeats."""
        found = self.seconds[phase]
        return 1000 * statistics.stdev(found) if len(found) > 1 else 0.0


class Sweep(BaseModel):
    """What was measured on one machine; a point that is measured again takes the place of what was there."""

    model_config = ConfigDict(extra="forbid")

    points: list[Point] = []

    def add(self, new: Point) -> None:
        self.points = [old for old in self.points if old.place != new.place] + [new]


@dataclass(frozen=True)
class Protocol:
    """Every phase is timed ``repeats`` times, ``steps`` steps at once, for each batch size."""

    batch_sizes: list[int]
    steps: int = 100
    repeats: int = 5
    synthetic: bool = False

    def of(self, row: Row, gpu: bool) -> "Protocol":
        """The same with a tenth of the steps and small batches alone, for a row whose steps take seconds on a CPU."""
        if row.slow_on_cpu is None or gpu:
            return self
        small = [size for size in self.batch_sizes if size <= SLOW_BATCH] or [min(self.batch_sizes)]
        return replace(self, batch_sizes=small, steps=ceil(self.steps / 10))

    def estimate_s(self, row: Row) -> float:
        """Seconds that one process of a row should take: the phases together are two steps, and those are costs of 2 cores."""
        images = sum(self.batch_sizes) * (self.steps * self.repeats + WARM_UP)
        return row.cost.start_s + 2 * images * row.cost.image_ms / 1000


def points(row: Row, task: Task, slot: Slot, protocol: Protocol, kernels: Kernels, **parameters) -> Iterable[Point]:
    """The points of one process: a row with so many threads, all batch sizes. parameters: of the notebook, over its own.

    Raises RosettaError where the framework's phases are not written or fail, Unavailable where it cannot run here.
    """
    phases = scripts.changes(scripts.program(KIND, row)).after["optimizer"]
    sizes = {"N_TRAIN": max(protocol.batch_sizes), "N_TEST": 1}
    own = row.parameters | sizes | {"SYNTHETIC": protocol.synthetic} | parameters
    planned = Plan(
        row=row, preset="sweep", parameters=own, constants=task.parameters() | own, expected={}, dataset=task.data
    )
    code = {role: source for role, source in scripts.cells(row.notebook).items() if role in ROLES}
    asked = {
        "batch_sizes": protocol.batch_sizes,
        "phases": list(PHASES),
        "steps": protocol.steps,
        "repeats": protocol.repeats,
        "warm_up": WARM_UP,
    }
    with tempfile.TemporaryDirectory(prefix="rosetta-") as name:
        script = scripts.write(planned, code | {"phases": phases}, Path(name) / "phases.py", kernels)
        with Process(script, slot, "phases", asked, Path(name) / "phases.log") as process:
            for told in process.told():
                yield Point(
                    row=row.name,
                    title=row.title,
                    threads=slot.threads,
                    batch_size=told["batch_size"],
                    seconds=told["seconds"],
                    loss=told["loss"],
                    steps=protocol.steps,
                    synthetic=protocol.synthetic,
                    measured=datetime.now(UTC).replace(microsecond=0),
                    commit=commit(),
                    machine=slot.machine,
                )
