"""What ``run_all.py run`` and ``resume`` do: plan, announce, execute, sum up."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from rosetta import catalog, data, plan, records
from rosetta.announcement import announce
from rosetta.batch import journal
from rosetta.batch.batch import Batch, Executor
from rosetta.batch.journal import Journal, Line, Order
from rosetta.batch.local import Local
from rosetta.batch.screen import STYLES, Screen
from rosetta.compare import compare, show_batch
from rosetta.errors import RosettaError, Unavailable
from rosetta.paths import portable
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.report import pages
from rosetta.run import devices, kernels
from rosetta.run.devices import Slot
from rosetta.tasks import UNTIMED, Task
from rosetta.terminal import Console
from rosetta.where import about, results_folder

REAL = "real"  # the word of --data


def row_names(names: list[str], tasks: list[str], every: bool) -> list[str]:
    """The full names of the rows that are asked for. Raises RosettaError for names that are none."""
    if every and tasks:
        raise RosettaError("--all-tasks names every task: leave out --task")
    return [row.full_name for row in catalog.load().to_run(names, tasks, every)]


def show_plan(order: Order, out: Path | None, rows: bool) -> int:
    """Tell what a batch would do, each row where ``rows`` asks for them; nothing is run, installed or downloaded."""
    with _executor(order) as executor:
        _Job(order, out, executor).announce(whole=not order.named, rows=rows)
    return 0


def run(order: Order, out: Path | None) -> int:
    """Run a new batch. Exit code 0 only if every row that was to run succeeded.

    A row that this machine cannot hold is skipped; that counts as a failure only if the row was asked for by name.
    """
    if order.cluster and any(value is not None for value in (order.gpus, order.threads, order.jobs)):
        raise RosettaError(
            "--gpus, --threads and --jobs share out this machine; with --cluster each worker takes one run at a time"
        )
    with _executor(order) as executor:
        return _Job(order, out, executor).start()


def resume(name: str, out: Path | None, fresh: bool) -> int:
    """Run what a batch still lacks; all of it anew if ``fresh``."""
    folder = journal.find(results_folder(out), name)
    order = journal.read_order(folder)
    with _executor(order) as executor:
        return _Job(order, out, executor).go_on(folder, fresh)


@contextmanager
def _executor(order: Order) -> Iterator[Executor]:
    """Where the runs go: this machine, unless a cluster is asked for."""
    if order.cluster:
        from rosetta.cluster.executor import Cluster

        with Cluster(order.cluster, order.kernels, order.data_dir, Console().say) as cluster:
            yield cluster
    else:
        folder = Path(order.data_dir) if order.data_dir else None
        yield Local(_slots(order), kernels.chosen(**order.kernels), folder)


class _Job:
    """An order, planned for where it is executed."""

    def __init__(self, asked: Order, out: Path | None, executor: Executor):
        self.console, self.executor, self.slots = Console(), executor, executor.slots
        self.gpu = any(slot.on_gpu for slot in self.slots)
        self.order = asked.model_copy(update={"preset": asked.preset or plan.default_preset(self.gpu)})
        self.results = results_folder(out)
        self.catalog = catalog.load()
        self.columns = {slot.machine.name for slot in self.slots}
        self.records = [record for _, record in records.read_all(self.results)]
        earlier = [record for record in self.records if record.machine.name in self.columns]
        tasks = list(dict.fromkeys([self.catalog.main, *self.catalog.tasks]))
        self.plans = plan.soonest_first(self._planned(), earlier, self._installed_s, tasks)
        self.executor.check(planned for planned, _ in self.plans)

    def _planned(self) -> list[Plan]:
        order = self.order
        slot = {"threads": order.threads, "gpus": order.gpus_per_run if order.gpus_per_run > 1 else None}
        rows = self.catalog.select(order.rows)
        if not (order.named or self.gpu):
            rows = [row for row in rows if row.facts.gpu_only is None]
        return plan.make(
            self.catalog,
            rows,
            order.preset,
            order.overrides,
            gpu=self.gpu,
            synthetic=order.synthetic,
            seeds=order.seeds,
            slot={name: value for name, value in slot.items() if value is not None},
            timeout_s=order.timeout_s,
        )

    def _installed_s(self, planned: Plan) -> float:
        """Seconds until the environment of a run is there."""
        kernels = self.executor.kernels
        with suppress(Unavailable):
            if kernels.interpreter(planned.row.environment) is None:
                return kernels.environment(planned.row, self.slots[0].machine.gpus if self.slots else ()).install_s
        return 0.0

    def announce(self, plans: list[tuple[Plan, float]] | None = None, whole: bool = False, rows: bool = False) -> None:
        """Tell what will run: these plans, all of them when not given."""
        plans, kernels, there = plans or self.plans, self.executor.kernels, []
        if not self.order.cluster:  # its workers have data of their own
            there = [f"data: {portable(text)}" for text in data.to_download(planned for planned, _ in plans)]
        announce(self.catalog, plans, self.slots, kernels, self.console, self.results, there, whole, rows)

    def _supply(self) -> None:
        """Bring the data. Runs whose data set cannot be had compute on generated data instead."""
        missing = self.executor.supply([planned for planned, _ in self.plans])
        if not missing:
            return
        for reason in missing.values():
            if self.order.data == REAL:
                raise RosettaError(reason)
            self.console.say(reason, "yellow")
        self.plans = [
            (planned.on_generated_data() if planned.dataset in missing else planned, seconds)
            for planned, seconds in self.plans
        ]
        runs = sum(planned.dataset in missing for planned, _ in self.plans)
        self.console.say(
            f"So {runs} run{'s' * (runs > 1)} compute{'s' * (runs == 1)} on generated data, marked SYNTHETIC wherever a figure appears. "
            f"run_all.py resume takes the real data once they are there; --data {REAL} stops here instead.",
            "yellow",
        )

    def start(self) -> int:
        self.announce(whole=not self.order.named)
        self._supply()
        return self._execute(journal.open_new(self.results, self.order, self._lines(), len(self.slots)), {})

    def go_on(self, folder: Path, fresh: bool) -> int:
        self._supply()
        kept = {} if fresh else self._kept(folder.name)
        lines = self._lines()
        for number, record in kept.items():
            lines[number] = _finished(lines[number], record, self.catalog.task(record.task))
        missing = [pair for number, pair in enumerate(self.plans) if number not in kept]
        if not missing:  # what a runner that was killed after the last record had still to do
            journal.reopen(folder, lines, len(self.slots)).close()
            pages.write(self.catalog, self.results)
            self.console.say(f"batch {folder.name}: all {len(kept)} runs are finished; --fresh runs them again")
            return 0
        self.console.say(f"batch {folder.name}: {len(kept)} of {len(self.plans)} runs are finished")
        self.announce(missing)
        return self._execute(journal.reopen(folder, lines, len(self.slots)), kept)

    def _kept(self, batch: str) -> dict[int, Record]:
        """The batch's finished runs, by their place among the plans, whose notebook, parameters, pins and machine are today's."""
        finished = {
            (record.full_name, record.seed, record.key): record
            for record in self.records
            if record.batch == batch and record.status == "ok"
        }
        # The workers of today may be others than those that a cluster had when the batch began
        seen = (
            [record.machine for record in finished.values()] if self.order.cluster else [s.machine for s in self.slots]
        )
        machines = {machine.name: machine.gpus for machine in seen}
        rows = {planned.row.full_name: planned.row for planned, _ in self.plans}
        kept, read = {}, cache(Path.read_bytes)

        @cache
        def fingerprint(row: str, machine: str) -> str:
            return self.executor.kernels.fingerprint(rows[row], machines[machine])

        for number, (planned, _) in enumerate(self.plans):
            for machine in machines:
                key = planned.key(fingerprint(planned.row.full_name, machine), machine, read)
                record = finished.get((planned.row.full_name, planned.seed, key))
                if record:
                    kept[number] = record
        return kept

    def _lines(self) -> list[Line]:
        return [Line(row=self._title(planned), estimate_s=round(seconds, 1)) for planned, seconds in self.plans]

    def _title(self, planned: Plan) -> str:
        several = len({other.row.task for other, _ in self.plans}) > 1
        label = planned.row.full_name if several else planned.row.name
        return label if planned.seed is None else f"{label} seed {planned.seed}"

    def _execute(self, kept_by: Journal, finished: dict[int, Record]) -> int:
        screen = Screen(kept_by.status, self.console)
        batch = Batch(self.catalog, self.results, kept_by, screen)
        missing = [(number, planned) for number, (planned, _) in enumerate(self.plans) if number not in finished]
        done = batch.run(missing, self.executor)
        try:
            page = pages.write(self.catalog, self.results)[0]
        except RosettaError as error:
            page = None
            batch.troubles.append(f"the table could not be renewed: {error}")
        _summary(done, batch, page, self.console)
        kept = {id(record) for record in finished.values()}
        before = [record for record in self.records if id(record) not in kept]
        show_batch(compare(before, [*finished.values(), *done]), self.console)
        good = all(record.status == "ok" or record.status == "skipped" and not self.order.named for record in done)
        return 0 if good and not batch.troubles else 1


def _finished(line: Line, record: Record, task: Task) -> Line:
    """The line of a run that is finished already."""
    return line.model_copy(
        update={
            "state": record.status,
            "started": record.started,
            "ended": record.started,
            "took_s": record.metrics.wall_s,
            "result": journal.result(record, task),
        }
    )


def _slots(order: Order) -> list[Slot]:
    timed = devices.timed(order.gpus, order.threads, order.gpus_per_run)
    if order.jobs is None or order.jobs == len(timed):
        return timed
    if order.preset != UNTIMED:
        raise RosettaError(
            f"--jobs {order.jobs} would let timed runs share a device ({len(timed)} here), and their times would mean nothing: "
            f"leave it out, or use --preset {UNTIMED}"
        )
    if order.threads is not None:
        raise RosettaError("--jobs shares the processors out by itself: leave out --threads")
    return devices.shared(order.gpus, order.jobs)


def _summary(done: list[Record], batch: Batch, page: Path | None, console: Console) -> None:
    for record in done:
        if record.status != "ok":
            log = records.path(record, batch.results, ".log")
            where = f" (log: {portable(str(log))})" if log.exists() else ""
            text = f"{batch.catalog.label(record)}: {record.status}: {record.error}{where}"
            console.say(text, STYLES[record.status])
    for trouble in batch.troubles:
        console.say(trouble, "red")
    succeeded = sum(record.status == "ok" for record in done)
    table = f"; table: {portable(str(page))}{about(batch.results)}" if page else ""
    console.say(f"{succeeded} of {len(done)} runs ok{table}")
