"""One run: a plan goes in, a record comes out, whatever the notebook does in between."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from common.record import PATTERN
from rosetta.errors import RosettaError, Unavailable
from rosetta.identity import content
from rosetta.paths import GIT, ROOT, from_root
from rosetta.plan import Plan
from rosetta.records import Commit, Dataset, Notebook, Record, readable
from rosetta.run.child import Job, sockets, told
from rosetta.run.completion import Ending, complete
from rosetta.run.devices import Slot
from rosetta.run.kernels import Kernels, thread_variables, write_kernelspec
from rosetta.run.processes import COOKIE, kill_tree
from rosetta.run.telemetry import RunMeter

PREFIX = "rosetta-"  # of a run's folder
LINE = 64 * 1024  # bytes of a line that is read at once
HEAD, TAIL = 2**20, 2**20  # bytes of the log that are kept: what came first, and what came last
LONGEST_NOTE = 80  # characters


@dataclass(frozen=True)
class Progress:
    """What is known of a run while it goes on: ``epoch 3 of 10, loss 1.2345``."""

    state: str  # "preparing" its environment, "starting" or "running"
    what: str = ""
    done: int = 0
    of: int = 0
    note: str = ""


Watcher = Callable[[Progress], None]


@dataclass
class Run:
    """What a run leaves behind: its record, and files in a folder that ``close`` removes."""

    record: Record
    folder: Path

    @property
    def executed(self) -> Path:
        return self.folder / "executed.ipynb"

    @property
    def log(self) -> Path:
        return self.folder / "run.log"

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def execute(plan: Plan, slot: Slot, kernels: Kernels, watch: Watcher, folder: Path | None = None) -> Run:
    """Run one notebook in a child process of its own and describe what came of it.

    folder: where the run's own folder is made, the system's temporary folder when not given.
    Never raises for what the notebook, its kernel, its environment, the disk or this project's own code do: that is the
    record's status and error, and the log ends with the trace.
    """
    run = Run(blank(plan, slot, kernels), new_folder(folder))
    try:
        _execute(run, plan, slot, kernels, watch)
        run.record = readable(run.record)
        return run
    except Exception as error:
        with suppress(OSError), run.log.open("a", encoding="utf-8", errors="replace") as log:
            traceback.print_exc(file=log)
        run.record = blank(plan, slot, kernels)
        return _ended(run, "failed", f"the runner could not go on: {_said(error)}")
    except BaseException:  # the user interrupts: nobody will close the run
        run.close()
        raise


def _said(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else told(type(error).__name__, error)


def not_run(plan: Plan, slot: Slot, kernels: Kernels, status: str, error: str) -> Run:
    """The record of a run that never started, in a folder of its own like any other."""
    return _ended(Run(blank(plan, slot, kernels), new_folder(None)), status, error)


def new_folder(parent: Path | None) -> Path:
    """A new folder for a run, in the system's temporary one where the parent cannot be written.

    On disks too full for one, a path where nothing is, as if all its files were missing.
    """
    for place in (parent, None):
        with suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    return Path(parent or tempfile.gettempdir(), PREFIX + uuid.uuid4().hex)


def _execute(run: Run, plan: Plan, slot: Slot, kernels: Kernels, watch: Watcher) -> Run:
    if plan.refused:
        return _ended(run, "failed", plan.refused)
    folder = run.folder
    watch(Progress("preparing"))
    try:
        kernel = kernels.get(
            plan.row,
            folder / "run.log",
            tell=lambda text: watch(Progress("preparing", note=text)),
            gpus=slot.machine.gpus,
        )
    except Unavailable as reason:
        return _ended(run, "skipped", str(reason))
    except RosettaError as reason:
        return _ended(run, "failed", str(reason))
    run.record.build = kernel.build
    variables = thread_variables(slot.threads) | slot.variables() | plan.variables
    variables |= {"IPYTHONDIR": str(folder / "ipython")}
    write_kernelspec(folder, kernel, variables)
    watch(Progress("starting"))
    started, clock = time.monotonic(), time.time() - time.monotonic()
    Job(from_root(plan.row.notebook), plan.injected, slot.processors, clock).write(folder)
    how, telemetry = _supervise(run, plan, slot, watch)
    run.record.metrics.wall_s = round(time.monotonic() - started, 3)
    run.record.telemetry = telemetry.fill(run.record.metrics)
    complete(run.record, plan, folder, run.executed, how, datetime.fromtimestamp(clock + started, UTC))
    return run


def _supervise(run: Run, plan: Plan, slot: Slot, watch: Watcher) -> tuple[Ending, RunMeter]:
    """Start the child, follow it to its end, and leave no process of it behind."""
    cookie = str(run.folder.resolve())
    env = os.environ | {COOKIE: cookie, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    env.pop("VIRTUAL_ENV", None)  # it would leak into the kernel
    sockets(run.folder).mkdir(mode=0o700)
    child = subprocess.Popen(
        [sys.executable, "-m", "rosetta.run.child", str(run.folder)],
        cwd=ROOT,
        env=env,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    telemetry = RunMeter(child.pid, slot.gpus if slot.alone else ())

    def follow(progress: Progress) -> None:
        telemetry.mark()
        watch(progress)

    output = Output(child.stdout, run.log, follow)
    timed_out = False
    try:
        with telemetry:
            output.reader.start()
            try:
                child.wait(plan.timeout_s)
            except subprocess.TimeoutExpired:
                timed_out = True
    finally:  # also when the user interrupts
        kill_tree(child.pid, cookie, telemetry.seen)
        child.wait()
        child.stdin.close()
        shutil.rmtree(sockets(run.folder), ignore_errors=True)
        output.reader.join(timeout=5)
    return Ending(timed_out, child.returncode, output.last, telemetry.marked_j), telemetry


class Output:
    """What a run's process prints: copied to the log, and each epoch line reported. Of a very long log the middle is left out."""

    def __init__(self, stream, log: Path, told: Watcher):
        self.last = ""  # line that says something
        self._stream, self._log, self._told = stream, log, told
        self.reader = threading.Thread(target=self._follow, daemon=True)

    def _follow(self) -> None:
        """To the end whatever comes: a process whose output nobody reads would stop."""
        head, tail, middle, size = 0, deque(), 0, 0  # bytes written, lines kept for the end, bytes left out and kept
        while line := self._stream.readline(LINE):
            self._tell(line.decode(errors="replace").strip())
            if head < HEAD:
                head += len(line)
                self._write(line)
                continue
            tail.append(line)
            size += len(line)
            while size > TAIL:
                middle, size = middle + len(tail[0]), size - len(tail.popleft())
        if middle:
            self._write(f"\n[{middle:,} bytes of the run's output are left out here]\n".encode())
        self._write(b"".join(tail))

    def _tell(self, text: str) -> None:
        self.last = text or self.last
        if part := PATTERN.search(text):
            note = part["note"][:LONGEST_NOTE]
            with suppress(Exception):  # the run does not depend on who watches it
                self._told(Progress("running", part["what"], int(part["done"]), int(part["of"]), note))

    def _write(self, line: bytes) -> None:
        with suppress(OSError), self._log.open("ab") as file:  # a full disk: the run need not end with its log
            file.write(line)


def blank(plan: Plan, slot: Slot, kernels: Kernels) -> Record:
    """The record of a run that has not begun."""
    row = plan.row
    return Record(
        task=row.task,
        framework=row.framework,
        variant=row.variant,
        title=row.title,
        environment=row.environment,
        kind=plan.kind.name,
        preset=plan.preset,
        changed=plan.changed,
        status="failed",
        started=datetime.now(UTC).replace(microsecond=0),
        commit=commit(),
        notebook=Notebook(path=from_root(row.notebook), sha256=content(row.notebook)),
        machine=slot.machine,
        threads=slot.threads,
        seed=plan.seed,
        key=plan.key(kernels.fingerprint(row, slot.machine.gpus), slot.machine.name),
        params=plan.constants | plan.parameters,
        dataset=Dataset(synthetic=plan.synthetic),
        metrics=plan.kind.metrics(),
    )


def _ended(run: Run, status: str, error: str | None) -> Run:
    run.record.status, run.record.error = status, error
    return run


def commit() -> Commit:
    """The commit that is checked out, and whether the code differs from it; what runs write is not looked at."""
    try:
        commit = subprocess.run([*GIT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(
            [*GIT, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!results", ":!results.md"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return Commit()
    return Commit(id=commit, dirty=bool(changed))
