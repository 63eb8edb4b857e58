"""Child processes: a whole tree of them, and leaving none behind."""

import contextlib
import os

import psutil

COOKIE = "ROSETTA_RUN"  # set for a run's child, inherited by all that it starts


def kill_tree(pid: int, cookie: str) -> None:
    """Kill a process, its descendants, and every process that inherited the run's cookie.

    Kernels start in sessions of their own, and a process whose parent has died hangs below init: the cookie finds those too.
    """
    for _ in range(3):  # a process may have forked while its siblings were being killed
        doomed = _descendants(pid) + _marked(cookie)
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if not doomed:
            return
        psutil.wait_procs(doomed, timeout=5)


def kill_runs() -> None:
    """Kill the children of this process that are runs; what they have started is killed when their end is noticed."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if COOKIE in child.environ():
                child.kill()


def _descendants(pid: int) -> list[psutil.Process]:
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


def tree(pid: int) -> list[psutil.Process]:
    """The descendants of a process; none when it is gone."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
