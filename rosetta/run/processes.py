"""Child processes: a whole tree of them, and leaving none behind."""

import contextlib
import ctypes
import hashlib
import os
import sys
import threading
from collections.abc import Iterable

import psutil

COOKIE = "ROSETTA_RUN"  # set for a run's child, inherited by all that it starts: the run's folder
PR_SET_CHILD_SUBREAPER = 36  # of Linux' prctl
TRIES = 3  # a process may have forked while its siblings were being killed


def kill_tree(pid: int | None, cookie: str, seen: Iterable[psutil.Process] = ()) -> None:
    """Kill a process and its descendants, where one is named, every process that inherited the cookie, and those that were
    seen below it; never this process.

    Kernels start in sessions of their own, and a process whose parent has died hangs below init: the cookie finds those too,
    and on Linux its mark those that have cleared their environment. Elsewhere ``seen`` finds some of them.
    """
    for _ in range(TRIES):
        found = [*_descendants(pid), *_marked(cookie), *filter(_lives, seen)]
        doomed = [process for process in found if process.pid != os.getpid()]
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if not doomed:
            return
        psutil.wait_procs(doomed, timeout=5)


def end_all() -> None:
    """Kill all that this process has started."""
    kill_tree(os.getpid(), os.environ[COOKIE])


def end_with_the_runner() -> None:
    """For a process whose standard input is a pipe from the runner: when that ends, the runner is gone, and so are this process
    and all that it has started, on Linux also what made itself a daemon."""
    if sys.platform == "linux":  # a descendant whose parent dies becomes a child of this process
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        with contextlib.suppress(psutil.Error, OSError):  # a sandbox that refuses: then the cookie has to do
            hard = psutil.Process().rlimit(psutil.RLIMIT_LOCKS)[1]
            psutil.Process().rlimit(psutil.RLIMIT_LOCKS, (_mark(os.environ[COOKIE]), hard))

    def follow() -> None:
        while os.read(sys.stdin.fileno(), 1):  # unbuffered: a buffer's lock would hold up the end of this process
            pass
        end_all()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def kill_runs() -> None:
    """Kill the children of this process that are runs or installations; what they have started is killed when their end is noticed."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if COOKIE in child.environ():
                child.kill()


def tree(pid: int) -> list[psutil.Process]:
    """The descendants of a process; none when it is gone."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _descendants(pid: int | None) -> list[psutil.Process]:
    """And the process itself."""
    if pid is None:
        return []
    try:
        process = psutil.Process(pid)
        return [*process.children(recursive=True), process] if process.status() != psutil.STATUS_ZOMBIE else []
    except psutil.NoSuchProcess:
        return []


def _mark(cookie: str) -> int:
    """A number for the limit of file locks, which Linux has not looked at since 2.4: all that a process starts inherits it,
    in whatever session, environment and below whatever parent."""
    return int.from_bytes(hashlib.sha256(cookie.encode()).digest()[:7])


def _marked(cookie: str) -> list[psutil.Process]:
    found, mark = [], _mark(cookie)
    for process in psutil.process_iter():
        try:
            if process.environ().get(COOKIE) == cookie or (
                sys.platform == "linux" and process.rlimit(psutil.RLIMIT_LOCKS)[0] == mark
            ):
                found.append(process)
        except (psutil.Error, OSError):  # not ours to look at, or gone
            continue
    return found


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
