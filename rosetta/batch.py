"""A batch: the planned runs, one a slot at a time, each record and the table written as soon as a run ends."""

import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rosetta import data, records, report
from rosetta.catalog import Catalog
from rosetta.devices import Slot
from rosetta.errors import RosettaError, SlotLost
from rosetta.execute import Run, execute, not_run
from rosetta.journal import Journal
from rosetta.kernels import Kernels
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.screen import Screen
from rosetta.workers import Workers

RESERVE = 256 * 1024  # bytes set aside for records, should the disk be full
COST = 20  # the table takes no more than that part of a batch's time: it is made from all records


@dataclass
class Batch:
    """What the runs of a batch share. Results go below ``results``; ``journal`` and ``screen`` are told of every step."""

    catalog: Catalog
    kernels: Kernels
    results: Path
    journal: Journal
    screen: Screen
    troubles: list[str] = field(default_factory=list)  # what could not be kept, for the end of the batch

    def __post_init__(self):
        self._writing, self._table_due = threading.Lock(), 0.0
        self.reserve = self.journal.folder / "reserve"

    def run(self, plans: list[tuple[int, Plan]], slots: list[Slot]) -> list[Record]:
        """Execute the plans, each given with its line of the journal; Ctrl-C or SIGTERM ends this with KeyboardInterrupt.

        Whatever has ended until then is kept. Raises RosettaError before the first run where the data is missing.
        """
        for dataset in {plan.dataset for _, plan in plans if not plan.synthetic}:
            data.locate(dataset)
        workers = Workers(slots)
        with suppress(OSError):
            self.reserve.write_bytes(b"\0" * RESERVE)
        if len(slots) > 1:
            self._provision(plans)
        try:
            with self.screen:
                return list(workers.each(lambda numbered: self._one(*numbered, workers), plans))
        except KeyboardInterrupt:
            with self._writing:
                self._renew_table()
            raise
        finally:
            self.reserve.unlink(missing_ok=True)
            self.journal.close()

    def _provision(self, plans: list[tuple[int, Plan]]) -> None:
        """Make the environments before the first run, since an installation would disturb the runs beside it."""
        log = self.journal.folder / "install.log"
        for environment, imports in dict.fromkeys((plan.row.environment, plan.row.imports) for _, plan in plans):
            with suppress(RosettaError):  # told when a run asks for it
                self.kernels.get(environment, imports, log)

    def _one(self, number: int, plan: Plan, workers: Workers) -> Record:
        """One run; it is kept before its slot takes the next, so that nothing else goes on while that is timed."""
        try:
            with workers.share() as slot:
                self.journal.begin(number, slot.title)
                run = execute(plan, slot, self.kernels, lambda told: self._tell(number, told), self.journal.folder)
                if workers.interrupted:
                    run.close()
                    raise CancelledError
                return self.keep(number, run, beside=len(workers.slots) - 1)
        except SlotLost as lost:
            self.journal.begin(number, "")
            return self.keep(number, not_run(plan, workers.slots[0], self.kernels, "failed", str(lost)), beside=0)

    def _tell(self, number: int, progress) -> None:
        self.journal.progress(number, progress)
        self.screen.progress(number)

    def keep(self, number: int, run: Run, beside: int) -> Record:
        """Put a run's files where they belong, tell of it, and renew the table. A disk that is full is no reason to stop."""
        record = run.record
        record.batch, record.beside = self.journal.status.id, beside
        with self._writing:
            try:
                save(run, self.results)
            except RosettaError as error:
                self._save_record(record, error)
            finally:
                run.close()
            self.journal.end(number, record)
            self.screen.end(number)
            if time.monotonic() >= self._table_due:
                self._renew_table()
        return record

    def _renew_table(self) -> None:
        started = time.monotonic()
        with suppress(RosettaError):  # tried again at the end of the batch
            report.write(self.catalog, self.results)
        now = time.monotonic()
        self._table_due = now + COST * (now - started)

    def _save_record(self, record: Record, error: RosettaError) -> None:
        """The record alone, in the place that was set aside."""
        self.reserve.unlink(missing_ok=True)
        record.notebook.executed = record.notebook.log = None
        try:
            records.write(record, self.results)
            self.troubles.append(f"{record.name}: only its record could be kept: {error}")
        except RosettaError as again:
            self.troubles.append(f"{record.name}: {record.status}, but not kept: {again}")


def save(run: Run, results: Path) -> None:
    """Put a run's executed notebook, log and record where they belong, the record last."""
    for source, suffix in ((run.executed, ".ipynb"), (run.log, ".log")):
        if source.is_file():
            target = records.path(run.record, results, suffix)
            records.write_atomically(target, source.read_text(encoding="utf-8", errors="replace"))
            setattr(run.record.notebook, "executed" if suffix == ".ipynb" else "log", target.name)
    records.write(run.record, results)
