"""One run: ``execute`` takes a plan, and gives a record, whatever the notebook does in between."""

import ast
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ValidationError

from common.record import MIME, PATTERN
from rosetta import files, identity
from rosetta.catalog import Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.files import reason
from rosetta.notebook import rewritten
from rosetta.paths import checkout, from_root, portable
from rosetta.plan import Plan
from rosetta.records import Commit, Dataset, Gpu, Notebook, Point, Record, readable
from rosetta.run.devices import Slot
from rosetta.run.kernels import Kernels
from rosetta.run.processes import JOB, OUTCOME, Job, Outcome, ending, error_line, kill_tree, sockets, start
from rosetta.run.telemetry import OtherPrograms, RunMeter

PREFIX = "rosetta-"  # of a run's folder
LINE = 64 * 1024  # bytes of a line that is read at once
HEAD, TAIL = 2**20, 2**20  # bytes of the log that are kept: what came first, and what came last
LOOK_S = 5.0  # between looks at a run's folder, without which nothing of the run is left
LONGEST_NOTE = 80  # characters
HOSTS = ("cpu", "numpy")  # in a framework's name for the device that is none of its GPUs
FLOPS_OF_A_PROCESSOR, FLOPS_OF_A_GPU = 1e12, 1e16  # beyond them no time is one: today's fastest reach a quarter
LEAST_GPU_MEMORY = 16 * 2**20  # bytes: a process that only opens a GPU takes more
NOT_STARTED = "RuntimeError: Kernel "  # begins what Jupyter says of a kernel that does not answer
NO_RECORD = "the notebook ended without a record"
SHM, LEAST_SHM = "/dev/shm", 2**28  # where processes of a data loader share batches; bytes that suffice for most
SHARED_MEMORY = re.compile(r"\bshm\b|bus error|SIGBUS|DataLoader|^TimeoutError", re.IGNORECASE)
EXCEPTION = re.compile(r"[\w.]{1,80}(Error|Exception): ")  # begins the last line of a trace
COLOUR = re.compile(r"\x1b\[[\d;]*m")
# A cell's own place in IPython's traceback: of IPython 8 and newer, and of the older ones, where an arrow shows the line
PLACE = re.compile(
    r"^(?:Cell In ?\[\d+\], line |(?:<ipython-input-.*> in <module>|Input In ?\[\d+\], in <.*)\n(?:.*\n)*?-+> )(\d+)\b(?!, in)",
    re.MULTILINE,
)


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

    def end(self, status: str, error: str | None) -> "Run":
        self.record.status, self.record.error = status, error
        return self

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class Payload(BaseModel):
    """What a notebook hands over (``common.record.emit``); ``metrics`` are those of the task's kind."""

    metrics: dict[str, Any]
    points: list[Point] = []
    device: str | None = None
    versions: dict[str, str] = {}
    cuda: dict[str, str] = {}
    thread_pools: dict[str, int] = {}
    dataset: Dataset | None = None


def execute(plan: Plan, slot: Slot, kernels: Kernels, watch: Watcher, folder: Path | None = None) -> Run:
    """Run one notebook in a child process of its own and describe what came of it. Who asked for the run keeps it.

    folder: where the run's own folder is made, the system's temporary folder when not given.
    Never raises for what the notebook, its kernel, its environment, the disk or this project's own code do: that is the
    record's status and error, and the log ends with the trace.
    """
    run = Run(blank(plan, slot, kernels), new_folder(folder))
    record = run.record
    try:
        # Prepare
        if plan.refused:
            return run.end("failed", plan.refused)
        watch(Progress("preparing"))
        try:
            kernel = kernels.get(
                plan.row, run.log, lambda text: watch(Progress("preparing", note=text)), slot.machine.gpus
            )
        except RosettaError as error:
            return run.end("skipped" if isinstance(error, Unavailable) else "failed", str(error))
        record.build = kernel.build
        variables = kernel.variables | slot.variables() | plan.variables
        variables |= {"IPYTHONDIR": str(run.folder / "ipython")}
        # Run
        watch(Progress("starting"))
        started, clock = time.monotonic(), time.time() - time.monotonic()
        notebook, python = _as_it_runs(plan.row, run.folder), str(kernel.python)
        own = from_root(plan.row.notebook.parent)
        job = Job(from_root(notebook), own, plan.parameters, python, variables, slot.processors, clock)
        (run.folder / JOB).write_text(json.dumps(asdict(job)))
        with OtherPrograms(slot.processors) as programs:
            outcome, meter = run_process(run, plan, slot, watch)
        # Collect
        record.metrics.wall_s = round(time.monotonic() - started, 3)
        record.telemetry = meter.fill(record.metrics)
        wrong, stopped_in, timed = collect(run, plan, meter.marked_j, datetime.fromtimestamp(clock + started, UTC))
        record.others = programs.used(*(moment.timestamp() - clock for moment in timed))
        record.others.gpu = meter.busy_before
        # Judge
        run.end(*judge(record, plan, outcome, wrong, stopped_in))
        run.record = readable(record)
        return run
    except Exception as error:
        with suppress(OSError), open(run.log, "a", encoding="utf-8", errors="replace", opener=_itself) as log:
            traceback.print_exc(file=log)
        run.record = blank(plan, slot, kernels)
        why = isinstance(error, OSError) and error.strerror or error_line(type(error).__name__, error)
        return run.end("failed", f"the runner could not go on: {why}")
    except BaseException:  # the user interrupts: nobody will close the run
        run.close()
        raise


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
        notebook=Notebook(path=from_root(row.notebook), sha256=identity.of_row(row)),
        machine=slot.machine,
        threads=slot.threads,
        seed=plan.seed,
        key=plan.key(kernels.fingerprint(row, slot.machine.gpus), slot.machine.name),
        params=plan.constants | plan.decisive,
        dataset=Dataset(synthetic=plan.synthetic),
        metrics=plan.kind.metrics(),
    )


def commit() -> Commit:
    """The commit that is checked out, and whether the code differs from it; what runs write is not looked at."""
    head = [*checkout.git, "rev-parse", "HEAD"]
    changes = [*checkout.git, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!results", ":!results.md"]
    try:
        number, changed = (subprocess.check_output(command, stderr=subprocess.DEVNULL) for command in (head, changes))
    except (OSError, subprocess.CalledProcessError):
        return Commit()
    return Commit(id=number.decode().strip(), dirty=bool(changed))


def new_folder(parent: Path | None) -> Path:
    """A new folder for a run, in the system's temporary one where the parent cannot be written.

    On disks too full for one, a path where nothing is, as if all its files were missing.
    """
    for place in (parent, None):
        with suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    return Path(parent or tempfile.gettempdir(), PREFIX + uuid.uuid4().hex)


def not_run(plan: Plan, slot: Slot, kernels: Kernels, status: str, error: str) -> Run:
    """A run that never started, with a record and a folder like any other."""
    return Run(blank(plan, slot, kernels), new_folder(None)).end(status, error)


def _as_it_runs(row: Row, folder: Path) -> Path:
    """The notebook of a row, or a copy in the folder that is changed by the program of its variant."""
    if not row.program:
        return row.notebook
    why = ast.get_docstring(ast.parse(files.text(row.program)))
    note = f"**Some cells of this copy are changed** by `{from_root(row.program)}`. {why}"
    copy = folder / "changed.ipynb"
    copy.write_text(rewritten(row.notebook, row.code, note), encoding="utf-8")
    return copy


def run_process(run: Run, plan: Plan, slot: Slot, watch: Watcher) -> tuple[Outcome, RunMeter]:
    """Start the process that executes the run's job, follow it to its end, and leave no process of it behind.

    The outcome is as the process tells it, unless it was cut short.
    """
    sockets(run.folder).mkdir(mode=0o700)
    order = run.folder / JOB  # not the folder itself, which a kernel would make again
    cookie, variables = str(run.folder.resolve()), {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        with start("rosetta.run.child", str(run.folder), cookie=cookie, variables=variables, **pipes) as process:
            meter = RunMeter(process.pid, slot.gpus if slot.alone else ())
            output = Output(process.stdout, run.log, meter, watch)
            try:
                with meter:
                    output.start()
                    end = time.monotonic() + (plan.timeout_s or inf)
                    while order.is_file() and (left_s := end - time.monotonic()) > 0:
                        with suppress(subprocess.TimeoutExpired):
                            process.wait(min(left_s, LOOK_S))
                            break
            finally:
                kill_tree(process.pid, cookie, meter.seen)
    finally:
        shutil.rmtree(sockets(run.folder), ignore_errors=True)
    output.join(timeout=5)
    if not order.is_file():
        return Outcome("crashed", "its folder was removed while it ran"), meter
    if left_s <= 0:
        return Outcome("timeout", f"stopped after {plan.timeout_s:g} s, its limit (--timeout sets another)"), meter
    try:
        outcome = Outcome(**json.loads(files.read(run.folder / OUTCOME)))
    except (OSError, ValueError, TypeError):  # it was killed, or its disk is full
        said = portable(output.last_line)[:200] if process.returncode >= 0 else ""
        why = f"the run's process ended: {ending(process.returncode)}{said and f' ({said})'}"
        return Outcome("crashed", why), meter
    if output.last_error and (outcome.error or "").startswith(NOT_STARTED):  # the kernel knew why
        outcome = replace(outcome, error=f"{outcome.error} ({portable(output.last_error)[:200]})")
    return outcome, meter


class Output(threading.Thread):
    """What a run's process prints: copied to the log, and each epoch line told. Of a very long log the middle is left out."""

    def __init__(self, stream: BinaryIO, log: Path, meter: RunMeter, watch: Watcher):
        super().__init__(daemon=True)
        self.last_line = ""  # that says something
        self.last_error = ""  # the last line that names an exception
        self._stream, self._log, self._meter, self._watch = stream, log, meter, watch
        self._opened: int | None = None  # the log, which is opened once: what lies there later may be another file

    def run(self) -> None:
        """To the end whatever comes: a process whose output nobody reads would stop."""
        self._write(b"")  # before the notebook can put something in its place
        head, tail, left_out, size = 0, deque(), 0, 0  # bytes written, lines kept for the end, bytes left out and kept
        while line := self._stream.readline(LINE):
            self._tell(line.decode(errors="replace").strip())
            if head < HEAD:
                head += len(line)
                self._write(line)
                continue
            tail.append(line)
            size += len(line)
            while size > TAIL:
                left_out, size = left_out + len(tail[0]), size - len(tail.popleft())
        if left_out:
            self._write(f"\n[{left_out:,} bytes of the run's output are left out here]\n".encode())
        self._write(b"".join(tail))
        if self._opened is not None:
            with suppress(OSError):  # the disk fails: what was written is there or not
                os.close(self._opened)

    def _tell(self, text: str) -> None:
        self.last_line = text or self.last_line
        self.last_error = text if EXCEPTION.match(text) else self.last_error
        if part := PATTERN.search(text):
            note = part["note"][:LONGEST_NOTE]
            with suppress(Exception):  # the run does not depend on who watches it
                self._meter.mark()
                self._watch(Progress("running", part["what"], int(part["done"]), int(part["of"]), note))

    def _write(self, line: bytes) -> None:
        with suppress(OSError):  # a full disk: the run need not end with its log
            if self._opened is None:
                self._opened = _itself(str(self._log), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(self._opened, line)


def _itself(path: str, flags: int) -> int:
    """Opens a file that a notebook may have replaced: not where a link leads, and without waiting for a pipe's other end."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def collect(
    run: Run, plan: Plan, marked_j: float | None, launched: datetime
) -> tuple[str | None, str | None, tuple[datetime, ...]]:
    """Move what the executed notebook holds into the record, and take this machine's paths out of it.

    marked_j: joules between the first and the last epoch line. Returns what of it is not as it must be, and the cell in which
    it stopped, each None where there is nothing to tell; and begin and end of the cell that is timed, where one is known.
    """
    record, kind = run.record, plan.kind
    try:
        notebook = ExecutedNotebook(run.executed)
    except (OSError, ValueError, KeyError):  # the child ended before or while it wrote
        return NO_RECORD, None, ()
    make_portable(run.executed)
    measured = record.metrics.model_dump(exclude_unset=True, exclude_none=True) | notebook.seconds(kind.timed)
    record.metrics, wrong = kind.metrics.model_validate(measured), None
    payload, began = notebook.payload(), notebook.began()
    if payload is None:
        wrong = NO_RECORD
    else:
        try:
            facts = Payload.model_validate(payload)
            record.metrics = kind.metrics.model_validate(facts.metrics | measured)
            record.device, record.versions, record.cuda = facts.device, facts.versions, facts.cuda
            record.thread_pools, record.points = facts.thread_pools, facts.points
            record.dataset = facts.dataset or record.dataset
            kind.complete(record.metrics, record.params, marked_j)
        except ValidationError as error:
            wrong = f"the notebook's record is not one of kind {kind.name}: {reason(error)}"
    record.metrics.start_s = round((began - launched).total_seconds(), 4) if began else None
    return wrong, notebook.stopped_in(), notebook.longest(but=kind.timed)


def judge(
    record: Record, plan: Plan, outcome: Outcome, wrong: str | None, stopped_in: str | None
) -> tuple[str, str | None]:
    """Status and error of a run. wrong, stopped_in: as from ``collect``."""
    if outcome.status != "ok":
        error = f"{outcome.error} (in the cell {stopped_in})" if stopped_in else outcome.error
        return outcome.status, f"{error}{_little_shared_memory(error or '')}"
    if wrong:
        return "failed", wrong
    differing = [
        f"{name} is {_text(getattr(record.metrics, name))}, expected {_text(value)}"
        for name, value in plan.expected.items()
        if getattr(record.metrics, name) != value
    ]
    if differing:
        return "failed", "not the network of this task: " + "; ".join(differing)
    if ignored := not_as_asked(record, plan):
        return "failed", ignored
    elsewhere = on_the_cpu(record.machine.gpus, record.device, record.metrics.peak_gpu_memory)
    if elsewhere:
        return "failed", f"computed on the CPU: {elsewhere}"
    return plan.kind.trouble(record.metrics, record.params) or ("ok", None)


def not_as_asked(record: Record, plan: Plan) -> str | None:
    """What shows that a run has not loaded or not computed what was asked for."""
    loaded = record.dataset
    if plan.dataset and not loaded.name:
        return f"it has loaded no data by common/data/{plan.dataset}.py"
    if plan.dataset and loaded.synthetic != plan.synthetic:
        generated, real = ("real", "generated") if plan.synthetic else ("generated", "real")
        return f"it has loaded {generated} data, and {real} data were asked for"
    devices = getattr(record.metrics, "devices", (record.device or "").split(", ")) or ()
    if record.params.get("DEVICES", len(devices)) != len(devices):
        took_part = ", ".join(devices) or "none"
        return f"DEVICES is {record.params['DEVICES']}, and the devices that took part are: {took_part}"
    for part, name in plan.kind.loaded.items():
        if loaded.sizes.get(part, plan.constants[name]) != plan.constants[name]:
            return f"it has loaded {loaded.sizes[part]:,} examples, and {name} is {plan.constants[name]:,}"
    rate = (plan.flop or 0) * (getattr(record.metrics, "examples_per_s", None) or 0)
    most = FLOPS_OF_A_GPU * len(record.machine.gpus) or FLOPS_OF_A_PROCESSOR * record.machine.cores
    if rate > most:
        examples = f"{record.metrics.examples_per_s:,.0f} examples a second"
        return f"{examples} would be {rate / 1e12:,.0f} TFLOP/s, more than any machine of this kind computes"
    return None


def on_the_cpu(gpus: list[Gpu], device: str | None, memory: int | None) -> str | None:
    """What shows that a run which had GPUs did not compute on them. memory: by how much what is in use there grew, in bytes."""
    if not gpus:
        return None
    if any(name in (device or "").lower() for name in HOSTS):
        return f"its device is {device}"
    if memory is not None and memory < LEAST_GPU_MEMORY:
        return f"the GPU's memory was never used (device: {device or 'not told'})"
    return None


def _little_shared_memory(error: str) -> str:
    """What a loader's processes may have died of: Docker gives them 64 MB, and frameworks tell it badly or not at all."""
    if not SHARED_MEMORY.search(error) or not os.path.isdir(SHM):
        return ""
    size = shutil.disk_usage(SHM).total
    return f"; {SHM} has {size // 10**6} MB, make it larger (docker run --shm-size=1g)" if size < LEAST_SHM else ""


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


class ExecutedNotebook:
    """What an executed notebook holds: its record output, seconds of each cell, where it stopped."""

    def __init__(self, file: Path):
        notebook = json.loads(files.read(file))
        self.is_whole = bool(notebook["metadata"].get("papermill", {}).get("end_time"))  # written to its end
        self.cells: list[tuple[str | None, dict, dict]] = []  # role, what papermill says of it, the cell itself
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                role = next(iter(cell["metadata"].get("tags", [])), None)
                self.cells.append((role, cell["metadata"].get("papermill", {}), cell))

    def payload(self) -> Any:
        """What the notebook handed over as its record; None when it did not get that far."""
        outputs = [output.get("data", {}) for _, _, cell in self.cells for output in cell["outputs"]]
        return next((data[MIME] for data in reversed(outputs) if MIME in data), None)

    def seconds(self, fields: dict[str, str]) -> dict[str, float]:
        """Seconds of the cells, added up: fields maps roles to the names they are added up under."""
        sums: dict[str, float] = {}
        for role, timed, _ in self.cells:
            if role in fields and timed.get("duration") is not None:
                sums[fields[role]] = round(sums.get(fields[role], 0.0) + timed["duration"], 4)
        return sums

    def began(self) -> datetime | None:
        """When the kernel took the first cell."""
        times = (timed["start_time"] for _, timed, _ in self.cells if timed.get("start_time"))
        return min(map(datetime.fromisoformat, times), default=None)

    def longest(self, but: Collection[str]) -> tuple[datetime, ...]:
        """Begin and end of the cell that took longest, but for those of some roles; nothing where no such cell has ended."""
        ended = [timed for role, timed, _ in self.cells if role not in but and timed.get("duration") is not None]
        if not ended:
            return ()
        cell = max(ended, key=lambda timed: timed["duration"])
        begin = datetime.fromisoformat(cell["start_time"])
        return begin, begin + timedelta(seconds=cell["duration"])

    def stopped_in(self) -> str | None:
        """The cell that raised, or that never got its reply because the kernel ended: its role, and the line if there is one.

        None also where the run's process was cut short: it had not written all that it knew.
        """
        for role, timed, cell in self.cells if self.is_whole else ():
            replied = "shell.execute_reply" in cell["metadata"].get("execution", {})
            if timed.get("start_time") and not replied or timed.get("exception"):
                errors = [output["traceback"] for output in cell["outputs"] if output["output_type"] == "error"]
                line = PLACE.search(COLOUR.sub("", "\n".join(errors[0]))) if errors else None
                return f"{role}, line {line[1]}" if role and line else role
        return None


def make_portable(file: Path) -> None:
    """Take the paths of this machine out of an executed notebook."""
    notebook = _portable(json.loads(files.read(file)))
    for name in ("input_path", "output_path"):
        notebook["metadata"].get("papermill", {}).pop(name, None)
    files.write_atomically(file, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def _portable(part: Any) -> Any:
    """A part of a notebook, each of its texts as it reads: in JSON, an escaped character may stand before a path."""
    if isinstance(part, dict):
        return {name: _portable(value) for name, value in part.items()}
    if isinstance(part, list):
        return [_portable(value) for value in part]
    return portable(part) if isinstance(part, str) else part
