"""What ``run_all.py run`` does: plan, announce, execute, sum up."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.text import Text

from rosetta import catalog, plan, records
from rosetta.batch import journal
from rosetta.batch.batch import Batch, Executor
from rosetta.batch.journal import Journal, Line, Order
from rosetta.batch.local import Local
from rosetta.batch.screen import STYLES, Screen, clock
from rosetta.compare import changes
from rosetta.compare.comparison import compare
from rosetta.errors import RosettaError
from rosetta.paths import RESULTS, portable
from rosetta.plan import UNTIMED, Plan, content
from rosetta.records import Record
from rosetta.report import tables
from rosetta.run import devices
from rosetta.run.devices import Slot
from rosetta.run.kernels import Kernels, parse_given


def order(names: list[str], task: str | None, **options) -> Order:
    """What the command line asks for. Raises RosettaError for names that are none and options that exclude each other."""
    known = catalog.load()
    task = task or next(iter(known.tasks))
    rows = [row.name for row in known.select(task, names)]
    asked = Order(task=task, rows=rows, named=bool(names), **options)
    if asked.cluster and any(value is not None for value in (asked.gpus, asked.threads, asked.jobs)):
        raise RosettaError(
            "--gpus, --threads and --jobs share out this machine; with --cluster each worker takes one run at a time"
        )
    return asked


def run(asked: Order, out: Path | None) -> int:
    """Run a new batch. Exit code 0 only if every row that was to run succeeded.

    A row that this machine cannot hold is skipped; that counts as a failure only if the row was asked for by name.
    """
    with _executor(asked) as executor:
        return _Job(asked, out, executor).start()


def resume(name: str, out: Path | None, fresh: bool) -> int:
    """Run what a batch still lacks; all of it anew if ``fresh``."""
    folder = journal.find(out.absolute() if out else RESULTS, name)
    asked = journal.read_order(folder)
    with _executor(asked) as executor:
        return _Job(asked, out, executor).go_on(folder, fresh)


@contextmanager
def _executor(asked: Order) -> Iterator[Executor]:
    """Where the runs go: this machine, unless a cluster is asked for."""
    if asked.cluster:
        from rosetta.cluster.executor import Cluster

        def note(text: str) -> None:
            Console().print(text, markup=False, highlight=False, soft_wrap=True)

        with Cluster(asked.cluster, asked.python, asked.data_dir, note) as cluster:
            yield cluster
    else:
        if asked.data_dir:  # kernels inherit it; as a parameter it would put this machine's paths into the records
            os.environ["ROSETTA_DATA"] = asked.data_dir
        yield Local(_slots(asked), Kernels(parse_given(asked.python)))


class _Job:
    """An order, planned for where it is executed."""

    def __init__(self, asked: Order, out: Path | None, executor: Executor):
        self.console, self.executor, self.slots = Console(), executor, executor.slots
        self.gpu = any(slot.on_gpu for slot in self.slots)
        self.order = asked.model_copy(update={"preset": asked.preset or plan.default_preset(self.gpu)})
        self.results = out.absolute() if out else RESULTS
        self.catalog = catalog.load()
        self.columns = {slot.machine.name for slot in self.slots}
        self.records = [record for _, record in records.read_all(self.results)]
        earlier = [record for record in self.records if record.machine.name in self.columns]
        self.plans = plan.cheapest_first(self._planned(), earlier)

    def _planned(self) -> list[Plan]:
        asked = self.order
        return plan.make(
            self.catalog,
            self.catalog.select(asked.task, asked.rows),
            asked.preset,
            asked.overrides,
            gpu=self.gpu,
            synthetic=asked.synthetic,
            seeds=asked.seeds,
            timeout_s=asked.timeout_s,
        )

    def start(self) -> int:
        _announce(self.plans, self.slots, self.console)
        return self._execute(journal.open_new(self.results, self.order, self._lines(), len(self.slots)), {})

    def go_on(self, folder: Path, fresh: bool) -> int:
        kept = {} if fresh else self._kept(folder.name)
        lines = [_finished(line, kept[number]) if number in kept else line for number, line in enumerate(self._lines())]
        missing = [pair for number, pair in enumerate(self.plans) if number not in kept]
        if not missing:
            self.console.print(f"batch {folder.name}: all {len(kept)} runs are finished; --fresh runs them again")
            return 0
        self.console.print(f"batch {folder.name}: {len(kept)} of {len(self.plans)} runs are finished", highlight=False)
        _announce(missing, self.slots, self.console)
        return self._execute(journal.reopen(folder, lines, len(self.slots)), kept)

    def _kept(self, batch: str) -> dict[int, Record]:
        """The batch's finished runs, by their place among the plans, whose notebook, parameters, pins and machine are today's."""
        finished = {
            (record.name, record.seed, record.preset, record.key): record
            for record in self.records
            if record.batch == batch and record.status == "ok"
        }
        # The workers of today may be others than those that a cluster had when the batch began
        machines = {record.machine.name for record in finished.values()} if self.order.cluster else self.columns
        found, digest, fingerprint = {}, cache(content), cache(self.executor.kernels.fingerprint)
        for number, (planned, _) in enumerate(self.plans):
            pins = fingerprint(planned.row.environment)
            for machine in machines:
                record = finished.get(
                    (planned.row.name, planned.seed, planned.preset, planned.key(pins, machine, digest))
                )
                if record:
                    found[number] = record
        return found

    def _lines(self) -> list[Line]:
        return [Line(row=planned.title, estimate_s=round(seconds, 1)) for planned, seconds in self.plans]

    def _execute(self, kept_by: Journal, finished: dict[int, Record]) -> int:
        screen = Screen(kept_by.status, self.console)
        batch = Batch(self.catalog, self.results, kept_by, screen)
        missing = [(number, planned) for number, (planned, _) in enumerate(self.plans) if number not in finished]
        done = batch.run(missing, self.executor)
        _summary(done, batch, tables.write(self.catalog, self.results), self.console)
        kept = {id(record) for record in finished.values()}
        before = [record for record in self.records if id(record) not in kept]
        changes.tell(compare(before, [*finished.values(), *done]), self.console)
        good = all(record.status == "ok" or record.status == "skipped" and not self.order.named for record in done)
        return 0 if good and not batch.troubles else 1


def _finished(line: Line, record: Record) -> Line:
    """The line of a run that is finished already."""
    return line.model_copy(
        update={
            "state": record.status,
            "started": record.started,
            "ended": record.started,
            "accuracy": record.metrics.accuracy,
        }
    )


def _slots(asked: Order) -> list[Slot]:
    timed = devices.timed(asked.gpus, asked.threads)
    if asked.jobs is None or asked.jobs == len(timed):
        return timed
    if asked.preset != UNTIMED:
        raise RosettaError(
            f"--jobs {asked.jobs} would let timed runs share a device ({len(timed)} here), and their times would mean nothing: "
            f"leave it out, or use --preset {UNTIMED}"
        )
    if asked.threads is not None:
        raise RosettaError("--jobs shares the processors out by itself: leave out --threads")
    return devices.shared(asked.gpus, asked.jobs)


def _announce(ordered: list[tuple[Plan, float]], slots: list[Slot], console: Console) -> None:
    """The plan and its estimate, before it starts."""
    for machine, titles in _columns(slots):
        console.print(
            f"{machine.cpu}, {machine.cores} cores, {', '.join(titles)}; results as {machine.name}", highlight=False
        )
    repeats = Counter((planned.row.name, planned.preset) for planned, _ in ordered)
    for planned, seconds in ordered:
        seeds = repeats.pop((planned.row.name, planned.preset), 0)
        if not seeds:  # another seed of a row that is named already
            continue
        size = planned.constants
        title = planned.title if seeds == 1 else f"{planned.row.name}, {seeds} seeds"
        note = f"  ({planned.note})" if planned.note else ""
        images = "synthetic images" if planned.synthetic else "images"
        console.print(
            f"  {title:<20} {planned.preset:<6} {size['EPOCHS']} x {size['N_TRAIN']:,} {images}, about {clock(seconds)}{' each' if seeds > 1 else ''}{note}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    total = max(max(seconds for _, seconds in ordered), sum(seconds for _, seconds in ordered) / len(slots))
    side = f", {len(slots)} at a time" if len(slots) > 1 else ""
    console.print(
        f"{len(ordered)} runs{side}, about {clock(total)}, besides installing what is missing", highlight=False
    )


def _columns(slots: list[Slot]) -> list[tuple[records.Machine, list[str]]]:
    """The machines that the slots make, each with its slots' titles."""
    found: dict[str, tuple[records.Machine, list[str]]] = {}
    for slot in slots:
        gpus = ", ".join(gpu.name for gpu in slot.machine.gpus) or "no GPU"
        found.setdefault(slot.machine.name, (slot.machine, []))[1].append(
            f"{slot.title}: {gpus}" if slot.on_gpu else gpus
        )
    return [(machine, list(dict.fromkeys(titles))) for machine, titles in found.values()]


def _summary(done: list[Record], batch: Batch, page: Path, console: Console) -> None:
    for record in done:
        if record.status != "ok":
            log = records.path(record, batch.results, ".log")
            where = f" (log: {portable(str(log))})" if log.exists() else ""
            text = f"{record.name}: {record.status}: {record.error}{where}"
            console.print(Text(text, STYLES[record.status]), soft_wrap=True)
    for trouble in batch.troubles:
        console.print(Text(trouble, "red"), soft_wrap=True)
    succeeded = sum(record.status == "ok" for record in done)
    console.print(f"{succeeded} of {len(done)} runs ok; table: {portable(str(page))}", highlight=False, soft_wrap=True)
