"""Child processes: measuring a whole tree of them, and leaving none behind."""

import contextlib
import os
import threading

import psutil
import pynvml

from rosetta.machine import nvml, visible_handles

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


class MemoryWatch:
    """Samples the memory of a child's descendants twice a second: ``peak_rss`` and, with a GPU, ``peak_gpu`` in bytes."""

    interval_s = 0.5

    def __init__(self, pid: int):
        self.pid = pid
        self.peak_rss: int | None = None
        self.peak_gpu: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        with nvml() as gpu:
            handles = visible_handles() if gpu else []
            before = [self._used(handle) for handle in handles]
            while not self._stop.wait(self.interval_s):
                resident = sum(_rss(process) for process in _children(self.pid))
                if resident:
                    self.peak_rss = max(resident, self.peak_rss or 0)
                for handle, base in zip(handles, before):
                    self.peak_gpu = max(self._used(handle) - base, self.peak_gpu or 0)

    @staticmethod
    def _used(handle) -> int:
        return pynvml.nvmlDeviceGetMemoryInfo(handle).used


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _rss(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0
