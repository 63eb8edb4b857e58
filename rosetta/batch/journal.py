"""A batch on disk: what was asked for and how far it is, so that it can be watched, and resumed after anything.

``<results>/.batches/<id>/``: ``order.json``, written once; ``status.json``, renewed as runs go on; folders of the runs in flight.
"""

import os
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, PrivateAttr

from rosetta import files, lock
from rosetta.errors import RosettaError
from rosetta.files import Positive, Seconds, Strict
from rosetta.records import Record
from rosetta.run.execute import PREFIX, Progress
from rosetta.run.processes import kill_tree, sockets
from rosetta.tasks import Task

FOLDER, LOCK = ".batches", "lock"
# Of a batch: day, time, and a number where the clock was not past the batch before
ID = re.compile(r"([0-9]{8})-([0-9]{6})(?:-([0-9]+))?")
SCHEMA = 2
RENEW_S = 0.5  # the status is not written more often than that,
COST = 20  # nor for more than that part of the time: that of a very large batch takes long
Some = Annotated[int, Field(ge=1, le=10**6)]


class Order(Strict):
    """What was asked for, as far as it decides the runs: planned again from this, the catalog's changes count."""

    version: Literal[SCHEMA] = Field(SCHEMA, alias="schema")
    rows: list[str]  # TASK/FRAMEWORK[VARIANT]
    named: bool = False  # whether the user named the rows: then one that cannot be run here is a failure
    preset: str | None = None  # None until it is known whether there is a GPU
    overrides: dict[str, Any] = {}
    seeds: Some = 1
    synthetic: bool = False
    data: Literal["real"] | None = None  # whether a data set that cannot be had ends the batch
    timeout_s: Annotated[float, Field(gt=0, le=1e8)] | None = None
    data_dir: str | None = None
    python: list[str] = []
    build: list[str] = []
    gpus: str | None = None
    threads: Some | None = None
    jobs: Some | None = None
    gpus_per_run: Some = 1
    cluster: str | None = None

    @property
    def kernels(self) -> dict[str, list[str]]:
        """As ``kernels.chosen`` takes them."""
        return {"python": self.python, "build": self.build}


class Line(Strict):
    """One run of the batch. Its state is waiting, preparing, starting, running, or a record's status."""

    row: str
    estimate_s: Positive
    state: str = "waiting"
    where: str = ""
    started: AwareDatetime | None = None
    ended: AwareDatetime | None = None
    took_s: Seconds | None = None  # once it has ended
    part: str = ""  # how far it is: "epoch 3/10"
    note: str = ""  # what it tells on the way: "loss 1.2345", or what is being installed
    result: str = ""  # its main figure
    error: str | None = None
    _begun: float | None = PrivateAttr(None)  # by the monotonic clock, which nobody sets; only the runner has it

    def begin(self, where: str) -> None:
        self.started, self.where, self.part, self.note = datetime.now(UTC), where, "", ""
        self._begun = time.monotonic()

    @property
    def elapsed_s(self) -> float | None:
        """Seconds; who only watches a run takes them from the clock of the day, which may have been set meanwhile."""
        if self.started is None or self.ended:
            return self.took_s
        if self._begun is not None:
            return time.monotonic() - self._begun
        return max(0.0, (datetime.now(UTC) - self.started).total_seconds())

    @property
    def remaining_s(self) -> float:
        return 0.0 if self.ended else max(0.0, self.estimate_s - (self.elapsed_s or 0.0))


class Status(Strict):
    """How far a batch is."""

    version: Literal[SCHEMA] = Field(SCHEMA, alias="schema")
    id: str
    host: str
    pid: Annotated[int, Field(ge=1, lt=2**31)]
    started: AwareDatetime
    ended: AwareDatetime | None = None
    slots: Some = 1  # runs at a time
    lines: list[Line] = []

    @property
    def remaining_s(self) -> float:
        """Until all runs have ended, by their estimates."""
        left = [line.remaining_s for line in self.lines if line.ended is None]
        return max(max(left), sum(left) / self.slots) if left else 0.0

    @property
    def done(self) -> int:
        return sum(line.ended is not None for line in self.lines)


class Journal:
    """Keeps the status of a batch on disk. Its methods may be called by several threads.

    It holds the batch's lock, by which others see that its runner lives, until it is closed or the process ends.
    """

    def __init__(self, folder: Path, status: Status):
        self.folder, self.status = folder, status
        try:
            self._alive = lock.take(folder / LOCK, wait_s=RENEW_S)  # who watches may be looking at it just now
        except OSError as error:
            raise RosettaError(f"cannot lock batch {folder.name}: {error.strerror or error}") from None
        self._lock, self._due = threading.RLock(), 0.0
        self._later: threading.Timer | None = None

    def begin(self, number: int, where: str) -> None:
        """The run starts, or starts again elsewhere."""
        self.status.lines[number].begin(where)
        self.renew()

    def progress(self, number: int, progress: Progress) -> None:
        part = f"{progress.what} {progress.done}/{progress.of}" if progress.of else ""
        self._change(number, state=progress.state, note=progress.note, part=part)

    def end(self, number: int, record: Record, task: Task) -> None:
        took_s = self.status.lines[number].elapsed_s
        ended = {"state": record.status, "ended": datetime.now(UTC), "took_s": took_s, "error": record.error}
        self._change(number, note="", result=result(record, task), **ended)

    def wait(self, number: int) -> None:
        """The run has lost its place and waits for another."""
        self._change(number, state="waiting", started=None, where="")

    def _change(self, number: int, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self.status.lines[number], name, value)
        self.renew()

    def resize(self, slots: int) -> None:
        """There are more places for runs now, or fewer."""
        self.status.slots = max(slots, 1)

    def close(self) -> None:
        """The batch has ended, whole or interrupted."""
        self.status.ended = datetime.now(UTC)
        self.renew(now=True)
        self._alive.release()

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
        with suppress(OSError):  # also where the batch has left no folder
            temporary.write_text(self.status.model_dump_json(by_alias=True), encoding="utf-8")
            os.replace(temporary, self.folder / "status.json")
        now = time.monotonic()
        self._due = now + max(RENEW_S, COST * (now - started))


def open_new(results: Path, order: Order, lines: list[Line], slots: int) -> Journal:
    """Begin a batch; what killed runners have left of their runs is cleared away."""
    clean(results)
    folder = results / FOLDER / _new_id(folder.name for folder in (results / FOLDER).glob("*"))
    files.write(folder / "order.json", order)
    return _journal(folder, lines, slots)


def _new_id(known: Iterable[str]) -> str:
    """An id after all others: the time, or the latest id with a number where the clock is not past that one."""
    now = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    latest = max(map(_order, known), default=())
    if _order(now) > latest:
        return now
    day, second, number = latest
    return f"{day}-{second:06}-{number + 1}"


def _order(id: str) -> tuple[int, ...]:
    """By which ids are sorted: their numbers, since a text would have ``-10`` before ``-2``."""
    found = ID.fullmatch(id)
    return tuple(int(number or 1) for number in found.groups()) if found else ()


def reopen(folder: Path, lines: list[Line], slots: int) -> Journal:
    """Go on with a batch: the same id, the status begins anew."""
    clean(folder.parent.parent)
    return _journal(folder, lines, slots)


def _journal(folder: Path, lines: list[Line], slots: int) -> Journal:
    started = datetime.now(UTC).replace(microsecond=0)
    about = {"id": folder.name, "host": socket.gethostname(), "pid": os.getpid(), "started": started}
    journal = Journal(folder, Status(**about, slots=slots, lines=lines))
    journal.renew(now=True)
    return journal


def clean(results: Path) -> None:
    """Remove what runs have left whose runner was killed. Call it while no other runner is at work there."""
    for left in [*(results / FOLDER).glob(f"*/{PREFIX}*"), *results.glob(".*.tmp"), *results.glob("*/*/*/.*.tmp")]:
        if left.is_dir():
            kill_tree(None, str(left.resolve()))
            shutil.rmtree(left, ignore_errors=True)
            shutil.rmtree(sockets(left), ignore_errors=True)
        else:
            with suppress(OSError):
                left.unlink()


def find(results: Path, name: str) -> Path:
    """The folder of a batch; "last" is the latest one."""
    known = sorted((file.parent.name for file in (results / FOLDER).glob("*/order.json")), key=_order)
    if not known:
        raise RosettaError(f"there is no batch below {results.name}/: start one with run_all.py run")
    if name not in ("last", *known):
        raise RosettaError(f"there is no batch {name}; the latest are: {', '.join(known[-3:])}")
    return results / FOLDER / (known[-1] if name == "last" else name)


def read_order(folder: Path) -> Order:
    return files.load(Order, folder / "order.json")


def read_status(folder: Path) -> Status:
    return files.load(Status, folder / "status.json")


def is_alive(folder: Path) -> bool | None:
    """Whether a runner works on a batch; None where its file system cannot tell."""
    return lock.is_held(folder / LOCK)


def result(record: Record, task: Task) -> str:
    """The main figure of a run; of one that is too short for it, what it tells."""
    main = task.kind.main[0]
    verdict = task.verdict(main, [record])
    return verdict.text if verdict else main.unit.one(main.of(record.metrics))
