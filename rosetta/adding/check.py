"""What ``run_all.py check`` does: a row through everything that is asked of it, one line each, to the first mistake."""

import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import tomlkit

from rosetta import catalog, data, files, notebook, plan, records, sections
from rosetta.adding import scaffold
from rosetta.batch import save
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError
from rosetta.journal import STYLES
from rosetta.paths import from_root
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run import devices, environments, machine
from rosetta.run.environments import events
from rosetta.run.execute import Progress, execute
from rosetta.run.kernels import chosen
from rosetta.tasks import UNTIMED, Cost, Task
from rosetta.terminal import Console
from rosetta.verify import command
from rosetta.verify.conformance import PROOFS
from rosetta.verify.proof import causes, level_names
from rosetta.where import Where

CORES = 2  # that costs are for
NOISE = 1.5  # times: a cost that is nearer to the written one than that is not written again
EPOCHS = 2  # of the run of a row that trains, so that there is a test between epochs and a loss to fall


def check(name: str, where: Where) -> int:
    """Check a row, or every row that the name stands for. Exit code 1 at the first mistake, which is explained.

    What runs leave goes to a new folder, which is kept and named where something is wrong.
    """
    known, console = catalog.load(), Console()
    scratch = Path(tempfile.mkdtemp(prefix="rosetta-check-"))
    for row in known.select([name], where.task):
        if row.full_name != name:
            console.say(f"{row.full_name}:")
        for title, step in (
            _Row(known, row, replace(where, names=(row.full_name,), out=scratch, jobs=1), console).steps().items()
        ):
            started = time.monotonic()
            try:
                told = step()
            except RosettaError as error:
                console.say(f"  {title:<9} FAILED  {error}", STYLES["failed"])
                if any(scratch.iterdir()):
                    console.say(f"  What the run left is in {scratch}", "dim")
                else:
                    scratch.rmdir()
                return 1
            console.say(f"  {title:<9} ok  {told}  ({time.monotonic() - started:.0f} s)")
    shutil.rmtree(scratch, ignore_errors=True)
    console.say(
        f"Now run_all.py verify {shlex.quote(name)} --out results keeps the proof, then run_all.py report renews the pages."
    )
    return 0


class _Row:
    """One row, with its steps. Each step returns what it found, in a few words, and raises RosettaError for a mistake."""

    def __init__(self, known: Catalog, row: Row, where: Where, console: Console):
        self.catalog, self.row, self.where, self.console = known, row, where, console
        self.task = known.task(row.task)
        self.ran: tuple[Plan, Record] | None = None
        self.on_gpu = False
        self.doubt: str | None = None  # of the run, which ``verify`` may explain
        self.load = 0.0  # of the machine before the run: processes that compute

    def steps(self) -> dict[str, Callable[[], str]]:
        """In their order: what takes least time comes first."""
        return {
            "contract": self.contract,
            "concepts": self.concepts,
            "smoke": self.smoke,
            "verify": self.verify,
            "cost": self.cost,
        }

    def contract(self) -> str:
        entry, place = self.catalog.frameworks[self.row.framework], f"catalog.toml: frameworks.{self.row.framework}"
        if entry.homepage == scaffold.HOMEPAGE:
            raise RosettaError(f"{place}.homepage is still {entry.homepage}: name the framework's documentation")
        if entry.released == scaffold.RELEASED:
            raise RosettaError(f"{place}.released is still {entry.released}: name the year of its first release")
        recipe = environments.load(self.row.environment).recipe
        if not recipe.covers_gpus(self.row.imports):
            raise RosettaError(
                f"environments/{self.row.environment}/environment.toml does not say what a GPU is to {self.row.imports[0]}: "
                "give [without_gpu] a line of it, or a build's code; or name in `imports` the module that it computes through"
            )
        for trouble in notebook.troubles(self.row.notebook, self.task):
            raise RosettaError(trouble)
        return f"{', '.join(self.task.kind.names)}"

    def concepts(self) -> str:
        known = sections.concepts(self.task.folder / "concepts.toml")
        program = sections.notebook(self.row.notebook, self.task.kind)
        sections.check(program, known)
        if lacking := [name for name in known if not sections.excerpts(program, name)]:
            raise RosettaError(
                f"{from_root(self.row.notebook)}: no cell marks the lines of {', '.join(lacking)}: "
                'name them in the metadata of a cell, {"concepts": {NAME: [TEXT OF A LINE, ...]}}'
            )
        return f"{len(known)} marked"

    def smoke(self) -> str:
        """The smallest preset, with a test after each epoch."""
        where, trains = self.where, self.task.kind.trains
        slot = devices.timed(where.gpus, min(CORES, len(machine.processors())))[0]
        overrides = {"EPOCHS": EPOCHS} if trains else {}
        (planned,) = plan.make(self.catalog, [self.row], UNTIMED, overrides, gpu=slot.on_gpu, synthetic=where.synthetic)
        planned = planned.model_copy(update={"test_each_epoch": trains})
        data.locate_all([planned], where.data_dir)
        self.load = psutil.getloadavg()[0]
        tell = events(lambda note: self.console.say(f"    {note}", "dim"))

        def watch(progress: Progress) -> None:
            if progress.note and progress.state == "preparing":
                tell(progress.note)

        run = execute(planned, slot, chosen(where.python, where.build), watch)
        save(run, where.out)
        run.close()
        record = run.record
        if record.status != "ok":
            log = records.path(record, where.out, ".log")
            raise RosettaError(f"{record.status}: {record.error}" + (f" (log: {log})" if log.is_file() else ""))
        for trouble in misreported(record, self.task):
            raise RosettaError(trouble)
        self.ran, self.on_gpu, self.doubt = (planned, record), slot.on_gpu, doubt(record)
        found = {quantity.heading: quantity.cell([record]) for quantity in self.task.kind.main}
        told = ", ".join(f"{heading} {cell}" for heading, cell in found.items())
        return f"{told}; but {self.doubt}" if self.doubt else told

    def verify(self) -> str:
        setting = command.Setting(self.where)
        _, found = setting.verify(self.row)
        if found.skipped:
            raise RosettaError(found.skipped)
        levels = PROOFS[self.task.kind_name].LEVELS
        for reason, failing in causes(found.findings).items():
            said, log = found.known_of(failing), command.log_of(self.where.out, self.row)
            told = "; ".join([f"{level_names(failing, levels)}: {reason}", *said])
            raise RosettaError(told + (f" (log: {log})" if log.is_file() else ""))
        told = f"levels {', '.join(str(finding.level) for finding in found.findings)} pass"
        if self.doubt:
            raise RosettaError(f"{told}, but in the run before {self.doubt}")
        return told

    def cost(self) -> str:
        """Measured by the smallest preset, and written down."""
        if self.on_gpu:
            return f"not measured: it is for {CORES} processors, so for --gpus none"
        cost = measured_cost(*self.ran)
        written = write_cost(self.task, self.row, cost)
        told = f"start_s = {cost.start_s:g}, item_ms = {cost.item_ms:g}"
        told += f": {'written into' if written else 'near to that in'} {self.task.file}"
        busy = self.load >= len(machine.processors())
        return (
            f"{told}; the machine had other work (load {self.load:.1f}), so check again when it has none"
            if busy
            else told
        )


# ---- Whether the figures of a short run can be true


def misreported(record: Record, task: Task) -> Iterator[str]:
    """What is wrong with the figures of a run that ended well, one line each. A run that trains must have tested each epoch."""
    metrics = record.metrics
    for name, wanted in task.expected(task.facts(record.name).flavour).items():
        if getattr(metrics, name) != wanted:
            yield f"it reports {getattr(metrics, name)} {name}, and those of this network are {wanted}"
    for name in dict.fromkeys(task.kind.timed.values()):
        if not getattr(metrics, name):
            yield f"there is no {name}: the cells of that step took no time"
    if task.kind.trains:
        yield from _of_training(record)


def _of_training(record: Record) -> Iterator[str]:
    metrics, params = record.metrics, record.params
    sizes = {"train": params["N_TRAIN"], "test": params["N_TEST"]}
    if record.dataset.sizes != sizes:
        yield f"it loaded {record.dataset.sizes} examples instead of {sizes}: N_TRAIN and N_TEST go to the loader"
    hits = metrics.accuracy * params["N_TEST"]
    if abs(hits - round(hits)) > 1e-6 * max(hits, 1):
        yield f"its accuracy is {hits:.3f} of {params['N_TEST']} test examples: it must count whole ones, the last batch too"
    if len(metrics.epoch_accuracy) != params["EPOCHS"]:
        yield f"{len(metrics.epoch_accuracy)} of {params['EPOCHS']} epochs were tested: log.epoch takes evaluate as well"
    elif metrics.epoch_accuracy[-1] != metrics.accuracy:
        yield (
            f"the test after the last epoch found {metrics.epoch_accuracy[-1]:.4f}, the one at the end {metrics.accuracy:.4f}: "
            "training went on between them, or a test is left in training mode (dropout)"
        )


def doubt(record: Record) -> str | None:
    """What is wrong with a run that trains, unless it is chance or a mistake that ``verify`` can name: its loss does not fall."""
    losses = getattr(record.metrics, "loss", [])
    if all(later < earlier for earlier, later in pairwise(losses)):
        return None
    return f"the loss of its epochs does not fall: {', '.join(f'{loss:.4f}' for loss in losses)}"


# ---- What a run costs, roughly: ``cost`` of the row's line in ``task.toml``


def measured_cost(plan: Plan, record: Record) -> Cost:
    """From one run without a GPU: the time of an item, and what is left of the run's time."""
    rate = getattr(record.metrics, "examples_per_s", None)
    item_ms = 1000 / rate if rate else Cost().item_ms
    start_s = max(record.metrics.wall_s - plan.kind.items(plan.constants) * item_ms / 1000, 1)
    return Cost(start_s=float(f"{start_s:.2g}"), item_ms=float(f"{item_ms:.2g}"))


def write_cost(task: Task, row: Row, cost: Cost) -> bool:
    """Write a row's cost into the task's file, unless that has one that is near. Whether it was written."""
    file, old = task.folder / "task.toml", row.facts.cost
    near = all(
        max(mine, given) <= NOISE * min(mine, given)
        for mine, given in ((cost.start_s, old.start_s), (cost.item_ms, old.item_ms))
    )
    if near and "cost" in row.facts.model_fields_set:
        return False
    new = tomlkit.parse(f"row = {{ cost = {{ start_s = {cost.start_s:g}, item_ms = {cost.item_ms:g} }} }}\n")["row"]
    content = tomlkit.parse(files.text(file))
    rows = content.setdefault("rows", tomlkit.table())
    if row.name not in rows:
        rows[row.name] = new
    elif "cost" in rows[row.name]:
        rows[row.name]["cost"].update(new["cost"])  # what it has of a GPU stays
    else:
        rows[row.name]["cost"] = new["cost"]
    files.write_atomically(file, tomlkit.dumps(content))
    return True
