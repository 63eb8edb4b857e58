"""Child processes: a whole tree of them, and leaving none behind."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterable

import psutil

COOKIE = "ROSETTA_RUN"  # set for a run's child, inherited by all that it starts: the run's folder
PR_SET_CHILD_SUBREAPER = 36  # of Linux' prctl
TRIES = 3  # a process may have forked while its siblings were being killed


def kill_tree(pid: int, cookie: str, seen: Iterable[psutil.Process] = ()) -> None:
    """Kill a process, its descendants, every process that inherited the run's cookie, and those that were seen below it.

    Kernels start in sessions of their own, and a process whose parent has died hangs below init: the cookie finds those too.
    ``seen`` finds the ones that have cleared their environment and whose parents were killed.
    """
    _kill(lambda: [*_descendants(pid), *_marked(cookie), *filter(_lives, seen)])


def kill_marked(cookie: str) -> None:
    """Kill what a run has left whose runner was killed."""
    _kill(lambda: _marked(cookie))


def kill_children() -> None:
    """Kill all descendants of this process."""
    _kill(lambda: tree(os.getpid()))


def kill_runs() -> None:
    """Kill the children of this process that are runs; what they have started is killed when their end is noticed."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if COOKIE in child.environ():
                child.kill()


def adopt_orphans() -> None:
    """From now on a descendant whose parent dies becomes a child of this process, where the system can do that (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def tree(pid: int) -> list[psutil.Process]:
    """The descendants of a process; none when it is gone."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(find: Callable[[], list[psutil.Process]]) -> None:
    for _ in range(TRIES):
        doomed = find()
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if not doomed:
            return
        psutil.wait_procs(doomed, timeout=5)


def _descendants(pid: int) -> list[psutil.Process]:
    """And the process itself."""
    try:
        process = psutil.Process(pid)
        return [*process.children(recursive=True), process] if process.status() != psutil.STATUS_ZOMBIE else []
    except psutil.NoSuchProcess:
        return []


def _marked(cookie: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(COOKIE) == cookie:
                found.append(process)
        except (psutil.Error, OSError):  # not ours to look at, or gone
            continue
    return found


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
