"""What ``run_all.py check`` does: a row through everything that is asked of it, one line each, to the first mistake."""

import importlib.util
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil

from rosetta import catalog, contract, data, plan, records
from rosetta.adding import costs, figures, scaffold
from rosetta.batch import save
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError
from rosetta.journal import STYLES
from rosetta.paths import ROOT, from_root
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run import builds, devices, environments, machine
from rosetta.run.execute import Progress, execute
from rosetta.run.installer import events
from rosetta.run.kernels import chosen
from rosetta.site import concepts, programs
from rosetta.tasks import UNTIMED
from rosetta.terminal import Console
from rosetta.verify import command, logs
from rosetta.verify.diagnosis import causes
from rosetta.verify.kinds import proof

TESTS = ("tests/test_notebooks.py", "tests/test_prose.py")  # those that look at single notebooks
EPOCHS = 2  # of the run of a row that trains, so that there is a test between epochs and a loss to fall


def check(name: str, options: command.Options) -> int:
    """Check a row, or every row that the name stands for. Exit code 1 at the first mistake, which is explained.

    What runs leave goes to a new folder, which is kept and named where something is wrong.
    """
    known, console = catalog.load(), Console()
    scratch = Path(tempfile.mkdtemp(prefix="rosetta-check-"))
    for row in known.select([name], options.task):
        if row.full_name != name:
            console.say(f"{row.full_name}:")
        for title, step in _Row(known, row, replace(options, out=scratch), console).steps().items():
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

    def __init__(self, known: Catalog, row: Row, options: command.Options, console: Console):
        self.catalog, self.row, self.options, self.console = known, row, options, console
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
            "tests": self.tests,
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
        if not builds.told(recipe.builds, recipe.without_gpu, self.row.imports):
            raise RosettaError(
                f"environments/{self.row.environment}/environment.toml does not say what a GPU is to {self.row.imports[0]}: "
                "give [without_gpu] a line of it, or a build's code; or name in `imports` the module that it computes through"
            )
        for trouble in contract.troubles(self.row.notebook, self.task):
            raise RosettaError(trouble)
        return f"{', '.join(self.task.kind.names)}"

    def concepts(self) -> str:
        known = concepts.read(self.task.folder / "concepts.toml")
        program = programs.notebook(self.row.notebook, self.task.kind)
        concepts.check(program, known)
        if lacking := [name for name in known if not concepts.excerpts(program, name)]:
            raise RosettaError(
                f"{from_root(self.row.notebook)}: no cell marks the lines of {', '.join(lacking)}: "
                'name them in the metadata of a cell, {"concepts": {NAME: [TEXT OF A LINE, ...]}}'
            )
        return f"{len(known)} marked"

    def tests(self) -> str:
        """Those of ``tests/`` that look at this notebook; they come with the developer's packages."""
        there = [test for test in TESTS if (ROOT / test).is_file()]
        if not there or importlib.util.find_spec("pytest") is None:
            return "not run: there is no pytest, or no tests/"
        chosen = ["-k", f"{self.row.task}/{self.row.framework}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", "-p", "no:cacheprovider", *there, *chosen],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        if done.returncode:
            why = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
            last = next((line for line in reversed(lines) if line.startswith("FAILED")), "pytest failed")
            raise RosettaError(f"{last.partition(' - ')[0]}: {' '.join(why) or done.stderr[-300:]}")
        return lines[-1]

    def smoke(self) -> str:
        """The smallest preset, with a test after each epoch."""
        options, trains = self.options, self.task.kind.trains
        slot = devices.timed(options.gpus, min(costs.CORES, len(machine.processors())))[0]
        overrides = {"EPOCHS": EPOCHS} if trains else {}
        (planned,) = plan.make(
            self.catalog, [self.row], UNTIMED, overrides, gpu=slot.on_gpu, synthetic=options.synthetic
        )
        planned.parameters.update({"TEST_EACH_EPOCH": True} if trains else {})
        data.locate_all([planned], options.data_dir)
        self.load = psutil.getloadavg()[0]
        tell = events(lambda note: self.console.say(f"    {note}", "dim"))

        def watch(progress: Progress) -> None:
            if progress.note and progress.state == "preparing":
                tell(progress.note)

        run = execute(planned, slot, chosen(options.python, options.build), watch)
        save(run, options.out)
        run.close()
        record = run.record
        if record.status != "ok":
            log = records.path(record, options.out, ".log")
            raise RosettaError(f"{record.status}: {record.error}" + (f" (log: {log})" if log.is_file() else ""))
        for trouble in figures.troubles(record, self.task):
            raise RosettaError(trouble)
        self.ran, self.on_gpu, self.doubt = (planned, record), slot.on_gpu, figures.doubt(record)
        found = {quantity.heading: quantity.cell([record]) for quantity in self.task.kind.main}
        told = ", ".join(f"{heading} {cell}" for heading, cell in found.items())
        return f"{told}; but {self.doubt}" if self.doubt else told

    def verify(self) -> str:
        setting = command.Setting([self.row.full_name], self.options)
        _, found = setting.verify(self.row)
        if found.skipped:
            raise RosettaError(found.skipped)
        levels = proof(self.task.kind_name).LEVELS
        for cause in causes(found.findings):
            said = [found.diagnosis[level] for level in cause.levels if level in found.diagnosis]
            log = logs.path(self.options.out, self.row)
            raise RosettaError("; ".join([cause.told(levels), *said]) + (f" (log: {log})" if log.is_file() else ""))
        told = f"levels {', '.join(str(finding.level) for finding in found.findings)} pass"
        if self.doubt:
            raise RosettaError(f"{told}, but in the run before {self.doubt}")
        return told

    def cost(self) -> str:
        """Measured by the smallest preset, and written down."""
        if self.on_gpu:
            return f"not measured: it is for {costs.CORES} processors, so for --gpus none"
        cost = costs.measured(*self.ran)
        written = costs.write(self.task, self.row, cost)
        told = f"start_s = {cost.start_s:g}, item_ms = {cost.item_ms:g}"
        told += f": {'written into' if written else 'near to that in'} {self.task.file}"
        busy = self.load >= len(machine.processors())
        return (
            f"{told}; the machine had other work (load {self.load:.1f}), so check again when it has none"
            if busy
            else told
        )
