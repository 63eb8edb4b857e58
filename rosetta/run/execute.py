"""One run: a plan goes in, a record comes out, whatever the notebook does in between."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from common.record import EPOCH_PATTERN
from rosetta.errors import RosettaError, Unavailable
from rosetta.paths import ROOT, from_root, portable
from rosetta.plan import Plan, content
from rosetta.records import Commit, Dataset, Metrics, Notebook, Record
from rosetta.run.child import Job, Outcome, ending, sockets
from rosetta.run.devices import Slot
from rosetta.run.executed import ExecutedNotebook, make_portable
from rosetta.run.kernels import Kernels, thread_variables, write_kernelspec
from rosetta.run.processes import COOKIE, kill_tree
from rosetta.run.telemetry import RunMeter

PREFIX = "rosetta-"  # of a run's folder


@dataclass(frozen=True)
class Progress:
    """What is known of a run while it goes on."""

    state: str  # "preparing" its environment, "starting" or "training"
    epoch: int = 0
    epochs: int = 0
    loss: str = ""


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


@dataclass(frozen=True)
class Ending:
    """How a run's process ended. ``last``: the last line that it printed."""

    timed_out: bool
    code: int
    last: str


def execute(plan: Plan, slot: Slot, kernels: Kernels, watch: Watcher, folder: Path | None = None) -> Run:
    """Run one notebook in a child process of its own and describe what came of it.

    folder: where the run's own folder is made, the system's temporary folder when not given.
    Never raises for what the notebook, its kernel, its environment or the disk do: that is the record's status and error.
    """
    run = Run(_blank(plan, slot, kernels), new_folder(folder))
    try:
        return _execute(run, plan, slot, kernels, watch)
    except OSError as error:
        return _ended(run, "failed", f"the runner could not go on: {error.strerror or error}")
    except BaseException:  # the user interrupts: nobody will close the run
        run.close()
        raise


def not_run(plan: Plan, slot: Slot, kernels: Kernels, status: str, error: str) -> Run:
    """The record of a run that never started, in a folder of its own like any other."""
    return _ended(Run(_blank(plan, slot, kernels), new_folder(None)), status, error)


def new_folder(parent: Path | None) -> Path:
    """A new folder for a run; on a disk too full for one, a path where nothing is, as if all its files were missing."""
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    except OSError:
        return Path(parent or tempfile.gettempdir(), PREFIX + uuid.uuid4().hex)


def _execute(run: Run, plan: Plan, slot: Slot, kernels: Kernels, watch: Watcher) -> Run:
    folder = run.folder
    watch(Progress("preparing"))
    try:
        kernel = kernels.get(plan.row.environment, plan.row.imports, folder / "run.log", gpus=slot.machine.gpus)
    except Unavailable as reason:
        return _ended(run, "skipped", str(reason))
    except RosettaError as reason:
        return _ended(run, "failed", str(reason))
    cookie = uuid.uuid4().hex
    variables = thread_variables(slot.threads) | slot.variables() | {"IPYTHONDIR": str(folder / "ipython")}
    write_kernelspec(folder, kernel, variables)
    Job(from_root(plan.row.notebook), plan.parameters, slot.processors).write(folder)
    watch(Progress("starting"))
    launched, started = datetime.now(UTC), time.monotonic()
    how, telemetry = _supervise(run, cookie, plan, slot, watch)
    run.record.metrics.wall_s = round(time.monotonic() - started, 3)
    metrics, n_train = run.record.metrics, run.record.dataset.n_train
    run.record.telemetry = telemetry.fill(metrics)
    if telemetry.marked_j and n_train:
        metrics.images_per_j = round(n_train * (telemetry.marks - 1) / telemetry.marked_j, 2)
    return _complete(run, plan, how, launched)


def _supervise(run: Run, cookie: str, plan: Plan, slot: Slot, watch: Watcher) -> tuple[Ending, RunMeter]:
    """Start the child, follow it to its end, and leave no process of it behind."""
    env = os.environ | {COOKIE: cookie, "JUPYTER_PATH": str(run.folder), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
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
    telemetry = RunMeter(child.pid, slot.gpus)

    def told(progress: Progress) -> None:
        telemetry.mark()
        watch(progress)

    output = Output(child.stdout, run.log, told)
    timed_out = False
    try:
        with telemetry:
            output.reader.start()
            try:
                child.wait(plan.timeout_s)
            except subprocess.TimeoutExpired:
                timed_out = True
    finally:  # also when the user interrupts
        kill_tree(child.pid, cookie)
        child.wait()
        child.stdin.close()
        shutil.rmtree(sockets(run.folder), ignore_errors=True)
        output.reader.join(timeout=5)
    return Ending(timed_out, child.returncode, output.last), telemetry


class Output:
    """What a run's process prints: copied to the log, and each epoch line reported."""

    def __init__(self, stream, log: Path, told: Watcher):
        self.last = ""  # line that says something
        self._stream, self._log, self._told = stream, log, told
        self.reader = threading.Thread(target=self._follow, daemon=True)

    def _follow(self) -> None:
        file = None
        with suppress(OSError):
            file = self._log.open("ab", buffering=0)
        for line in self._stream:
            text = line.decode(errors="replace").strip()
            self.last = text or self.last
            epoch = EPOCH_PATTERN.search(text)
            if epoch:
                self._told(Progress("training", int(epoch["epoch"]), int(epoch["epochs"]), epoch["loss"]))
            try:
                if file:
                    file.write(line)
            except OSError:  # a full disk: the log ends here, the run need not
                file.close()
                file = None
        if file:
            file.close()


def _complete(run: Run, plan: Plan, how: Ending, launched: datetime) -> Run:
    """Fill the record from the executed notebook and decide how the run ended."""
    notebook = _read_executed(run.executed)
    if notebook:
        make_portable(run.executed)
    facts = notebook.facts() if notebook else None
    where = notebook.stopped_in() if notebook else None
    if notebook:
        _fill(run.record, facts or {}, notebook.seconds())
        began = notebook.began()
        run.record.metrics.start_s = round((began - launched).total_seconds(), 4) if began else None
    outcome = Outcome.read(run.folder)
    if how.timed_out:
        return _ended(run, "timeout", f"stopped after {plan.timeout_s:g} s, its limit (--timeout sets another)")
    if outcome is None:
        words = _last_words(how.last) if how.code >= 0 else ""  # who is killed has no say
        return _ended(run, "crashed", f"the run's process ended: {ending(how.code)}{words}")
    if outcome.status != "ok":
        return _ended(
            run, outcome.status, (outcome.error or "no message") + (f" (in the cell {where})" if where else "")
        )
    if facts is None:
        return _ended(run, "failed", "the notebook ended without a record")
    wrong = [
        f"{name} is {getattr(run.record.metrics, name):,}, expected {value:,}"
        for name, value in plan.expected.items()
        if getattr(run.record.metrics, name) != value
    ]
    if wrong:
        return _ended(run, "failed", "not the network of this task: " + "; ".join(wrong))
    unusable = [number for number, loss in enumerate(facts["loss"], start=1) if loss is None]
    if unusable:
        return _ended(run, "diverged", f"the loss is not a finite number from epoch {unusable[0]} on")
    return _ended(run, "ok", None)


def _fill(record: Record, facts: dict, seconds: dict[str, float]) -> None:
    """Move what the notebook reported into the record."""
    metrics = record.metrics
    for name in ("accuracy", "parameters", "loss", "epoch_s", "epoch_accuracy", "train_s"):
        if name in facts:
            setattr(metrics, name, facts[name])
    for name, value in seconds.items():
        setattr(metrics, name, value)
    if facts.get("dataset"):
        record.dataset = Dataset.model_validate(facts["dataset"])
    record.device, record.versions, record.cuda = facts.get("device"), facts.get("versions", {}), facts.get("cuda", {})
    record.thread_pools = facts.get("thread_pools", {})
    metrics.target_s = _time_to(record.params.get("TARGET_ACCURACY"), metrics)
    if metrics.epoch_s:
        metrics.first_epoch_s = metrics.epoch_s[0]
        metrics.steady_epoch_s = round(median(metrics.epoch_s[1:]), 4) if metrics.epoch_s[1:] else None
        usual_s = metrics.steady_epoch_s or metrics.first_epoch_s
        if record.dataset.n_train and usual_s:
            metrics.images_per_s = round(record.dataset.n_train / usual_s, 1)


def _time_to(target: float | None, metrics: Metrics) -> float | None:
    """Seconds of training until a test after an epoch has first reached the accuracy; None where none has."""
    for number, accuracy in enumerate(metrics.epoch_accuracy, start=1):
        if target is not None and accuracy is not None and accuracy >= target:
            return round(sum(metrics.epoch_s[:number]), 4)
    return None


def _blank(plan: Plan, slot: Slot, kernels: Kernels) -> Record:
    row = plan.row
    return Record(
        task=row.task,
        framework=row.framework,
        variant=row.variant,
        title=row.title,
        environment=row.environment,
        preset=plan.preset,
        status="failed",
        started=datetime.now(UTC).replace(microsecond=0),
        commit=commit(),
        notebook=Notebook(path=from_root(row.notebook), sha256=content(row.notebook)),
        machine=slot.machine,
        threads=slot.threads,
        seed=plan.seed,
        key=plan.key(kernels.fingerprint(row.environment), slot.machine.name),
        params=plan.constants | plan.parameters,
        dataset=Dataset(
            synthetic=plan.synthetic, n_train=plan.constants.get("N_TRAIN"), n_test=plan.constants.get("N_TEST")
        ),
        metrics=Metrics(),
    )


def _ended(run: Run, status: str, error: str | None) -> Run:
    run.record.status, run.record.error = status, error
    return run


def _read_executed(file: Path) -> ExecutedNotebook | None:
    try:
        return ExecutedNotebook(file)
    except (OSError, ValueError, KeyError):  # the child ended before or while it wrote
        return None


def _last_words(line: str) -> str:
    """The last line that a process printed before it ended by itself without telling why."""
    return f" ({portable(line)[:200]})" if line else ""


def commit() -> Commit:
    """The commit that is checked out, and whether the code differs from it; what runs write is not looked at."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!results", ":!results.md"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return Commit()
    return Commit(id=commit, dirty=bool(changed))
