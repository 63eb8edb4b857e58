"""A batch: the planned runs wherever they are executed, each record and the table written as soon as a run ends."""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rosetta import files, records
from rosetta.batch.journal import Journal
from rosetta.batch.screen import Screen
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.report import pages
from rosetta.run.devices import Slot
from rosetta.run.environments import Tell
from rosetta.run.execute import Progress, Run
from rosetta.run.kernels import Kernels

RESERVE = 256 * 1024  # bytes set aside for records, should the disk be full
COST = 20  # the table takes no more than that part of a batch's time: it is made from all records

Numbered = list[tuple[int, Plan]]  # plans, each with its line of the journal


class Executor(Protocol):
    """Where runs go: this machine, or the workers of a cluster."""

    slots: list[Slot]  # one run at a time in each
    kernels: Kernels

    def check(self, plans: Iterable[Plan]) -> None:
        """Before anything is announced: raises RosettaError for what the user gave and no run could use."""

    def supply(self, plans: Iterable[Plan]) -> dict[str, str]:
        """Bring the data sets that the plans read. Returns those that cannot be downloaded, each with the reason.

        Raises RosettaError for a folder of the user's that lacks its data.
        """
        return {}

    def prepare(self, plans: Numbered, folder: Path, tell: Tell) -> None:
        """What the first run should not wait for. ``folder`` is for logs."""

    def each(self, plans: Numbered, batch: "Batch") -> Iterator[Record]:
        """Execute the plans, tell the batch of every step, and give it each run to keep; yields what it kept.

        Ctrl-C or SIGTERM ends this with KeyboardInterrupt, and what was going on then leaves no process.
        """


@dataclass
class Batch:
    """What the runs of a batch share. Results go below ``results``; ``journal`` and ``screen`` are told of every step."""

    catalog: Catalog
    results: Path
    journal: Journal
    screen: Screen
    troubles: list[str] = field(default_factory=list)  # what could not be kept, for the end of the batch

    def __post_init__(self):
        self._writing = threading.Lock()
        self._table_due, self._table_stale = 0.0, False
        self.reserve = self.journal.folder / "reserve"

    def run(self, plans: Numbered, executor: Executor) -> list[Record]:
        """Execute the plans; whatever has ended until an interrupt is kept."""
        try:
            executor.prepare(plans, self.journal.folder, self.screen.note)
            with suppress(OSError):
                self.reserve.write_bytes(b"\0" * RESERVE)
            with self.screen.live:
                return list(executor.each(plans, self))
        except KeyboardInterrupt:
            with self._writing:
                if self._table_stale:
                    self._renew_table()
            raise
        finally:
            self._free()
            self.journal.close()

    def progress(self, number: int, progress: Progress) -> None:
        self.journal.progress(number, progress)
        self.screen.progress(number)

    def keep(self, number: int, run: Run, beside: int) -> Record:
        """Put a run's files where they belong, tell of it, and renew the table.

        A results folder that can no longer be written is no reason to stop: what a run found is told.
        """
        record = run.record
        record.batch, record.beside = self.journal.status.id, beside
        with self._writing:
            try:
                save(run, self.results)
            except (RosettaError, OSError) as error:
                self._save_record(record, error)
            finally:
                run.close()
            self.journal.end(number, record, self.catalog.task(record.task))
            self.screen.end(number)
            self._table_stale = True
            if time.monotonic() >= self._table_due:
                self._renew_table()
        return record

    def _renew_table(self) -> None:
        started = time.monotonic()
        with suppress(RosettaError):  # tried again at the end of the batch
            pages.write(self.catalog, self.results)
        now, self._table_stale = time.monotonic(), False
        self._table_due = now + COST * (now - started)

    def _free(self) -> None:
        """Give back the place that was set aside."""
        with suppress(OSError):
            self.reserve.unlink()

    def _save_record(self, record: Record, error: Exception) -> None:
        """The record alone, in the place that was set aside."""
        self._free()
        record.notebook.executed = record.notebook.log = None
        label = self.catalog.label(record)
        try:
            _write(record, self.results)
            self.troubles.append(f"{label}: only its record could be kept: {error}")
        except (RosettaError, OSError) as again:
            self.troubles.append(f"{label}: {record.status}, but not kept: {again}")


def save(run: Run, results: Path) -> None:
    """Put a run's executed notebook, log and record where they belong, the record last."""
    for source, suffix in ((run.executed, ".ipynb"), (run.log, ".log")):
        if source.is_file():
            target = records.path(run.record, results, suffix)
            files.write_atomically(target, source.read_text(encoding="utf-8", errors="replace"))
            setattr(run.record.notebook, "executed" if suffix == ".ipynb" else "log", target.name)
    _write(run.record, results)


def _write(record: Record, results: Path) -> None:
    """The record; then a notebook or a log that it does not name goes, which is not whole or of an earlier run."""
    records.write(record, results)
    for suffix, named in ((".ipynb", record.notebook.executed), (".log", record.notebook.log)):
        if not named:
            records.path(record, results, suffix).unlink(missing_ok=True)
