"""``run_all.py sweep``: how long the phases of a training step take, for numbers of threads and batch sizes.

The protocol of the benchmarks of 2016 and 2017: warm-up excluded, many steps, repeated; forward, forward and backward, the whole step.
"""

import os
import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rich.console import Console

from rosetta import catalog, data, records
from rosetta.catalog import Row, Task
from rosetta.errors import RosettaError, Unavailable
from rosetta.paths import RESULTS, portable
from rosetta.plan import Plan
from rosetta.records import Commit, Machine
from rosetta.run import devices, machine
from rosetta.run.devices import Slot
from rosetta.run.execute import commit
from rosetta.run.kernels import Kernels, parse_given
from rosetta.speed import scripts
from rosetta.speed.process import Process

FILE = "sweep.json"
KIND = "phases"
PHASES = {"forward": "forward", "backward": "forward + backward", "step": "full step"}
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
class Options:
    """threads and batch_sizes: every combination is measured. steps: of a repeat."""

    threads: list[int]
    batch_sizes: list[int]
    steps: int
    repeats: int
    task: str | None = None
    data_dir: Path | None = None
    synthetic: bool = False
    out: Path | None = None
    python: tuple[str, ...] = ()
    gpus: str | None = None


def numbers(option: str, text: str) -> list[int]:
    """``"16,64"`` -> [16, 64]. Raises RosettaError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise RosettaError(f"{option} takes whole numbers above 0 such as 1,2, not {text}")
    return list(dict.fromkeys(map(int, parts)))


def usual_threads() -> list[int]:
    """1, 2, 4 ... and as many as there are processors."""
    there = len(machine.processors())
    return [2**power for power in range(there.bit_length()) if 2**power < there] + [there]


def sweep(names: list[str], options: Options) -> int:
    """Measure rows, show and keep every point as soon as it is there. Exit code 0 only if all rows could be measured."""
    known, kernels = catalog.load(), Kernels(parse_given(list(options.python)))
    task = options.task or next(iter(known.tasks))
    rows = known.select(task, names)
    results = options.out.absolute() if options.out else RESULTS
    slots = [
        devices.timed(options.gpus, threads)[0] for threads in options.threads
    ]  # too many are told before the work
    if options.data_dir:  # the scripts inherit it
        os.environ["ROSETTA_DATA"] = str(options.data_dir.absolute())
    if not options.synthetic:
        data.locate(known.tasks[task].data)
    file = results / slots[0].machine.name / "speed" / FILE
    kept, console, failed = read(file), Console(highlight=False), 0
    console.print(
        f"{'row':<22}{'threads':>8}{'batch':>7}" + "".join(f"{title + ', ms':>26}" for title in PHASES.values())
    )
    for row in rows:
        for slot in slots:
            try:
                for point in points(row, known.tasks[task], slot, options, kernels):
                    kept.add(point)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    records.write_atomically(file, kept.model_dump_json(indent=1) + "\n")
                    console.print(_line(point), markup=False)
            except Unavailable as reason:
                console.print(f"{row.name}: skipped: {reason}", style="yellow", markup=False)
                failed |= bool(names)
                break
            except RosettaError as error:
                console.print(f"{row.name}, {slot.threads} threads: {error}", style="red", markup=False)
                failed = 1
    console.print(portable(str(file)), markup=False)
    return failed


def points(row: Row, task: Task, slot: Slot, options: Options, kernels: Kernels, **parameters) -> Iterable[Point]:
    """The points of one process: a row with so many threads, all batch sizes. parameters: of the notebook, over its own.

    Raises RosettaError where the framework's phases are not written or fail, Unavailable where it cannot run here.
    """
    phases = scripts.changes(scripts.program(KIND, row)).after["optimizer"]
    sizes = {"N_TRAIN": max(options.batch_sizes), "N_TEST": 1}
    own = row.parameters | sizes | {"SYNTHETIC": options.synthetic} | parameters
    planned = Plan(
        row=row, preset="sweep", parameters=own, constants=task.parameters() | own, expected={}, dataset=task.data
    )
    code = {role: source for role, source in scripts.cells(row.notebook).items() if role in ROLES}
    asked = {
        "batch_sizes": options.batch_sizes,
        "phases": list(PHASES),
        "steps": options.steps,
        "repeats": options.repeats,
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
                    steps=options.steps,
                    synthetic=options.synthetic,
                    measured=datetime.now(UTC).replace(microsecond=0),
                    commit=commit(),
                    machine=slot.machine,
                )


def _line(point: Point) -> str:
    cells = "".join(f"{f'{point.ms(phase):.1f} ± {point.spread_ms(phase):.1f}':>26}" for phase in PHASES)
    return f"{point.row:<22}{point.threads:>8}{point.batch_size:>7}{cells}"


def read(file: Path) -> Sweep:
    """What is kept of earlier sweeps; nothing where there is no file yet."""
    try:
        return Sweep.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Sweep()
    except ValueError as error:
        raise RosettaError(f"{file} is not valid: {str(error).splitlines()[0]}; mend or delete it") from None
