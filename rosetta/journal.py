"""What a batch leaves on disk and shows on the screen: what was ordered, how far it is; ``run_all.py watch``.

``<results>/.batches/<id>/``: ``order.json``, written once; ``status.json``, renewed as runs go on; folders of the runs in flight.
"""

import os
import shutil
import socket
import threading
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rosetta import files, lock
from rosetta.errors import RosettaError
from rosetta.figures import clock
from rosetta.files import Positive, Seconds, Strict
from rosetta.paths import checkout
from rosetta.records import Record
from rosetta.run.environments import event
from rosetta.run.execute import PREFIX, Progress
from rosetta.run.processes import kill_tree, sockets
from rosetta.tasks import Task
from rosetta.terminal import Console

FOLDER, LOCK = ".batches", "lock"
SCHEMA = 2
RENEW_S = 0.5  # the status is not written more often than that
STYLES = {"ok": "green", "skipped": "yellow", "waiting": "dim", "interrupted": "yellow"}
STYLES |= dict.fromkeys(("failed", "crashed", "timeout", "diverged"), "red")
EVERY_S = 60.0  # between two plain lines about a run that goes on
ROOM = 5  # lines of the terminal that are not the table's: heading, caption, what the shell wants
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
    ready: AwareDatetime | None = None  # its environment is there: the estimate begins
    ended: AwareDatetime | None = None
    took_s: Seconds | None = None  # once it has ended
    disturbed: str | None = None  # why its times are no figures
    part: str = ""  # how far it is: "epoch 3/10"
    note: str = ""  # what it says on the way: "loss 1.2345", or what is being installed
    result: str = ""  # its main figure
    error: str | None = None

    @property
    def elapsed_s(self) -> float | None:
        """By the clock of the day, while the run goes on."""
        if self.started is None or self.ended:
            return self.took_s
        return max(0.0, (datetime.now(UTC) - self.started).total_seconds())

    @property
    def computed_s(self) -> float:
        """Since its environment was there: what the estimate is of."""
        return 0.0 if self.ready is None else max(0.0, ((self.ended or datetime.now(UTC)) - self.ready).total_seconds())

    def end(self, record: Record, task: Task, ended: datetime, took_s: float | None) -> None:
        """Show what has become of the run: its main figure, or a verdict where the run is too short for one."""
        main = task.main[0]
        verdict = task.verdict(main, [record])
        self.state, self.error, self.note = record.status, record.error, ""
        self.result = verdict.text if verdict else main.unit.one(main.of(record.metrics))
        self.took_s, self.ended = took_s, ended
        self.disturbed = record.disturbed


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
        """Until all runs have ended: by their estimates, as far as these held for those that have ended."""
        done = [line for line in self.lines if line.state == "ok" and line.ready]
        estimated_s = sum(line.estimate_s for line in done)
        pace = sum(line.computed_s for line in done) / estimated_s if estimated_s else 1.0
        left = [max(0.0, pace * line.estimate_s - line.computed_s) for line in self.lines if line.ended is None]
        return max(max(left), sum(left) / self.slots) if left else 0.0

    @property
    def done(self) -> int:
        return sum(line.ended is not None for line in self.lines)

    def stop(self) -> None:
        """The batch goes on no more: a run that had not ended does not run, whatever was written last."""
        for line in self.lines:
            if line.ended is None and line.started is not None:
                line.state, line.started, line.note = "interrupted", None, ""


class Journal:
    """Keeps the status of a batch on disk and on the screen. Its methods may be called by several threads.

    A terminal shows its table while the context ``live`` lasts; where there is none, plain lines tell what happens. It holds the
    batch's lock, by which others see that its runner lives, until it is closed or the process ends. What runners that were killed
    have left in the results folder is removed first.
    """

    def __init__(self, folder: Path, lines: list[Line], slots: int, console: Console):
        clean(folder.parent.parent)
        started = datetime.now(UTC).replace(microsecond=0)
        self.folder, self.console = folder, console
        self.status = status = Status(
            id=folder.name, host=socket.gethostname(), pid=os.getpid(), started=started, slots=slots, lines=lines
        )
        self.live = (
            Live(get_renderable=lambda: table(status, console.height), console=console, refresh_per_second=2)
            if console.is_terminal
            else nullcontext()
        )
        self._said: dict[int, tuple[str, float]] = {}  # the last plain line of each run, and when it was
        try:
            self._alive = lock.take(folder / LOCK, wait_s=RENEW_S)  # who watches may be looking at it just now
        except OSError as error:
            raise RosettaError(f"cannot lock batch {folder.name}: {error.strerror or error}") from None
        self._changed, self._closed = threading.Event(), threading.Event()
        self._write()
        self._writer = threading.Thread(target=self._keep_writing, daemon=True)
        self._writer.start()

    def begin(self, number: int, where: str) -> None:
        """The run starts, or starts again elsewhere."""
        self._change(number, started=datetime.now(UTC), ready=None, where=where, part="", note="")

    def progress(self, number: int, progress: Progress) -> None:
        """Of plain lines there are few: that something is installed, that the run starts, and once a minute how far it is."""
        line = self.status.lines[number]
        if progress.state != "preparing" and line.ready is None:
            self._change(number, ready=datetime.now(UTC))
        part = f"{progress.what} {progress.done}/{progress.of}" if progress.of else ""
        self._change(number, state=progress.state, note=progress.note, part=part)
        said, when = self._said.get(number, ("", 0.0))
        what = event(line.note) if line.state == "preparing" and line.note else line.state
        if what == "preparing" or what == "running" and time.monotonic() - when < EVERY_S:
            self._said[number] = what, when  # so that a second attempt is announced, too
        elif what == "running":
            self._say(number, f"{line.part}  {line.note}")
        elif what != said:
            self._say(number, what)

    def end(self, number: int, record: Record, task: Task) -> None:
        line = self.status.lines[number]
        line.end(record, task, datetime.now(UTC), line.elapsed_s)
        self._changed.set()
        disturbed = f"; its times are no figures: {line.disturbed}" if line.disturbed else ""
        self._say(number, f"{line.state}  {line.error or line.result}{disturbed}")

    def wait(self, number: int) -> None:
        """The run has lost its place and waits for another."""
        self._change(number, state="waiting", started=None, ready=None, where="")

    def close(self) -> None:
        """The batch has ended, whole or interrupted."""
        self._closed.set()
        self._writer.join()
        self.status.ended = datetime.now(UTC)
        self.status.stop()
        self._write()
        self._alive.release()

    def _change(self, number: int, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self.status.lines[number], name, value)
        self._changed.set()

    def _say(self, number: int, what: str) -> None:
        """Print one plain line, where there is no live table."""
        if self.console.is_terminal:
            return
        self._said[number] = what, time.monotonic()
        line, several = self.status.lines[number], self.status.slots > 1
        where = f" on {line.where}" if several and line.where else ""
        place = f"[{number + 1}/{len(self.status.lines)}] {line.row}{where}"
        self.console.say(f"{place}: {what}  ({clock(line.elapsed_s or 0)})")

    def _keep_writing(self) -> None:
        while not self._closed.wait(RENEW_S):
            if self._changed.is_set():
                self._changed.clear()
                self._write()

    def _write(self) -> None:
        """On a full disk the file stays as it was."""
        temporary = self.folder / "status.tmp"
        with suppress(OSError):  # also where the folder is gone
            temporary.write_text(self.status.model_dump_json(by_alias=True), encoding="utf-8")
            os.replace(temporary, self.folder / "status.json")


def new_folder(results: Path, order: Order) -> Path:
    """Make the folder of a new batch, which is named after the second in which it begins."""
    while (folder := results / FOLDER / f"{datetime.now(UTC):%Y%m%d-%H%M%S}").exists():
        time.sleep(0.1)
    files.write(folder / "order.json", order)
    return folder


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
    batches = sorted(file.parent.name for file in (results / FOLDER).glob("*/order.json"))
    if not batches:
        raise RosettaError(f"there is no batch below {results.name}/: start one with run_all.py run")
    if name not in ("last", *batches):
        raise RosettaError(f"there is no batch {name}; the latest are: {', '.join(batches[-3:])}")
    return results / FOLDER / (batches[-1] if name == "last" else name)


def table(status: Status, height: int) -> Table:
    """All lines where they fit the height of the terminal, with what remains; else those around the running ones."""
    several = status.slots > 1
    left = "" if status.ended else f", about {clock(status.remaining_s)} left"
    caption = Text(f"batch {status.id}: {status.done} of {len(status.lines)} done{left}")
    grid = Table(box=None, pad_edge=False, caption=caption, caption_justify="left")
    headings = ["row", "state", *(["on"] if several else [])]
    for heading in [*headings, "at", "result", "elapsed", "of"]:
        grid.add_column(heading, justify="left" if heading in headings else "right", no_wrap=True)
    grid.add_column("", overflow="fold")
    lines, room = status.lines, height - ROOM
    if len(lines) > room:  # a live table cannot scroll
        current = max((number for number, line in enumerate(lines) if line.started is not None), default=0)
        first = max(0, min(current - room // 2, len(lines) - room))
        lines = lines[first : first + room]
    for line in lines:
        grid.add_row(
            line.row,
            Text(line.state, STYLES.get(line.state, "cyan")),
            *([Text(line.where)] if several else []),
            Text(line.part),
            Text(line.result),
            "" if line.elapsed_s is None else clock(line.elapsed_s),
            "" if line.ended else f"about {clock(line.estimate_s)}",
            Text(
                line.error or line.disturbed or line.note, "red" if line.error else "yellow" if line.disturbed else ""
            ),
        )
    return grid


def watch(name: str, results: Path) -> int:
    """Show a batch that another process runs until it ends, or once where there is no terminal.

    Exit code 1 if it ended without all its runs.
    """
    folder, console = find(results, name), Console()

    def read() -> tuple[Status, bool]:
        """How far it is, and whether it goes on."""
        alive = lock.is_held(
            folder / LOCK
        )  # first: a runner that has gone since then has written its status to the end
        status = files.load(Status, folder / "status.json")
        if not alive:
            status.stop()
        return status, alive and not status.ended

    status, goes_on = read()
    try:
        if console.is_terminal:
            with Live(table(status, console.height), console=console, auto_refresh=False) as live:
                while goes_on:
                    time.sleep(RENEW_S)
                    status, goes_on = read()
                    live.update(table(status, console.height), refresh=True)
        else:
            console.print(table(status, len(status.lines) + ROOM))
    except KeyboardInterrupt:
        return 0
    missing = len(status.lines) - status.done
    if not missing or goes_on:
        return 0
    reason = "was interrupted" if status.ended else "has lost its runner"
    again = f"run_all.py resume {status.id}{f' --out {results}' if results != checkout.runs else ''}"
    console.say(f"batch {status.id} {reason}, {missing} runs are missing; go on with: {again}", "red")
    return 1
