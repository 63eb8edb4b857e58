"""Starts processes and leaves none behind, also where the runner is killed; what a run's process is told and answers.

Whatever the runner starts, it starts as a module of this project, whose standard input is a pipe from the runner. When the pipe
ends, the runner is gone, and the module ends itself and all that it has started. ``rosetta.run.child`` is the module of a run.
This one is that of any other command: ``python -m rosetta.run.processes FOLDER COMMAND...``.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from rosetta.paths import checkout, portable

JOB, OUTCOME = "job.json", "outcome.json"  # in a run's folder
GUARD = "rosetta.run.processes"  # the module that starts a command of others
COOKIE = "ROSETTA_RUN"  # set for a process that is started, inherited by all that it starts: a run's folder, say
# Of the runner's own environment: they must not leak into others
FOREIGN_VARIABLES = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "CONDA_PREFIX")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # of Linux' prctl
NOT_STARTED = 127  # exit code, as a shell's
TRIES = 3  # a process may have forked while its siblings were being killed
LONGEST_ERROR = 500  # characters


@contextmanager
def start(
    module: str,
    *arguments: str,
    cookie: str,
    without: Collection[str] = ("VIRTUAL_ENV",),
    variables: Mapping[str, str] | None = None,
    **pipes: Any,
) -> Iterator[subprocess.Popen]:
    """Start a module of this project in a session of its own; the context's end kills it and all that it has started.

    cookie: marks all of its processes. without: variables of the user's shell that must not reach it. variables: on top of the
    others. pipes: options of ``Popen``, such as where its output goes.
    """
    env = {name: value for name, value in os.environ.items() if name not in without} | dict(variables or {})
    reading, writing = os.pipe()  # not Popen's own, which ``communicate`` closes
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=checkout.root,
            env=env | {COOKIE: cookie},
            stdin=reading,
            start_new_session=True,  # a terminal's Ctrl-C is for the runner, which ends this
            **pipes,
        )
        try:
            yield process
        finally:  # also when the user interrupts
            kill_tree(process.pid, cookie)
            process.wait()
    finally:
        os.close(reading)
        os.close(writing)


def ask(
    python: Path, code: str, timeout_s: float, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Run some code by an interpreter; None where it does not end in time. Nothing that it starts is left behind.

    variables: on top of this process's own. Bytes that are no UTF-8 are replaced.
    """
    command = [str(python), "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace"}
    try:
        cookie = uuid.uuid4().hex
        with start(GUARD, str(checkout.root), *command, cookie=cookie, variables=variables, **pipes) as process:
            out, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return None
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def kill_tree(pid: int | None, cookie: str, seen: Iterable[psutil.Process] = ()) -> None:
    """Kill a process and its descendants, where one is named, every process that inherited the cookie, and those of ``seen``
    that still live; never this process.

    Kernels start in sessions of their own, and a process whose parent has died hangs below init: the cookie finds those too.
    ``seen`` finds those of them that have cleared their environment.
    """
    for _ in range(TRIES):
        doomed = {*(tree(pid, itself=True) if pid else []), *_with(cookie), *seen} - {psutil.Process()}
        doomed = [process for process in doomed if _lives(process)]
        for process in doomed:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if not doomed:
            return
        psutil.wait_procs(doomed, timeout=5)


def kill_runs() -> None:
    """Kill the children of this process that are runs or installations; what they have started is killed when their end is noticed."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if COOKIE in child.environ():
                child.kill()


def tree(pid: int, itself: bool = False) -> list[psutil.Process]:
    """The descendants of a process, and the process itself if asked for; none when it is gone."""
    try:
        process = psutil.Process(pid)
        return process.children(recursive=True) + ([process] if itself else [])
    except psutil.NoSuchProcess:
        return []


def _with(cookie: str) -> Iterator[psutil.Process]:
    """The processes that inherited a cookie."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # not ours to look at, or gone
            if process.environ().get(COOKIE) == cookie:
                yield process


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def end_with_the_runner() -> None:
    """For a module that ``start`` has started: end it when the runner is gone, with all that it has started.

    On Linux this includes what made itself a daemon.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)  # a descendant whose parent dies becomes a child of this process
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGCONT)  # that somebody has stopped it does not save it

    def follow() -> None:
        while os.read(sys.stdin.fileno(), 1):  # unbuffered: a buffer's lock would hold up the end of this process
            pass
        end_all()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def end_all() -> None:
    """Kill all that this process has started."""
    kill_tree(os.getpid(), os.environ[COOKIE])


@dataclass(frozen=True)
class Job:
    """What a run's process is told, by a file of the run's folder. Nothing else decides what the notebook gets."""

    notebook: str  # from the repository's root where it lies below it
    folder: str  # where it runs, likewise
    parameters: dict[str, Any]  # that papermill puts into the notebook
    python: str = sys.executable  # of the kernel
    variables: dict[str, str] = field(default_factory=dict)  # of the kernel, on top of this process's own
    processors: tuple[int, ...] | None = None  # that the run may use; None leaves the choice to the framework
    clock: float = 0.0  # Unix time less the monotonic clock, both in seconds, when the run began
    start_timeout_s: int = 120  # for the kernel to answer


@dataclass(frozen=True)
class Outcome:
    """What a run's process answers, by another file."""

    status: str  # "ok", "failed" (an exception) or "crashed" (the kernel died)
    error: str | None = None


def sockets(folder: Path) -> Path:
    """Where the kernel of a run has its sockets: not in the run's own folder, since their paths must be short."""
    return Path(tempfile.gettempdir()) / f"{folder.name}.sockets"


def error_line(name: str, text: object) -> str:
    """An exception as one line of a length that a table can show: its first, or the last of another process's trace in it."""
    lines = (str(text).strip() or "no message").splitlines()
    line = lines[-1 if any("Traceback (most recent call last)" in line for line in lines) else 0]
    return portable(f"{name[:LONGEST_ERROR]}: {line[:LONGEST_ERROR]}{'…' if len(line) > LONGEST_ERROR else ''}")


def last_words(text: str, code: int) -> str:
    """The last line of what a process has printed, or its exit code where it has printed nothing."""
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else f"exit code {code}, and no message"


def ending(code: int | None) -> str:
    """How a process ended, for a reader: its exit code, or the signal and what usually sends it."""
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return name + {signal.SIGKILL: ", as the system sends it when memory runs out"}.get(-code, "")


def main(folder: str, *command: str) -> int:
    """Run a command in a folder, with nothing on its standard input.

    The exit code is the command's, 128 and the signal that ended it, or NOT_STARTED with a reason on standard error.
    """
    end_with_the_runner()
    try:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_STARTED
    code = process.wait()
    end_all()  # what it has left would hold its output open
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
