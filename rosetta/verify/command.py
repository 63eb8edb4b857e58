"""What ``run_all.py verify`` and ``run_all.py crossload`` do."""

import os
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.table import Table
from rich.text import Text

from rosetta import catalog, data, plan
from rosetta.catalog import Row
from rosetta.errors import RosettaError
from rosetta.options import about, results_folder
from rosetta.paths import RESULTS, portable
from rosetta.run import devices
from rosetta.run.kernels import chosen
from rosetta.run.workers import Workers
from rosetta.terminal import Console
from rosetta.verify import conformance, cross, digest, levels, logs, page
from rosetta.verify.conformance import Conformance
from rosetta.verify.diagnosis import causes
from rosetta.verify.kinds import proof
from rosetta.verify.logs import LoggingKernels
from rosetta.verify.probes import Bench, Reference

DRAWN_S = 600  # of proofs that unchanged rows are drawn for; the first one drawn may take longer


@dataclass(frozen=True)
class Options:
    task: str | None = None
    data_dir: Path | None = None
    synthetic: bool = False
    out: Path | None = None
    python: list[str] = field(default_factory=list)
    build: list[str] = field(default_factory=list)
    gpus: str | None = None
    jobs: int | None = None  # rows at a time; None: one a GPU, or one a processor


def verify(names: list[str], options: Options, every: bool = False, drawn: int = 0) -> int:
    """Verify rows, show and keep what was found: those that are named, else those that have not passed as they are today.

    every: all rows. drawn: so many of the unchanged rows, too. Exit code 0 only if all pass; a row skipped here counts if named.
    """
    setting = Setting(names, options)
    kept = {} if names or every else setting.unchanged(drawn)
    due = [row for row in setting.rows if row.full_name not in kept]
    verified: dict[str, Conformance] = {}
    for row, found in setting.bench.workers.each(setting.verify, due):
        verified[row.full_name] = found
        setting.reports[row.task].add(found)
        conformance.write(setting.reports[row.task], setting.results, row.task)
        head = f"[{len(verified)}/{len(due)}] {setting.catalog.label(row)}: "
        line = _line(head, found, setting.tasks[row.task].kind_name, logs.path(setting.results, row))
        setting.console.print(line, soft_wrap=True)
    written = ""
    for key, task in setting.tasks.items():
        if lines := [(row, verified[row.full_name]) for row in due if row.task == key]:
            setting.console.print(_table(task.kind_name, lines))
            written += f"; {setting.page(key)}"
    passed, since = len(kept) + sum(found.passed for found in verified.values()), ""
    if kept:
        first = min(found.verified for found in kept.values())
        since = f" ({len(kept)} unchanged since {first:%Y-%m-%d}, {len(due)} verified now)"
    has_data = any(task.data for task in setting.tasks.values())
    on = f" on {'SYNTHETIC' if options.synthetic else 'real'} data" if has_data else ""
    setting.note(f"{passed} of {len(setting.rows)} rows pass all levels{since}{on}{written}")
    return 0 if all(found.passed or found.skipped and not names for found in verified.values()) else 1


def crossload(names: list[str], given: dict[str, Any], options: Options) -> int:
    """Let the rows compute with the same weights and keep how they agree. Exit code 0 only if they do.

    given: parameters that the user has set.
    """
    setting = Setting(names, options)
    if len(setting.tasks) > 1:
        raise RosettaError(f"crossload takes rows of one task, not of {' and '.join(setting.tasks)}: give --task")
    if len(setting.rows) < 2:
        raise RosettaError("crossload needs two rows or more")
    (task,) = setting.tasks.values()
    crossing = cross.of(task.kind_name)
    if not crossing:
        raise RosettaError(f"{task.key} is of kind {task.kind.name}: its rows have no weights to be exchanged")
    given = plan.checked(given, task)
    reference = setting.of_one_network(crossing)
    crossed = crossing.make(setting.rows, reference, setting.bench, setting.note, given)
    setting.reports[task.key].cross(crossed)
    conformance.write(setting.reports[task.key], setting.results, task.key)
    agree = "all agree" if crossed.passed else "NOT all agree"
    setting.note(f"{agree}; {setting.page(task.key)}")
    return 0 if crossed.passed else 1


class Setting:
    """What the options come to: the rows, where they run, and what is known of them."""

    def __init__(self, names: list[str], options: Options):
        self.catalog, self.options, self.console = catalog.load(), options, Console()
        self.rows = self.catalog.select(names, options.task)
        self.results = results_folder(options.out)
        self.tasks = {row.task: self.catalog.task(row.task) for row in self.rows}
        self.reports = {key: conformance.read(self.results, key) for key in self.tasks}
        if not options.synthetic:
            for dataset in {task.data for task in self.tasks.values() if task.data}:
                data.locate(dataset, options.data_dir)
        if options.data_dir:  # kernels inherit it
            os.environ["ROSETTA_DATA"] = str(options.data_dir.absolute())
        slots, kernels = devices.shared(options.gpus, options.jobs), chosen(options.python, options.build)
        self.bench, self.gpu = Bench(kernels, Workers(slots)), any(slot.on_gpu for slot in slots)
        self.digests, self.references = {}, {}
        for row in self.rows:
            task, flavour = self.tasks[row.task], row.facts.flavour
            proven = proof(task.kind_name)
            levels.tolerances(proven.TOLERANCES, task, row)  # what is wrong there is said before anything runs
            self.digests[row.full_name] = digest.of(row, task, kernels, options.synthetic, slots[0].machine.gpus)
            self.references[row.task, flavour] = proven.Reference(task, flavour, options.synthetic)

    def verify(self, row: Row) -> tuple[Row, Conformance]:
        reference = self.references[row.task, row.facts.flavour]
        log = logs.path(self.results, row)
        bench = replace(self.bench, kernels=LoggingKernels(self.bench.kernels, log))
        probe = bench.prober(row, reference.task, self.options.synthetic)
        found = conformance.verify(row, probe, reference, self.digests[row.full_name], self.gpu)
        if not found.failed:
            log.unlink(missing_ok=True)
        return row, found

    def of_one_network(self, crossing: ModuleType) -> Reference:
        """The reference of the rows. Raises RosettaError where their flavours compute different things from the same weights."""
        first_of = {row.facts.flavour: row for row in reversed(self.rows)}
        first, *others = sorted(first_of.values(), key=self.rows.index)
        for row in others:
            if not crossing.same_network(*(self.references[one.task, one.facts.flavour] for one in (first, row))):
                ways = " and ".join(f"{one.name} ({one.facts.flavour})" for one in (first, row))
                raise RosettaError(f"{ways} compute different things from the same weights: name rows of one")
        return self.references[first.task, first.facts.flavour]

    def unchanged(self, drawn: int) -> dict[str, Conformance]:
        """The rows that have passed as they are today, by their full names, without some that are drawn at random.

        What is committed counts, too, unless the user has named a folder.
        """
        committed = [] if self.options.out else [conformance.read(RESULTS, key) for key in self.tasks]
        found = [line for report in (*committed, *self.reports.values()) for line in report.rows]
        latest = {line.full_name: line for line in sorted(found, key=lambda line: line.verified)}
        kept = {name: line for name, line in latest.items() if line.passed and line.digest == self.digests.get(name)}
        seed = int(os.environ.get("ROSETTA_SEED") or random.randrange(10**6))
        chosen = some(kept, drawn, random.Random(seed))
        if chosen:
            self.note(f"drawn with seed {seed}: {', '.join(chosen)}")
        return {name: line for name, line in kept.items() if name not in chosen}

    def page(self, task: str) -> str:
        """Writes a task's page anew; where it lies, for the user."""
        return portable(str(page.write(self.catalog, task, self.results, self.bench.kernels))) + about(self.results)

    def note(self, line: str) -> None:
        self.console.say(line)


def some(proven: dict[str, Conformance], most: int, chance: random.Random) -> list[str]:
    """Names of rows drawn at random: one, and others while their proofs did not take longer than ``DRAWN_S`` together."""
    names, seconds = [], 0.0
    for name in chance.sample(list(proven), min(most, len(proven))):
        seconds += proven[name].seconds
        if not names or seconds <= DRAWN_S:
            names.append(name)
    return names


def _line(head: str, found: Conformance, kind: str, log: Path) -> Text:
    if found.skipped:
        return Text(f"{head}skipped: {found.skipped}", "yellow")
    if found.passed:
        return Text(f"{head}ok  ({found.seconds:.0f} s)")
    names = proof(kind).LEVELS
    lines = [f"{head}FAILED {'; '.join(cause.told(names) for cause in causes(found.findings))}"]
    lines += [f"    level {level}: {said}" for level, said in found.diagnosis.items()]
    lines += [f"    log: {portable(str(log))}"] if log.is_file() else []
    return Text("\n".join(lines), "red")


def _table(kind: str, lines: list[page.Line]) -> Table:
    """Level by row, with the largest measured differences."""
    table = Table(box=None, pad_edge=False)
    table.add_column("row", no_wrap=True)
    shown = page.columns(kind, lines)
    for heading in page.headings(kind, shown):
        table.add_column(heading, justify="right")
    for row, found in lines:
        style = "yellow" if found.skipped else "green" if found.passed else "red"
        cells = page.cells(shown, row, found)
        table.add_row(Text(row.name), *(Text(cell.replace("\\", "").replace("**", ""), style) for cell in cells))
    return table
