"""Records: one JSON file a run, the only thing that tables and pictures of results are made from.

Times are in seconds, memory in bytes, fractions between 0 and 1. A field whose fact could not be had is null or absent, never 0.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, SerializeAsAny, field_validator, model_validator

from common.record import SCHEMA
from rosetta import files
from rosetta.errors import RosettaError
from rosetta.figures import Sample
from rosetta.files import Count, Name, Number, Strict
from rosetta.kinds import KINDS
from rosetta.kinds.kind import Metrics
from rosetta.paths import portable
from rosetta.tasks import TOLD, fits

# Share of the processors, or of a GPU's time, that other programs may use beside a time that is a figure
try:
    MOST = float(os.environ.get("ROSETTA_BUSY") or 0.1)
except ValueError:
    raise SystemExit("ROSETTA_BUSY must be a share of the processors, such as 0.1") from None
RECORDS = "[!.]*/[!.]*/*/*.json"  # below a results folder: machine, task, preset, row; hidden folders hold batches
FIELDS = (
    "machine.name",
    "task",
    "preset, changed or dataset",
    "framework, variant, seed, session or status",
)  # say where it lies
SUFFIXES = (".json", ".ipynb", ".log")  # of a run's files
Status = Literal["ok", "failed", "crashed", "timeout", "diverged", "skipped"]


class Named:
    """For classes with the fields ``task``, ``framework`` and ``variant`` (None: the notebook with its own defaults)."""

    @property
    def name(self) -> str:
        """``framework`` or ``framework[variant]``, as the command line takes it within a task."""
        return self.framework if self.variant is None else f"{self.framework}[{self.variant}]"

    @property
    def full_name(self) -> str:
        """``task/framework[variant]``."""
        return f"{self.task}/{self.name}"

    @property
    def stem(self) -> str:
        """``framework`` or ``framework-variant``, as files are named."""
        return self.framework if self.variant is None else f"{self.framework}-{self.variant}"


class Gpu(Strict):
    name: str
    memory: Count
    driver: str
    cuda: str  # the newest CUDA that the driver supports
    capability: str | None = None  # compute capability, "9.0": which machine code it runs


class Machine(Strict):
    """The host and its accelerators; ``name`` is a column of the table and a folder below ``results/``."""

    name: str
    cpu: str
    cores: Count
    memory: Count
    os: str
    gpus: list[Gpu] = []

    @property
    def about(self) -> str:
        """In a few words: processor and GPUs."""
        gpus = ", ".join(gpu.name for gpu in self.gpus) or "no GPU"
        return f"{self.cpu}, {self.cores} cores, {gpus}"


class Dataset(Strict):
    name: str | None = None
    synthetic: bool = False
    sizes: dict[str, Count] = {}  # examples that were loaded, of each part: "train", "test", ...


class Commit(Strict):
    id: str | None = None
    dirty: bool | None = None  # whether files that git tracks differed from the commit

    def __str__(self) -> str:
        return (self.id or "")[:7] + ("+" if self.dirty else "")


class Notebook(Strict):
    path: str
    sha256: str
    executed: Name | None = None  # file name of the executed copy, whole or up to where it stopped, beside the record
    log: Name | None = None  # file name of what the run printed


class Point(Strict):
    """One measurement of a record. ``at`` says where it was taken: threads, batch, phase, network, program, ...

    values: one a repeat, in ``unit``; none where the status says why it could not be taken.
    """

    at: dict[str, str | Annotated[int, Field(ge=-(2**63), lt=2**63)] | Number]
    values: list[Number] = []
    unit: str = "s"
    status: Literal["ok", "out of memory", "failed", "crashed", "timeout", "diverged", "skipped"] = "ok"

    @model_validator(mode="after")
    def _has_values(self) -> "Point":
        if (self.status == "ok") != bool(self.values):
            raise ValueError("a point has values if, and only if, its status is ok")
        return self

    @property
    def sample(self) -> Sample:
        return Sample(tuple(self.values))


class Telemetry(Strict):
    """What NVML told of the GPU during a run, sampled twice a second."""

    energy_from: Literal["counter", "power"] | None = None  # the GPU's energy counter, or its power added up
    power_w: Number | None = None  # mean
    utilisation: Number | None = None  # mean share of the time in which a kernel ran
    clock_mhz: Number | None = None  # median of the multiprocessors' clock
    throttled: list[str] = []  # reasons for a lower clock that were seen
    error: str | None = None  # NVML's, from which on there are no more samples


class Others(Strict):
    """What other programs used of the machine while a run was timed, as shares from 0 to 1. None: could not be had."""

    processors: Number | None = None
    gpu: Number | None = None  # the time in which the busiest of the run's GPUs computed, right before the run
    programs: list[str] = []  # that used most of the processors, by name

    @property
    def disturb(self) -> str | None:
        """Why a time that was taken beside them is no figure, in a few words; None where it is one."""
        if (self.processors or 0) > MOST:
            return f"other programs used {self.processors:.0%} of the processors ({', '.join(self.programs)})"
        if (self.gpu or 0) > MOST:
            return f"other programs used {self.gpu:.0%} of the GPU's time"
        return None


class Record(Named, Strict):
    """What one run was and what came of it."""

    version: Literal[SCHEMA] = Field(SCHEMA, alias="schema")
    task: str
    kind: Literal[tuple(KINDS)]
    framework: str
    variant: str | None
    title: str
    environment: str
    build: str | None = None  # of the environment, where that is not the one for the CPU
    preset: str  # smoke, quick or full; of a measurement its name
    changed: dict[str, Any] = {}  # what was given by hand over the preset, but for the seed
    status: Status
    error: str | None = None  # one line
    started: AwareDatetime
    commit: Commit = Commit()
    notebook: Notebook
    machine: Machine
    device: str | None = None  # as the framework names it
    threads: Count | None = None  # that the run was told to use; None: as the framework chooses
    thread_pools: dict[str, Count] = {}  # read back from the run: processors, and threads of the pools that were loaded
    beside: Count = 0  # runs that may have gone on at the same time on this machine, on other GPUs or processors
    batch: str | None = None
    key: str | None = None  # of notebook, common, parameters, environment and machine: equal keys need not run twice
    seed: Count | None = None  # where it is not the task's own
    session: Name | None = None  # of a measurement: the sitting of a command in which its points were taken
    attempts: Count = 1  # 2: a worker of the cluster was lost in the first
    dataset: Dataset = Dataset()
    params: dict[str, Any] = {}
    versions: dict[str, str] = {}
    cuda: dict[str, str] = {}  # runtime and cuDNN that the framework had loaded
    metrics: SerializeAsAny[Metrics]
    points: list[Point] = []
    telemetry: Telemetry | None = None
    others: Others | None = None

    @field_validator("metrics", mode="before")
    @classmethod
    def _of_its_kind(cls, metrics: Any, info) -> Any:
        kind = KINDS.get(info.data.get("kind"))
        return kind.metrics.model_validate(metrics) if kind and isinstance(metrics, dict) else metrics

    @field_validator("changed", "params")
    @classmethod
    def _of_their_types(cls, values: dict[str, Any], info) -> dict[str, Any]:
        kind = KINDS.get(info.data.get("kind"))
        usual = kind.constants | kind.judged | TOLD if kind else {}
        for name, value in values.items():
            if not fits(value, usual.get(name)):
                raise ValueError(f"{name} cannot be {value!r:.60}")
        return values

    @property
    def stem(self) -> str:
        """The name of the record's files."""
        seed = "" if self.seed is None else f".seed-{self.seed}"
        return f"{super().stem}{seed}" + (f".{self.session}" if self.session else "")

    @property
    def disturbed(self) -> str | None:
        """Why its times are no figures, in a few words; None where they are."""
        return self.others and self.others.disturb

    @property
    def column(self) -> str:
        """Preset, what was changed, kind of data: the folder of the record, below machine and task."""
        return column(self.preset, self.changed, self.dataset.synthetic)


def column(preset: str, changed: dict[str, Any], synthetic: bool) -> str:
    """``quick``, ``quick,batchsize=32,threads=1``, ``smoke-synthetic``: two runs that differ have different ones.

    A path has its last part, and a digest that tells it from others.
    """
    parts = [f"{name.lower()}={_short(value)}" for name, value in sorted(changed.items())]
    return ",".join([preset, *parts]) + ("-synthetic" if synthetic else "")


def _short(value: Any) -> str:
    text = str(value)
    if "/" not in text:
        return text
    return f"{Path(text).name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def days(of: Iterable[Record]) -> str:
    """From the first to the last, ``2026-11-24 to 2026-11-25``; one alone where they are the same."""
    all_days = sorted({f"{record.started:%Y-%m-%d}" for record in of})
    return " to ".join(dict.fromkeys((all_days[0], all_days[-1])))


def path(record: Record, results: Path, suffix: str = ".json") -> Path:
    """Where a record, or another file of its run, lies below the results folder.

    Synthetic data never shares a folder with real data, and a run that did not succeed never takes the place of one that did.
    """
    return results.joinpath(*_parts(record, suffix))


def _parts(record: Record, suffix: str = ".json") -> tuple[str, ...]:
    """The folders of a record's file and its name, below the results folder."""
    failed = "" if record.status == "ok" else ".failed"
    return record.machine.name, record.task, record.column, f"{record.stem}{failed}{suffix}"


def readable(record: Record) -> Record:
    """The record as it will be read from its file. Raises RosettaError where it could not be: it is of no use then."""
    return files.parse(Record, files.dumped(record), f"the record of {record.stem}")


def write(record: Record, results: Path) -> Path:
    """Write a record atomically; one that succeeded takes away what an earlier failure of its row has left."""
    target = files.write(path(record, results), record)
    if record.status == "ok":
        # A run that failed does not know yet that its task makes its own data
        planned = column(record.preset, record.changed, bool(record.params.get("SYNTHETIC")))
        for folder in {target.parent, target.parent.with_name(planned)}:
            for suffix in SUFFIXES:  # by name: a folder may hold very many runs
                (folder / f"{record.stem}.failed{suffix}").unlink(missing_ok=True)
    return target


def read_all(results: Path) -> list[tuple[Path, Record]]:
    """Every record below the results folder, in the order of their paths. Raises RosettaError for one that is not as it must be."""
    try:
        found = sorted(results.glob(RECORDS), key=lambda file: file.parts)
    except OSError as error:
        raise RosettaError(f"{portable(str(error.filename or results))} cannot be read: {error.strerror}") from None
    return [(file, _read(file)) for file in found]


def _read(file: Path) -> Record:
    """A record, which must lie where its fields say: its files and those of other runs are found by these."""
    record = files.load(Record, file)
    here, there = file.parts[-4:], _parts(record)
    if here != there:
        field, name, expected = next(part for part in zip(FIELDS, here, there) if part[1] != part[2])
        where = f"by its {field} it belongs at {expected!r:.80}, not {name!r}"
        raise RosettaError(f"{portable(str(file))} is not valid: {where}; move or delete it")
    return record
