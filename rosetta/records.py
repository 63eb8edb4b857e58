"""Records: one JSON file a run, the only thing that the table and every picture are made from.

Times are in seconds, memory in bytes, fractions between 0 and 1. A field whose fact could not be had is null or absent, never 0.
"""

import gc
import json
import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.record import SCHEMA
from rosetta.errors import RosettaError
from rosetta.naming import Named

RECORDS = "[!.]*/*/*/*.json"  # below a results folder: machine, task, preset, row; hidden folders hold runs in flight
SUFFIXES = (".json", ".ipynb", ".log")  # of a run's files
Status = Literal["ok", "failed", "crashed", "timeout", "diverged", "skipped"]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Gpu(Part):
    name: str
    memory: int
    driver: str
    cuda: str  # the newest CUDA that the driver supports
    capability: str | None = None  # compute capability, "9.0": which machine code it runs


class Machine(Part):
    """The host and its accelerators; ``name`` is a column of the table and a folder below ``results/``."""

    name: str
    cpu: str
    cores: int
    memory: int
    os: str
    gpus: list[Gpu] = []


class Dataset(Part):
    name: str | None = None
    synthetic: bool = False
    n_train: int | None = None
    n_test: int | None = None


class Commit(Part):
    id: str | None = None
    dirty: bool | None = None  # whether files that git tracks differed from the commit


class Notebook(Part):
    path: str
    sha256: str
    executed: str | None = None  # file name of the executed copy, whole or up to where it stopped, beside the record
    log: str | None = None  # file name of what the run printed


class Metrics(Part):
    accuracy: float | None = None  # fraction of the test images
    parameters: int | None = None
    loss: list[float | None] = []  # mean training loss of each epoch
    epoch_s: list[float] = []
    epoch_accuracy: list[float | None] = []  # fraction of the test images after each epoch, off the clock
    train_s: float | None = None  # all epochs
    target_s: float | None = None  # training until the task's target accuracy was first reached
    first_epoch_s: float | None = None  # holds compilation and warm-up
    steady_epoch_s: float | None = None  # median of the epochs after the first
    images_per_s: float | None = None  # training images in a steady epoch, or in the only one
    start_s: float | None = None  # from the start of the run's process to the first cell: papermill and the kernel
    setup_s: float | None = None  # imports and device
    data_s: float | None = None
    build_s: float | None = None  # model, weights, loss and optimizer
    evaluate_s: float | None = None
    wall_s: float | None = None  # the whole run, from the start of its process to its end
    cpu_s: float | None = None  # processor seconds of the run's processes
    peak_rss: int | None = None  # largest resident memory of the kernel and its children
    peak_gpu_memory: int | None = None
    energy_j: float | None = None  # of the GPU, the whole run
    images_per_j: float | None = None  # training images in the epochs after the first


class Telemetry(Part):
    """What NVML told of the GPU during a run, sampled twice a second."""

    energy_from: Literal["counter", "power"] | None = None  # the GPU's energy counter, or its power added up
    power_w: float | None = None  # mean
    utilisation: float | None = None  # mean share of the time in which a kernel ran
    clock_mhz: float | None = None  # median of the multiprocessors' clock
    throttled: list[str] = []  # reasons for a lower clock that were seen
    error: str | None = None  # NVML's, from which on there are no more samples


class Record(Named, Part):
    """What one run was and what came of it."""

    version: int = Field(SCHEMA, alias="schema")
    task: str
    framework: str
    variant: str | None
    title: str
    environment: str
    preset: str  # smoke, quick, full, or custom where parameters were given by hand
    status: Status
    error: str | None = None  # one line
    started: datetime
    commit: Commit = Commit()
    notebook: Notebook
    machine: Machine
    device: str | None = None  # as the framework names it
    threads: int | None = None  # that the run was told to use; None: as the framework chooses
    thread_pools: dict[str, int] = {}  # read back from the run: processors, and threads of the pools that were loaded
    beside: int = 0  # runs that may have gone on at the same time on this machine, on other GPUs or processors
    batch: str | None = None
    key: str | None = None  # of notebook, common, parameters, environment and machine: equal keys need not run twice
    seed: int | None = None  # where it is not the task's own
    attempts: int = 1  # 2: a worker of the cluster was lost in the first
    dataset: Dataset = Dataset()
    params: dict[str, Any] = {}
    versions: dict[str, str] = {}
    cuda: dict[str, str] = {}  # runtime and cuDNN that the framework had loaded
    metrics: Metrics = Metrics()
    telemetry: Telemetry | None = None

    @property
    def stem(self) -> str:
        """The name of the record's files."""
        return super().stem if self.seed is None else f"{super().stem}.seed-{self.seed}"


def path(record: Record, results: Path, suffix: str = ".json") -> Path:
    """Where a record, or another file of its run, lies below the results folder.

    Synthetic data never shares a folder with real data, and a run that did not succeed never takes the place of one that did.
    """
    column = record.preset + ("-synthetic" if record.dataset.synthetic else "")
    failed = "" if record.status == "ok" else ".failed"
    return results / record.machine.name / record.task / column / f"{record.stem}{failed}{suffix}"


def write(record: Record, results: Path) -> Path:
    """Write a record atomically; one that succeeded takes away what an earlier failure of its row has left."""
    target = path(record, results)
    write_atomically(target, record.model_dump_json(by_alias=True, indent=1) + "\n")
    if record.status == "ok":
        for suffix in SUFFIXES:  # by name: a folder may hold very many runs
            target.with_name(f"{record.stem}.failed{suffix}").unlink(missing_ok=True)
    return target


def write_atomically(target: Path, text: str) -> None:
    """The file is there whole or as it was before, also when the disk is full."""
    handle = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, target)
    except OSError as error:
        if handle is not None:
            Path(name).unlink(missing_ok=True)
        raise RosettaError(f"cannot write {target.name}: {error.strerror}; what was finished before is kept") from error


def read(file: Path) -> Record:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RosettaError(f"{file} is not a record: {str(error).splitlines()[0]}; mend or delete it") from None
    return parse(text, str(file))


def parse(text: str, file: str) -> Record:
    """The record that a file's text is. Raises RosettaError, which names the file, where it is none."""
    try:
        record = Record.model_validate_json(text)
    except ValidationError as error:
        raise RosettaError(f"{file} {_trouble(text, error)}") from None
    if record.version != SCHEMA or "version" not in record.model_fields_set:
        raise RosettaError(f"{file} {OTHER_SCHEMA}")
    return record


OTHER_SCHEMA = f"is not a record of schema {SCHEMA}; delete it and run its row again"


def _trouble(text: str, error: ValidationError) -> str:
    """Why a text is no record, and what to do."""
    try:
        data = json.loads(text)
    except ValueError as reason:
        return f"is not a record: {reason}; mend or delete it"
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return OTHER_SCHEMA
    first = error.errors()[0]
    return f"is not a valid record: {'.'.join(map(str, first['loc']))}: {first['msg']}; mend or delete it"


def read_all(results: Path) -> list[tuple[Path, Record]]:
    """Every record below the results folder, in the order of their paths."""
    collecting = gc.isenabled()
    gc.disable()  # records hold no cycles: to look for some among very many would take as long as reading them
    try:
        return [(file, read(file)) for file in sorted(results.glob(RECORDS), key=lambda file: file.parts)]
    finally:
        if collecting:
            gc.enable()
