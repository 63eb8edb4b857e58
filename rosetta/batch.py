"""A batch: many runs one after another in each slot, whatever happens to one of them. ``run_all.py run``, ``resume``, ``--plan``."""

import itertools
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from rosetta import catalog, data, files, journal, plan, records
from rosetta.announcement import announced
from rosetta.compare import compare, show_batch
from rosetta.errors import RosettaError, SlotLost, Unavailable
from rosetta.journal import STYLES, Journal, Line, Order
from rosetta.paths import portable
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.report import pages
from rosetta.run import devices, kernels
from rosetta.run.devices import Slot, Workers
from rosetta.run.environments import events
from rosetta.run.execute import Run, execute, not_run
from rosetta.run.kernels import Kernels
from rosetta.run.telemetry import OtherPrograms
from rosetta.tasks import UNTIMED
from rosetta.terminal import Console
from rosetta.where import about

REAL = "real"  # the word of --data
COST = 20  # the table takes no more than that part of a batch's time: it is made from all records

Numbered = list[tuple[int, Plan]]  # plans, each with its line of the journal


def show_plan(order: Order, results: Path, rows: bool) -> int:
    """Announce what a batch would do, each row where ``rows`` asks for them; nothing is run, installed or downloaded."""
    with _executor(order) as executor:
        batch = Batch(order, results, executor)
        batch.announce(batch.plans, whole=not order.named, rows=rows)
    return 0


def run(order: Order, results: Path) -> int:
    """Run a new batch. Exit code 0 only if every row that was to run succeeded.

    A row that this machine cannot hold is skipped; that counts as a failure only if the row was asked for by name.
    """
    if order.cluster and any(value is not None for value in (order.gpus, order.threads, order.jobs)):
        raise RosettaError(
            "--gpus, --threads and --jobs share out this machine; with --cluster each worker takes one run at a time"
        )
    with _executor(order) as executor:
        batch = Batch(order, results, executor)
        batch.announce(batch.plans, whole=not order.named)
        batch.bring_data()
        return batch.execute(journal.new_folder(batch.results, batch.order), {})


def resume(name: str, results: Path, fresh: bool) -> int:
    """Run what a batch still lacks; all of it anew if ``fresh``."""
    folder = journal.find(results, name)
    order = files.load(Order, folder / "order.json")
    with _executor(order) as executor:
        batch = Batch(order, results, executor)
        batch.bring_data()
        finished = {} if fresh else batch.finished(folder.name)
        missing = [planned for number, planned in enumerate(batch.plans) if number not in finished]
        if not missing:  # what a runner that was killed after the last record had still to do
            Journal(folder, batch.lines(finished), len(executor.slots), batch.console).close()
            pages.write(batch.catalog, batch.results)
            batch.console.say(f"batch {folder.name}: all {len(finished)} runs are finished; --fresh runs them again")
            return 0
        batch.console.say(f"batch {folder.name}: {len(finished)} of {len(batch.plans)} runs are finished")
        batch.announce(missing)
        return batch.execute(folder, finished)


class Batch:
    """The runs of an order, planned for where they are executed. ``plans`` are in the order in which they run."""

    def __init__(self, asked: Order, results: Path, executor: "Local"):
        self.console, self.executor = executor.console, executor
        self.programs = OtherPrograms()
        self.programs.sample()
        self.catalog, self.results = catalog.load(), results
        on_gpu = any(slot.on_gpu for slot in executor.slots)
        self.order = order = asked.model_copy(update={"preset": asked.preset or ("full" if on_gpu else "quick")})
        rows = [row for row in self.catalog.select(order.rows) if order.named or on_gpu or not row.facts.gpu_only]
        slot = {} if order.threads is None else {"threads": order.threads}
        slot |= {"gpus": order.gpus_per_run} if order.gpus_per_run > 1 else {}
        plans = plan.make(
            self.catalog,
            rows,
            order.preset,
            order.overrides,
            gpu=on_gpu,
            synthetic=order.synthetic,
            seeds=order.seeds,
            slot=slot,
            timeout_s=order.timeout_s,
        )
        self.earlier = [record for _, record in records.read_all(self.results)]
        machines = {slot.machine.name for slot in executor.slots}
        same_machines = [record for record in self.earlier if record.machine.name in machines]
        tasks = list(dict.fromkeys([self.catalog.main, *self.catalog.tasks]))
        self.plans = plan.soonest_first(plans, same_machines, self._installed_s, tasks)
        if order.data_dir and not order.cluster:
            data.locate_all(plans, Path(order.data_dir))
            os.environ["ROSETTA_DATA"] = order.data_dir  # kernels inherit it; records must not hold such a path
        self.troubles: list[str] = []  # what could not be kept, for the end of the batch
        self._keeping, self._table_due = threading.Lock(), 0.0

    def _installed_s(self, planned: Plan) -> float:
        """Seconds until the environment of a run is there."""
        chosen = self.executor.kernels
        with suppress(Unavailable):
            if chosen.interpreter(planned.row.environment) is None:
                return chosen.environment(planned.row, self.executor.slots[0].machine.gpus).install_s
        return 0.0

    def announce(self, plans: list[Plan], whole: bool = False, rows: bool = False) -> None:
        """Tell what these plans will do. whole: nobody has chosen rows. rows: a line for each of them."""
        slots, downloads = self.executor.slots, []
        if not self.order.cluster:  # its workers have data of their own
            downloads = [f"data: {portable(text)}" for text in data.to_download(plans)]
        lines = announced(self.catalog, plans, slots, self.executor.kernels, self.results, downloads, whole, rows)
        for line in lines:
            self.console.say(line)

    def bring_data(self) -> None:
        """Bring the data sets of all plans. Runs whose data set cannot be had compute on generated data instead."""
        missing = set()
        for dataset in data.of(self.plans) if not self.order.cluster else ():
            try:
                data.locate(dataset)
            except data.Unreachable as reason:
                if self.order.data == REAL:
                    raise
                self.console.say(str(reason), "yellow")
                missing.add(dataset)
        if not missing:
            return
        runs = sum(planned.dataset in missing for planned in self.plans)
        self.plans = [
            planned.model_copy(update={"synthetic": True}) if planned.dataset in missing else planned
            for planned in self.plans
        ]
        self.console.say(
            f"So {runs} run{'s' * (runs > 1)} compute{'s' * (runs == 1)} on generated data, marked SYNTHETIC wherever a figure appears. "
            f"run_all.py resume takes the real data once they are there; --data {REAL} stops here instead.",
            "yellow",
        )

    def finished(self, batch: str) -> dict[int, Record]:
        """The records of a batch's successful runs that would be the same experiment today, by the numbers of their plans.

        A run beside other programs is taken again: its times are no figures.
        """
        succeeded = {
            (record.full_name, record.seed, record.key): record
            for record in self.earlier
            if record.batch == batch and record.status == "ok" and not (record.disturbed and record.preset != UNTIMED)
        }
        machines = {slot.machine.name: slot.machine for slot in self.executor.slots}
        if self.order.cluster:  # today's workers may be others than those that a cluster had when the batch began
            machines = {record.machine.name: record.machine for record in succeeded.values()}
        rows = {planned.row.full_name: planned.row for planned in self.plans}
        read = cache(files.read)

        @cache
        def fingerprint(row: str, machine: str) -> str:
            return self.executor.kernels.fingerprint(rows[row], machines[machine].gpus)

        finished = {}
        for (number, planned), machine in itertools.product(enumerate(self.plans), machines):
            key = planned.key(fingerprint(planned.row.full_name, machine), machine, read)
            if record := succeeded.get((planned.row.full_name, planned.seed, key)):
                finished[number] = record
        return finished

    def lines(self, finished: dict[int, Record]) -> list[Line]:
        """A line of the journal for each plan."""
        several, lines = len({planned.row.task for planned in self.plans}) > 1, []
        for number, planned in enumerate(self.plans):
            title = planned.row.full_name if several else planned.row.name
            seed = "" if planned.seed is None else f" seed {planned.seed}"
            lines.append(Line(row=title + seed, estimate_s=round(planned.estimate_s(), 1)))
            if record := finished.get(number):
                lines[-1].started = record.started
                lines[-1].end(record, self.catalog.task(record.task), record.started, record.metrics.wall_s)
        return lines

    def execute(self, folder: Path, finished: dict[int, Record]) -> int:
        """Run what is not finished, keep each run, and sum up. Returns the exit code; an interrupt loses nothing that has ended.

        folder: of the batch. finished: by the numbers of their plans.
        """
        self.journal = Journal(folder, self.lines(finished), len(self.executor.slots), self.console)
        missing = [(number, planned) for number, planned in enumerate(self.plans) if number not in finished]
        if self.order.preset != UNTIMED and not self.order.cluster and (busy := self.programs.now().disturb):
            self.console.say(f"this machine is busy: {busy}; times of runs beside them are marked", "yellow")
        try:
            with self.journal.live:
                done = list(self.executor.each(missing, self))
        finally:
            self.journal.close()
            try:
                table = f"; table: {portable(str(pages.write(self.catalog, self.results)[0]))}{about(self.results)}"
            except RosettaError as error:
                self.troubles.append(f"the table could not be renewed: {error}")
                table = ""
        for record in done:
            if record.status != "ok":
                log = records.path(record, self.results, ".log")
                where = f" (log: {portable(str(log))})" if log.exists() else ""
                text = f"{self.catalog.label(record)}: {record.status}: {record.error}{where}"
                self.console.say(text, STYLES[record.status])
        for trouble in self.troubles:
            self.console.say(trouble, "red")
        succeeded = sum(record.status == "ok" for record in done)
        self.console.say(f"{succeeded} of {len(done)} runs ok{table}")
        kept = {id(record) for record in finished.values()}
        before = [record for record in self.earlier if id(record) not in kept]
        show_batch(compare(before, [*finished.values(), *done]), self.console)
        good = all(record.status == "ok" or record.status == "skipped" and not self.order.named for record in done)
        return 0 if good and not self.troubles else 1

    def keep(self, number: int, run: Run, beside: int) -> Record:
        """Put a run's files where they belong, tell of it, and renew the table; called by several threads.

        A results folder that can no longer be written is no reason to stop: what a run gave is told.
        """
        record = run.record
        record.batch, record.beside = self.journal.folder.name, beside
        with self._keeping:
            try:
                save(run, self.results)
            except (RosettaError, OSError) as error:
                run.close()  # gives its room on a full disk to its record
                trouble = f"only its record could be kept: {error}"
                try:
                    save(run, self.results)
                except (RosettaError, OSError) as again:
                    trouble = f"{record.status}, but not kept: {again}"
                self.troubles.append(f"{self.catalog.label(record)}: {trouble}")
            run.close()
            self.journal.end(number, record, self.catalog.task(record.task))
            if time.monotonic() >= self._table_due:
                started = time.monotonic()
                with suppress(RosettaError):  # tried again at the end of the batch
                    pages.write(self.catalog, self.results)
                self._table_due = time.monotonic() + COST * (time.monotonic() - started)
        return record


def save(run: Run, results: Path) -> None:
    """Put a run's executed notebook and log where they belong, then its record; an earlier run's that it does not replace go."""
    kept = {".ipynb": None, ".log": None}  # their names
    for source, suffix in zip((run.executed, run.log), kept):
        if source.is_file() and not source.is_symlink():  # which a notebook may have put there
            target = records.path(run.record, results, suffix)
            files.write_atomically(target, source.read_text(encoding="utf-8", errors="replace"))
            kept[suffix] = target.name
    run.record.notebook.executed, run.record.notebook.log = kept.values()
    records.write(run.record, results)
    for suffix, name in kept.items():
        if not name:
            records.path(run.record, results, suffix).unlink(missing_ok=True)


@contextmanager
def _executor(order: Order) -> Iterator["Local"]:
    """Where the runs of an order go: this machine, or a cluster, which has the same three fields and the same method."""
    console = Console()
    if order.cluster:
        from rosetta.cluster import Cluster, connect

        with connect(order.cluster) as client:
            yield Cluster(client, order.kernels, order.data_dir, console)
        return
    slots = devices.timed(order.gpus, order.threads, order.gpus_per_run)
    if order.jobs not in (None, len(slots)):
        if order.preset != UNTIMED:
            raise RosettaError(
                f"--jobs {order.jobs} would let timed runs share a device ({len(slots)} here), and their times would mean nothing: "
                f"leave it out, or use --preset {UNTIMED}"
            )
        if order.threads is not None:
            raise RosettaError("--jobs shares the processors out by itself: leave out --threads")
        slots = devices.shared(order.gpus, order.jobs)
    yield Local(slots, kernels.chosen(**order.kernels), console)


@dataclass
class Local:
    """This machine as the place of a batch's runs: one a slot at a time."""

    slots: list[Slot]
    kernels: Kernels
    console: Console

    def each(self, plans: Numbered, batch: Batch) -> Iterator[Record]:
        """Execute the plans, tell the batch of every step, and give it each run to keep; yields what it kept.

        Ctrl-C or SIGTERM ends this with KeyboardInterrupt, and what was going on then leaves no process.
        """
        if len(self.slots) > 1:
            self._make_environments(plans, batch)
        workers = Workers(self.slots)
        yield from workers.each(lambda numbered: self._run(*numbered, workers, batch), plans)

    def _make_environments(self, plans: Numbered, batch: Batch) -> None:
        """Before the first run: an installation would disturb the runs beside it."""
        rows = {(planned.row.environment, planned.row.imports): planned.row for _, planned in plans}
        machines = {slot.machine.name: slot.machine for slot in self.slots}
        for row, machine in itertools.product(rows.values(), machines.values()):
            with suppress(RosettaError):  # told when a run asks for it
                tell = events(lambda text: self.console.say(text, "yellow"))
                self.kernels.get(row, batch.journal.folder / "install.log", tell, machine.gpus)

    def _run(self, number: int, planned: Plan, workers: Workers, batch: Batch) -> Record:
        """One run; it is kept before its slot takes the next, so that nothing else goes on while that is timed."""
        fitting = {slot.machine.name for slot in self.slots if self.kernels.has_build(planned.row, slot.machine.gpus)}
        folder = batch.journal.folder
        try:
            with workers.share(lambda slot: slot.machine.name in fitting) as slot:
                batch.journal.begin(number, slot.title)
                run = execute(planned, slot, self.kernels, partial(batch.journal.progress, number), folder)
                if workers.interrupted:
                    run.close()
                    raise CancelledError
                return batch.keep(number, run, beside=len(workers.slots) - 1)
        except SlotLost as lost:
            batch.journal.begin(number, "")
            failed = not_run(planned, workers.slots[0], self.kernels, "failed", str(lost))
            return batch.keep(number, failed, beside=0)
