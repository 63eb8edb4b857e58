"""Rows to measure, and what was measured. A session is one sitting of a command: it has a file of its own, with its versions.

Sessions are joined when they are read, never when they are written, and only where notebook, versions and machine are the same.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from common.versions import versions
from rosetta import catalog, data, files, identity, plan, records
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.files import Strict
from rosetta.measure import inside
from rosetta.paths import portable
from rosetta.plan import Plan
from rosetta.records import Commit, Machine, Point, Record
from rosetta.run import devices, kernels, machine, processes, scripts
from rosetta.run.devices import Slot
from rosetta.run.execute import blank, commit
from rosetta.run.telemetry import OtherPrograms
from rosetta.tasks import UNTIMED
from rosetta.terminal import Console
from rosetta.where import Where, numbers

FOLDER = "measured"  # below a machine's folder: what belongs to no row
STEPS = "steps"  # how a point was taken, not where: measured with another number it is the same point
SESSION = "%Y%m%d-%H%M%S-%f"  # in a file's name, UTC


class MachineSession(Strict):
    """A measurement of a machine that belongs to no row: ``<machine>/measured/<what>.<session>.json``."""

    version: Literal[1] = Field(1, alias="schema")
    what: str
    machine: Machine
    commit: Commit = Commit()
    measured: AwareDatetime
    versions: dict[str, str] = {}
    points: list[Point]


@dataclass(frozen=True)
class Measurement:
    """What was measured of a row with one setting. sessions: of one notebook, machine and the same versions, the newest first."""

    sessions: list[Record]
    points: list[Point]  # the newest of each place

    @classmethod
    def of(cls, sessions: Iterable[Record]) -> "Measurement":
        """The newest measurement of sessions of one row and setting; those of another notebook or of other versions are superseded."""
        newest, *older = sorted(sessions, key=lambda record: (record.started, record.session or ""), reverse=True)
        same = [newest, *(each for each in older if identity.measured_with(each) == identity.measured_with(newest))]
        points = {(place(point), point.unit): point for session in reversed(same) for point in session.points}
        return cls(same, list(points.values()))

    @property
    def newest(self) -> Record:
        return self.sessions[0]


Group = list[Measurement]  # of one machine, task and setting, in the catalog's order


def place(point: Point) -> frozenset:
    """Where a point was taken."""
    return frozenset((name, value) for name, value in point.at.items() if name != STEPS)


def groups(catalog: Catalog, every: Iterable[Record], what: str) -> list[Group]:
    """The newest measurement of each row and setting by the command ``what``, a group for each machine, task and setting."""
    order = {row.full_name: number for number, row in enumerate(catalog.rows())}
    sessions: dict[tuple, list[Record]] = {}
    for record in every:
        if record.preset == what and record.full_name in order:
            setting = record.machine.name, record.task, str(sorted(record.changed.items()))
            row = order[record.full_name], record.dataset.synthetic
            sessions.setdefault((setting, row), []).append(record)
    by_setting = groupby(sorted(sessions), key=lambda key: key[0])
    return [[Measurement.of(sessions[key]) for key in keys] for _, keys in by_setting]


def picture_file(group: Group, name: str, results: Path) -> Path:
    """Where the picture of a group lies, if one was drawn."""
    newest = group[0].newest
    return results / newest.machine.name / FOLDER / f"{newest.task}-{name}.svg"


@contextmanager
def valid_points(where: Path) -> Iterator[None]:
    """Raises RosettaError for points that lack what their measurement has: a file may hold any. where: the file, or its folder."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"points: lacks {error}" if isinstance(error, KeyError) else f"points: {error}"
        raise RosettaError(f"{portable(str(where))} is not valid: {reason}; delete it and measure anew") from None


def write_machine(what: str, of: Machine, points: list[Point], results: Path) -> Path:
    """Write a session that measured a machine; returns its file."""
    now = datetime.now(UTC)
    session = MachineSession(
        what=what,
        machine=of,
        commit=commit(),
        measured=now.replace(microsecond=0),
        versions=versions(),
        points=points,
    )
    return files.write(results / of.name / FOLDER / f"{what}.{now:{SESSION}}.json", session)


def matrix_product(group: Group, results: Path) -> tuple[MachineSession, int, float] | None:
    """The newest session that measured the matrix product of a group's machine: the session, rows of a matrix, and its best FLOP/s.

    None where there is no session of the same system, because another one may be another processor of that name.
    """
    machine, *others = {each.newest.machine.os: each.newest.machine for each in group}.values()
    sessions = {file: files.load(MachineSession, file) for file in results.glob(f"{machine.name}/{FOLDER}/floor.*json")}
    system = machine.name, machine.os
    of_system = [file for file, each in sessions.items() if (each.machine.name, each.machine.os) == system]
    if others or not of_system:
        return None
    newest = max(of_system, key=lambda file: sessions[file].measured)
    with valid_points(newest):
        fastest = max(sessions[newest].points, key=lambda point: point.sample.high)
        size, rate = fastest.at["size"], fastest.sample.high
        if rate <= 0:
            raise ValueError(f"a rate of {rate:g}")
    return sessions[newest], size, rate


class Measuring:
    """The rows to measure, and where: those that are named, else those that gain something on this machine.

    what: is measured. has: the attribute of a kind that says whether it can be. Raises RosettaError for a name of which no row can
    be measured, and where no row is left.
    """

    def __init__(self, where: Where, what: str, has: str):
        self.where, self.results = where, where.results
        self.catalog = catalog.load()
        self.kernels = kernels.chosen(where.python, where.build)
        self.slot = devices.timed(where.gpus, threads=None)[0]
        self.processors = machine.processors()
        self.console = Console()
        self.session = f"{datetime.now(UTC):{SESSION}}"
        # Of all frameworks: a session names the versions of those that are loaded
        self.modules = sorted({name for row in self.catalog.rows() for name in row.imports})
        able = [key for key, task in self.catalog.tasks.items() if getattr(task.kind, has)]
        for names in [[name] for name in where.names] or [[]]:
            if not any(row.task in able for row in self.catalog.select(names, where.task)):
                of = "".join(f" of {name}" for name in names or filter(None, [where.task]))
                raise RosettaError(f"{what} measures nothing{of}: it takes rows of {', '.join(able)}")
        self.rows = [row for row in self.catalog.select(where.names, where.task) if row.task in able]
        if not (self.slot.on_gpu or where.names):
            self.rows = [row for row in self.rows if row.facts.gpu_only is None]
            if not self.rows:
                raise RosettaError(f"{what}: no row gains anything without a GPU: name those to be measured")

    def slots(self, threads: str | None, each: bool) -> list[Slot]:
        """The first GPU, or the CPU, with the numbers of processors that ``--threads`` names.

        each: without that option with 1, 2, 4 ... and all of them, else with all of them alone.
        """
        most = len(self.processors)
        usual = [2**power for power in range(most.bit_length()) if 2**power < most] if each else []
        counts = numbers("--threads", threads) if threads else [*usual, most]
        return [devices.timed(",".join(self.slot.gpus) or devices.NONE, number)[0] for number in counts]

    def slow(self, row: Row, parameters: dict[str, Any]) -> bool:
        """Whether a step takes seconds here, by the row's cost. parameters: over the task's own."""
        task = self.catalog.task(row.task)
        return task.step_s(row.facts, task.constants() | parameters, gpu=False) >= 1 and not self.slot.on_gpu

    def plan(self, row: Row, overrides: dict[str, Any]) -> Plan:
        gpu, synthetic = self.slot.on_gpu, self.where.synthetic
        return plan.make(self.catalog, [row], UNTIMED, overrides, gpu=gpu, synthetic=synthetic)[0]

    def compared(self, steps: int, turns: int, sets: dict[str, list[dict[str, Any]]] | None = None) -> list[Plan]:
        """A run of each row with each of its sets of parameters, with so few steps a turn; a tenth of them where a step takes seconds.

        sets: by full name of a row; without it, those that the row's task names for a comparison of loops.
        """
        plans = []
        for row in self.rows:
            task = self.catalog.task(row.task)
            for parameters in task.compared if sets is None else sets.get(row.full_name, []):
                if parameters.get(task.kind.which) in row.facts.lacking(self.slot.on_gpu):
                    continue
                constants = task.constants() | parameters
                few = max(steps // 10, 1) if self.slow(row, parameters) else steps
                short = task.kind.short(constants, min(few, task.kind.steps(constants)), turns)
                plans.append(self.plan(row, parameters | short))
        return plans

    @contextmanager
    def scripts(self, planned: Plan, *codes: dict[str, str]) -> Iterator[list[scripts.Script]]:
        """Scripts of cells, in a folder that is there as long as the context lasts."""
        with tempfile.TemporaryDirectory(prefix="rosetta-") as folder:
            made = [Path(folder, f"script-{number}.py") for number in range(len(codes))]
            yield [scripts.write(planned, code, file, self.kernels, self.slot) for code, file in zip(codes, made)]

    def record(self, planned: Plan, what: str, changed: dict[str, Any]) -> Record:
        """The record of a row's session, which has no points yet. changed: what was set by hand, so that it stands in a table apart."""
        record = blank(planned, self.slot, self.kernels)
        record.preset, record.changed, record.status, record.session = what, changed, "ok", self.session
        record.dataset.synthetic |= planned.dataset is None  # the task makes its own data
        return record

    def each(
        self,
        what: str,
        heading: str,
        plans: list[Plan],
        work: Callable[[Plan, Record], Iterator[list[Point]]],
        line: Callable[[list[Point]], str],
        changed: dict[str, Any],
    ) -> int:
        """Measure the rows of the plans, and keep each point at once. Exit code 0 only if all could be measured; what is not there
        counts if it was named.

        work: gives points of a plan, some at a time, and writes the versions into the record; line: shows points, below the heading;
        changed: as in ``record``.
        """
        data.locate_all(plans, self.where.data_dir)
        if self.where.data_dir:  # the scripts inherit it
            os.environ["ROSETTA_DATA"] = str(self.where.data_dir.absolute())
        self.console.say(f"{'row':<22}{heading}")
        kept: dict[str, Record] = {}  # a row may have several plans
        failed = False
        for planned in plans:
            title = self.catalog.label(planned.row)
            try:
                record = kept.setdefault(planned.row.full_name, self.record(planned, what, changed))
                with OtherPrograms(self.slot.processors) as programs:
                    began = time.monotonic()
                    for points in work(planned, record):
                        programs.sample()
                        if busy := programs.used(began).disturb:
                            raise RosettaError(f"not kept, because {busy}")
                        record.points += points
                        records.write(record, self.results)
                        self.console.say(f"{title:<22}{line(points)}")
                        began = time.monotonic()
            except Unavailable as reason:
                self.console.say(f"{title}: {reason}", "yellow")
                failed |= bool(self.where.names)
            except RosettaError as error:
                self.console.say(f"{title}: {error}", "red")
                failed = True
        return int(failed)


class Process(subprocess.Popen):
    """Runs a script as ``inside`` is told to; ``with`` it, nothing of it is left behind.

    todo: one of inside's functions, with its options. What goes to standard error is kept beside the script.
    """

    def __init__(self, script: scripts.Script, slot: Slot, todo: str, options: dict):
        self._log = script.file.with_suffix(".log")
        # Where there is no choice, or a process cannot choose its processors, it computes on all of them
        confined = slot.processors is not None and hasattr(os, "sched_setaffinity")
        with self._log.open("ab") as errors:
            super().__init__(
                [str(script.python), inside.__file__, todo, str(script.file), json.dumps(options)],
                cwd=script.folder,
                env=script.environment(slot),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                preexec_fn=(lambda: os.sched_setaffinity(0, slot.processors)) if confined else None,
                start_new_session=True,
                text=True,
            )

    def __exit__(self, *reason) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # and all that it has started
        super().__exit__(*reason)

    def messages(self) -> Iterator[dict]:
        """What it tells until it ends, without what the script prints. Raises RosettaError if it fails."""
        for line in self.stdout:
            if line.startswith(inside.MARK):
                yield json.loads(line[len(inside.MARK) :], parse_constant=_refuse)
        if self.wait():
            words = processes.last_words(self._log.read_text(errors="replace"), self.returncode)
            raise RosettaError(f"its process failed: {words}")

    def turns(self) -> Iterator[dict]:
        """What it tells, once it is asked for: then it works until it has told more, and is stopped, its threads included."""
        for message in self.messages():
            os.killpg(self.pid, signal.SIGSTOP)
            os.waitpid(self.pid, os.WUNTRACED)  # until every thread has stopped
            yield message
            with suppress(BrokenPipeError, ProcessLookupError):  # it was killed: then the next message tells
                os.killpg(self.pid, signal.SIGCONT)
                self.stdin.write("\n")  # it waits for a line
                self.stdin.flush()
        raise RosettaError("the script ended before its turns did")


def _refuse(constant: str) -> None:
    raise RosettaError(f"it has computed {constant}, so its time means nothing")
