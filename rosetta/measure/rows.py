"""Rows to measure, and what was measured. A session is one sitting of a command: it has a file of its own, with its versions.

Sessions are joined when they are read, never when they are written, and only where notebook, versions and machine are the same.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from common.versions import versions
from rosetta import catalog, data, files, identity, plan, records
from rosetta.catalog import Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.files import Strict
from rosetta.measure import inside
from rosetta.plan import Plan
from rosetta.records import Commit, Machine, Point, Record
from rosetta.run import devices, kernels, machine, processes, scripts
from rosetta.run.devices import Slot
from rosetta.run.execute import blank, commit
from rosetta.tasks import PRESETS, UNTIMED
from rosetta.terminal import Console
from rosetta.where import Where

FOLDER = "measured"  # below a machine's folder: what belongs to no row
STEPS = "steps"  # how a point was taken, not where: measured with another number it is the same point
SESSION = "%Y%m%d-%H%M%S-%f"  # in a file's name, UTC
NOWHERE: dict[str, Any] = {}  # no parameters over the task's own


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

    @property
    def newest(self) -> Record:
        return self.sessions[0]


def place(point: Point) -> frozenset:
    """Where a point was taken."""
    return frozenset((name, value) for name, value in point.at.items() if name != STEPS)


def measurements(every: Iterable[Record]) -> list[Measurement]:
    """The newest measurement of each row and setting. Sessions of another notebook or of other versions are superseded."""
    groups: dict[tuple, list[Record]] = {}
    for record in every:
        if record.preset not in PRESETS:
            setting = record.machine.name, record.task, record.column, record.full_name
            groups.setdefault(setting, []).append(record)
    made = []
    for sessions in groups.values():
        sessions.sort(key=lambda record: (record.started, record.session or ""), reverse=True)
        same = [record for record in sessions if identity.measured_with(record) == identity.measured_with(sessions[0])]
        made.append(Measurement(same, newest_points(same)))
    return made


def newest_points(sessions: list[Record]) -> list[Point]:
    """The newest point of each place. sessions: the newest first."""
    points = {}
    for session in reversed(sessions):
        points |= {(place(point), point.unit): point for point in session.points}
    return list(points.values())


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


def matrix_product(of: Machine, results: Path) -> tuple[MachineSession, Point] | None:
    """The newest session that measured a machine's matrix product, and its fastest point, FLOP/s; of the same system alone, because
    another one may be another processor of that name."""
    sessions = [files.load(MachineSession, file) for file in sorted(results.glob(f"{of.name}/{FOLDER}/floor.*json"))]
    of_system = [session for session in sessions if (session.machine.name, session.machine.os) == (of.name, of.os)]
    if not of_system:
        return None
    newest = max(of_system, key=lambda session: session.measured)
    return newest, max(newest.points, key=lambda point: point.sample.high)


class Measuring:
    """The rows to measure, and where: those that are named, else those that gain something on this machine.

    what: is measured. has: the attribute of a kind that says whether it can be. Raises RosettaError for a name of which no row can
    be measured, and where no row is left.
    """

    def __init__(self, options: Where, what: str, has: str):
        self.options, self.catalog = options, catalog.load()
        self.kernels = kernels.chosen(options.python, options.build)
        self.slot = devices.timed(options.gpus, threads=None)[0]
        self.processors = machine.processors()
        self.results = options.results
        self.console = Console()
        self.session = f"{datetime.now(UTC):{SESSION}}"
        able = [key for key, task in self.catalog.tasks.items() if getattr(task.kind, has)]
        for name in options.names or [None]:
            if not self._able([name] if name else [], has):
                of = f" of {name}" if name else f" of {options.task}" if options.task else ""
                raise RosettaError(f"{what} measures nothing{of}: it takes rows of {', '.join(able)}")
        self.rows = self._able(options.names, has)
        if not (self.slot.on_gpu or options.names):
            self.rows = [row for row in self.rows if row.facts.gpu_only is None]
            if not self.rows:
                raise RosettaError(f"{what}: no row gains anything without a GPU: name those to be measured")

    def _able(self, names: list[str], has: str) -> list[Row]:
        return [row for row in self.catalog.select(names, self.options.task) if getattr(self.catalog.kind(row), has)]

    @property
    def modules(self) -> list[str]:
        """The modules of all frameworks, whose versions a session names where they are loaded."""
        return sorted({name for row in self.catalog.rows() for name in row.imports})

    def with_threads(self, number: int) -> Slot:
        """The first GPU, or the CPU, with so many processors."""
        return devices.timed(",".join(self.slot.gpus) or devices.NONE, number)[0]

    def slow(self, row: Row, parameters: dict[str, Any] = NOWHERE) -> bool:
        """Whether a step takes seconds here, by the row's cost. parameters: over the task's own."""
        task = self.catalog.task(row.task)
        return task.step_s(row.facts, task.constants() | parameters, gpu=False) >= 1 and not self.slot.on_gpu

    def plan(self, row: Row, overrides: dict[str, Any]) -> Plan:
        gpu, synthetic = self.slot.on_gpu, self.options.synthetic
        return plan.make(self.catalog, [row], UNTIMED, overrides, gpu=gpu, synthetic=synthetic)[0]

    def short(self, row: Row, steps: int, turns: int, parameters: dict[str, Any] = NOWHERE) -> Plan:
        """A run of a few steps a turn; a tenth of them where a step takes seconds."""
        task = self.catalog.task(row.task)
        kind, constants = task.kind, task.constants() | parameters
        steps = max(steps // 10, 1) if self.slow(row, parameters) else steps
        return self.plan(row, parameters | kind.short(constants, min(steps, kind.steps(constants)), turns))

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
        changed: dict[str, Any] = NOWHERE,
    ) -> int:
        """Measure the rows of the plans, and keep each point at once. Exit code 0 only if all could be measured; what is not there
        counts if it was named.

        work: gives points of a plan, some at a time, and writes the versions into the record; line: shows points, below the heading.
        """
        data.locate_all(plans, self.options.data_dir)
        if self.options.data_dir:  # the scripts inherit it
            os.environ["ROSETTA_DATA"] = str(self.options.data_dir.absolute())
        self.console.say(f"{'row':<22}{heading}")
        kept: dict[str, Record] = {}  # a row may have several plans
        failed = False
        for planned in plans:
            title = self.catalog.label(planned.row)
            try:
                record = kept.setdefault(planned.row.full_name, self.record(planned, what, changed))
                for points in work(planned, record):
                    record.points += points
                    records.write(record, self.results)
                    self.console.say(f"{title:<22}{line(points)}")
            except Unavailable as reason:
                self.console.say(f"{title}: {reason}", "yellow")
                failed |= bool(self.options.names)
            except RosettaError as error:
                self.console.say(f"{title}: {error}", "red")
                failed = True
        return int(failed)


def usual_threads() -> list[int]:
    """1, 2, 4 ... and as many as there are processors."""
    most = len(machine.processors())
    return [2**power for power in range(most.bit_length()) if 2**power < most] + [most]


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
            self.signal(signal.SIGKILL)
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
            self.signal(signal.SIGSTOP)
            os.waitpid(self.pid, os.WUNTRACED)  # until every thread has stopped
            yield message
            with suppress(BrokenPipeError, ProcessLookupError):  # it was killed: then the next message tells
                self.signal(signal.SIGCONT)
                self.stdin.write("\n")  # it waits for a line
                self.stdin.flush()
        raise RosettaError("the script ended before its turns did")

    def signal(self, number: int) -> None:
        """To the process and all that it has started."""
        os.killpg(self.pid, number)


def _refuse(constant: str) -> None:
    raise RosettaError(f"it has computed {constant}, so its time means nothing")
