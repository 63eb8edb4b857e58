"""What ``run_all.py verify`` and ``run_all.py crossload`` do."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.text import Text

from rosetta import catalog, data, files, plan
from rosetta.catalog import Row
from rosetta.errors import RosettaError
from rosetta.figures import Cell, Heading, Table, clock
from rosetta.paths import checkout, portable
from rosetta.run import devices
from rosetta.run.devices import Workers
from rosetta.run.kernels import chosen
from rosetta.terminal import Console
from rosetta.verify import conformance
from rosetta.verify.conformance import PROOFS, Conformance
from rosetta.verify.proof import Bench, Crossing, Reference, tolerances
from rosetta.where import Where, about

UNKNOWN_S = 120  # of a row that was never proven
DRAWN_S = 600  # of proofs that unchanged rows are drawn for; the first one drawn may take longer


def verify(where: Where, every: bool = False, drawn: int = 0) -> int:
    """Verify rows, show and keep what was found: those that are named, else those that have not passed as they are today.

    every: all rows. drawn: so many of the unchanged rows, too. Exit code 0 only if all pass; a row skipped here counts if named.
    """
    setting = Setting(where)
    kept = {} if where.names or every else setting.unchanged(drawn)
    due = [row for row in setting.rows if row.full_name not in kept]
    if due:
        took = {(key, line.name): line.seconds for key, report in setting.reports.items() for line in report.rows}
        seconds = sum(took.get((row.task, row.name), UNKNOWN_S) for row in due) / len(setting.bench.workers.slots)
        setting.console.say(f"{len(due)} row{'s' * (len(due) > 1)} to verify, about {clock(seconds)}")
    verified: dict[str, Conformance] = {}
    for row, line in setting.bench.workers.each(setting.verify, due):
        verified[row.full_name] = line
        setting.keep(row.task, line)
        head = f"[{len(verified)}/{len(due)}] {setting.catalog.label(row)}: "
        text = _line(head, line, setting.tasks[row.task].kind_name, log_of(setting.results, row))
        setting.console.print(text, soft_wrap=True)
    written = ""
    for key, task in setting.tasks.items():
        if lines := [(row, verified[row.full_name]) for row in due if row.task == key]:
            setting.console.table(_table(task.kind_name, lines))
            written += f"; {setting.page(key)}"
    passed, since = len(kept) + sum(line.passed for line in verified.values()), ""
    if kept:
        first = min(line.verified for line in kept.values())
        since = f" ({len(kept)} unchanged since {first:%Y-%m-%d}, {len(due)} verified now)"
    has_data = any(task.data for task in setting.tasks.values())
    on = f" on {'SYNTHETIC' if where.synthetic else 'real'} data" if has_data else ""
    setting.console.say(f"{passed} of {len(setting.rows)} rows pass all levels{since}{on}{written}")
    return 0 if all(line.passed or line.skipped and not where.names for line in verified.values()) else 1


def crossload(where: Where, changed: dict[str, Any]) -> int:
    """Let the rows compute with the same weights and keep how they agree. Exit code 0 only if they do.

    changed: parameters that the user has set.
    """
    setting = Setting(where)
    if len(setting.tasks) > 1:
        raise RosettaError(f"crossload takes rows of one task, not of {' and '.join(setting.tasks)}: give --task")
    if len(setting.rows) < 2:
        raise RosettaError("crossload needs two rows or more")
    (task,) = setting.tasks.values()
    proof = PROOFS[task.kind_name]
    if not hasattr(proof, "cross"):
        raise RosettaError(f"{task.key} is of kind {task.kind.name}: its rows have no weights to be exchanged")
    changed = plan.checked(changed, task)
    if ignored := [name for name in changed if name not in proof.CROSSED]:
        raise RosettaError(
            f"crossload sets {', '.join(ignored)} itself: of {task.key} it takes {', '.join(proof.CROSSED)}"
        )
    reference = setting.of_one_network(proof)
    setting.console.say(f"{len(setting.rows)} rows with the same weights")
    crossed = proof.cross(setting.rows, reference, setting.bench, setting.console.say, changed)
    setting.keep(task.key, crossed)
    setting.console.say(f"{'all agree' if crossed.passed else 'NOT all agree'}; {setting.page(task.key)}")
    return 0 if crossed.passed else 1


class Setting:
    """What the options come to: the rows, where they run, and what is known of them."""

    def __init__(self, where: Where):
        self.catalog, self.where, self.console = catalog.load(), where, Console()
        self.rows = self.catalog.select(where.names, where.task)
        self.results = where.results
        self.tasks = {row.task: self.catalog.task(row.task) for row in self.rows}
        self.reports = {key: conformance.read(self.results, key) for key in self.tasks}
        if not where.synthetic:
            for dataset in {task.data for task in self.tasks.values() if task.data}:
                data.locate(dataset, where.data_dir)
        if where.data_dir:  # kernels inherit it
            os.environ["ROSETTA_DATA"] = str(where.data_dir.absolute())
        slots, kernels = devices.shared(where.gpus, where.jobs), chosen(where.python, where.build)
        self.bench, self.on_gpu = Bench(kernels, Workers(slots)), any(slot.on_gpu for slot in slots)
        self.digests, self.references = {}, {}
        gpus = slots[0].machine.gpus
        for row in self.rows:
            task, flavour = self.tasks[row.task], row.facts.flavour
            proof = PROOFS[task.kind_name]
            # What is wrong in task.toml is said before anything runs
            task.expected(row.name)
            tolerances(proof.TOLERANCES, task, row)
            self.digests[row.full_name] = conformance.digest(row, task, kernels, gpus, where.synthetic)
            self.references[row.task, flavour] = proof.Reference(task, flavour, where.synthetic)

    def verify(self, row: Row, tell: Callable[[str], None] = lambda note: None) -> tuple[Row, Conformance]:
        """Prove a row. What its runs print stays in its log if a level fails. tell: called as each run begins."""
        reference, log = self.references[row.task, row.facts.flavour], log_of(self.results, row)
        log.unlink(missing_ok=True)
        probe = self.bench.prober(row, reference, log, tell)
        line = conformance.verify(row, probe, reference, self.digests[row.full_name], self.on_gpu)
        if all(finding.passed for finding in line.findings):
            log.unlink(missing_ok=True)
        return row, line

    def of_one_network(self, proof: ModuleType) -> Reference:
        """The reference of the rows. Raises RosettaError where their flavours compute different things from the same weights."""
        first_of = {}
        for row in self.rows:
            first_of.setdefault(row.facts.flavour, row)
        first, *others = first_of.values()
        for row in others:
            if not proof.same_network(*(self.references[one.task, one.facts.flavour] for one in (first, row))):
                ways = " and ".join(f"{one.name} ({one.facts.flavour})" for one in (first, row))
                raise RosettaError(f"{ways} compute different things from the same weights: name rows of one")
        return self.references[first.task, first.facts.flavour]

    def unchanged(self, drawn: int) -> dict[str, Conformance]:
        """The rows that have passed as they are today, by their full names, without some that are drawn at random.

        What is committed counts, too, unless the user has named a folder.
        """
        committed = [] if self.where.out else [conformance.read(checkout.results, key) for key in self.tasks]
        lines = [line for report in (*committed, *self.reports.values()) for line in report.rows]
        latest = {line.full_name: line for line in sorted(lines, key=lambda line: line.verified)}
        kept = {name: line for name, line in latest.items() if line.passed and line.digest == self.digests.get(name)}
        seed = int(os.environ.get("ROSETTA_SEED") or random.randrange(10**6))
        again = some(kept, drawn, random.Random(seed))
        if again:
            self.console.say(f"drawn with seed {seed}: {', '.join(again)}")
        return {name: line for name, line in kept.items() if name not in again}

    def keep(self, task: str, result: Conformance | Crossing) -> None:
        """Put what was found of a row, or of rows together, into the task's report."""
        self.reports[task].add(result)
        files.write(conformance.file_of(self.results, task), self.reports[task])

    def page(self, task: str) -> str:
        """Writes a task's page anew; where it lies, for the user."""
        file = conformance.write_page(self.catalog, task, self.results, self.bench.kernels)
        return portable(str(file)) + about(self.results)


def log_of(results: Path, row: Row) -> Path:
    """What a row's runs print, kept below the results while a proof that failed asks for it: a run's own folder goes with the run."""
    return conformance.file_of(results, row.task, f".{row.stem}.log")


def some(proven: dict[str, Conformance], most: int, chance: random.Random) -> list[str]:
    """Names of rows drawn at random: one, and others while their proofs did not take longer than ``DRAWN_S`` together."""
    names, seconds = [], 0.0
    for name in chance.sample(list(proven), min(most, len(proven))):
        seconds += proven[name].seconds
        if not names or seconds <= DRAWN_S:
            names.append(name)
    return names


def _line(head: str, line: Conformance, kind: str, log: Path) -> Text:
    if line.skipped:
        return Text(f"{head}skipped: {line.skipped}", "yellow")
    if line.passed:
        return Text(f"{head}ok  ({line.seconds:.0f} s)")
    reasons = [f"{levels}: {reason}" for levels, reason, _ in line.failures(PROOFS[kind].LEVELS)]
    texts = [f"{head}FAILED {'; '.join(reasons)}"]
    texts += [f"    level {level}: {said}" for level, said in line.diagnosis.items()]
    texts += [f"    log: {portable(str(log))}"] if log.is_file() else []
    return Text("\n".join(texts), "red")


def _table(kind: str, lines: list[conformance.Line]) -> Table:
    """Level by row, with the largest measured differences."""
    headings, body = conformance.tabled(kind, lines)
    rows = []
    for (row, line), cells in zip(lines, body):
        badge = None if line.skipped else "good" if line.passed else "bad"
        texts = [cell.replace("\\", "").replace("**", "") for cell in cells]
        rows.append([Cell(row.name), *(Cell(text, badge=badge) for text in texts)])
    return Table([Heading("row"), *map(Heading, headings)], rows)
