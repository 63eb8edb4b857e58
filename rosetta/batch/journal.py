"""A batch on disk: what was asked for and how far it is, so that it can be watched, and resumed after anything.

``<results>/.batches/<id>/``: ``order.json``, written once; ``status.json``, renewed as runs go on; folders of the runs in flight.
"""

import json
import os
import shutil
import socket
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rosetta import records
from rosetta.errors import RosettaError
from rosetta.records import Record
from rosetta.run.child import sockets
from rosetta.run.execute import PREFIX, Progress

FOLDER = ".batches"
SCHEMA = 1
RENEW_S = 0.5  # the status is not written more often than that,
COST = 20  # nor for more than that part of the time: that of a very large batch takes long


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Order(Strict):
    """What was asked for, as far as it decides the runs: planned again from this, the catalog's changes count."""

    version: int = Field(SCHEMA, alias="schema")
    task: str
    rows: list[str]
    named: bool = False  # whether the user named the rows: then one that cannot be run here is a failure
    preset: str | None = None  # None until it is known whether there is a GPU
    overrides: dict[str, Any] = {}
    seeds: int = 1
    synthetic: bool = False
    timeout_s: float | None = None
    data_dir: str | None = None
    python: list[str] = []
    gpus: str | None = None
    threads: int | None = None
    jobs: int | None = None
    cluster: str | None = None


class Line(Strict):
    """One run of the batch. Its state is waiting, preparing, starting, training, or a record's status."""

    row: str
    estimate_s: float
    state: str = "waiting"
    where: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    epoch: int = 0
    epochs: int = 0
    loss: str = ""
    accuracy: float | None = None
    error: str | None = None

    @property
    def elapsed_s(self) -> float | None:
        return None if self.started is None else ((self.ended or datetime.now(UTC)) - self.started).total_seconds()

    @property
    def remaining_s(self) -> float:
        return 0.0 if self.ended else max(0.0, self.estimate_s - (self.elapsed_s or 0.0))


class Status(Strict):
    """How far a batch is."""

    version: int = Field(SCHEMA, alias="schema")
    id: str
    host: str
    pid: int
    started: datetime
    ended: datetime | None = None
    slots: int = 1  # runs at a time
    lines: list[Line] = []

    @property
    def remaining_s(self) -> float:
        """Until all runs have ended, by their estimates."""
        left = [line.remaining_s for line in self.lines if line.ended is None]
        return max(max(left), sum(left) / self.slots) if left else 0.0

    @property
    def done(self) -> int:
        return sum(line.ended is not None for line in self.lines)

    def alive(self) -> bool | None:
        """Whether the runner still works on it; None where that cannot be told from this host."""
        if self.ended:
            return False
        return _runs(self.pid, self.started) if self.host == socket.gethostname() else None


def _runs(pid: int, since: datetime) -> bool:
    """Whether the process lives that had this number then: after a restart of the machine another may have it."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() < since.timestamp() + 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


class Journal:
    """Keeps the status of a batch on disk. Its methods may be called by several threads."""

    def __init__(self, folder: Path, status: Status):
        self.folder, self.status = folder, status
        self._lock, self._due = threading.RLock(), 0.0
        self._later: threading.Timer | None = None

    def begin(self, number: int, where: str) -> None:
        """The run starts, or starts again elsewhere."""
        line = self.status.lines[number]
        line.started, line.where = datetime.now(UTC), where
        line.epoch, line.epochs, line.loss = 0, 0, ""
        self.renew()

    def progress(self, number: int, progress: Progress) -> None:
        line = self.status.lines[number]
        line.state = progress.state
        if progress.epoch:
            line.epoch, line.epochs, line.loss = progress.epoch, progress.epochs, progress.loss
        self.renew()

    def end(self, number: int, record: Record) -> None:
        line = self.status.lines[number]
        line.state, line.ended, line.error = record.status, datetime.now(UTC), record.error
        line.accuracy = record.metrics.accuracy
        self.renew()

    def wait(self, number: int) -> None:
        """The run has lost its place and waits for another."""
        line = self.status.lines[number]
        line.state, line.started, line.where = "waiting", None, ""
        self.renew(now=True)

    def resize(self, slots: int) -> None:
        """There are more places for runs now, or fewer."""
        self.status.slots = max(slots, 1)

    def close(self) -> None:
        """The batch has ended, whole or interrupted."""
        self.status.ended = datetime.now(UTC)
        self.renew(now=True)

    def renew(self, now: bool = False) -> None:
        """Write the status: now, or as soon as it is due again. On a full disk it stays as it is."""
        with self._lock:
            wait = self._due - time.monotonic()
            if now or wait <= 0:
                self._write()
            elif self._later is None:
                self._later = threading.Timer(wait, self.renew, kwargs={"now": True})
                self._later.daemon = True
                self._later.start()

    def _write(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        started, temporary = time.monotonic(), self.folder / "status.tmp"
        with suppress(OSError):
            temporary.write_text(self.status.model_dump_json(by_alias=True), encoding="utf-8")
            os.replace(temporary, self.folder / "status.json")
        now = time.monotonic()
        self._due = now + max(RENEW_S, COST * (now - started))


def open_new(results: Path, order: Order, lines: list[Line], slots: int) -> Journal:
    """Begin a batch; what killed runners have left of their runs is cleared away."""
    sweep(results)
    started = datetime.now(UTC).replace(microsecond=0)
    folder = _free(results / FOLDER, started.strftime("%Y%m%d-%H%M%S"))
    records.write_atomically(folder / "order.json", order.model_dump_json(by_alias=True, indent=1) + "\n")
    return _journal(folder, started, lines, slots)


def reopen(folder: Path, lines: list[Line], slots: int) -> Journal:
    """Go on with a batch: the same id, the status begins anew."""
    sweep(folder.parent.parent)
    return _journal(folder, datetime.now(UTC).replace(microsecond=0), lines, slots)


def _journal(folder: Path, started: datetime, lines: list[Line], slots: int) -> Journal:
    status = Status(
        id=folder.name, host=socket.gethostname(), pid=os.getpid(), started=started, slots=slots, lines=lines
    )
    journal = Journal(folder, status)
    journal.renew(now=True)
    return journal


def _free(parent: Path, name: str) -> Path:
    """A folder that is not there yet; two batches may begin within a second."""
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        if not folder.exists():
            return folder
        number += 1


def sweep(results: Path) -> None:
    """Remove what runs have left whose runner was killed. Call it while no other runner is at work there."""
    for left in [*(results / FOLDER).glob(f"*/{PREFIX}*"), *results.glob(".*.tmp"), *results.glob("*/*/*/.*.tmp")]:
        if left.is_dir():
            shutil.rmtree(left)
            shutil.rmtree(sockets(left), ignore_errors=True)
        else:
            left.unlink()


def find(results: Path, name: str) -> Path:
    """The folder of a batch; "last" is the latest one."""
    known = sorted(file.parent.name for file in (results / FOLDER).glob("*/order.json"))
    if not known:
        raise RosettaError(f"there is no batch below {results.name}/: start one with run_all.py run")
    if name == "last":
        return results / FOLDER / known[-1]
    if name not in known:
        raise RosettaError(f"there is no batch {name}; the latest are: {', '.join(known[-3:])}")
    return results / FOLDER / name


def read_order(folder: Path) -> Order:
    return _read(folder / "order.json", Order)


def read_status(folder: Path) -> Status:
    return _read(folder / "status.json", Status)


def _read(file: Path, model):
    try:
        return model.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise RosettaError(f"batch {file.parent.name}: {file.name} cannot be read: {reason}; start a new one") from None
