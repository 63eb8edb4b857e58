"""What other programs use of the processors. A time that was taken beside them is no figure."""

import os
import threading
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress

import psutil

from rosetta.records import Others
from rosetta.run import machine

INTERVAL_S = 2.0  # between samples: a look at all processes takes some milliseconds
LOOK_S = 0.5  # the shortest look that tells something
KTHREADD = 2  # the parent of the system's own threads, which also work for a run
ASKED = ["pid", "ppid", "name", "create_time", "cpu_times"]


class OtherPrograms:
    """Follows the processor time of all processes that this one has not started, as long as the context lasts.

    processors: those of the run, all that this process may use when not given; who may use none of them does not count. Neither
    does what cannot be seen: processes of another container, a virtual machine's neighbours.
    """

    def __init__(self, processors: Collection[int] | None = None):
        self.processors = set(processors or machine.processors())
        self.seconds = Counter[str]()  # by the name of the program
        self._samples: list[tuple[float, float]] = []  # monotonic time, and the seconds of all until then
        self._before: dict[tuple[int, float], float] = {}  # by process
        self._busy_s = 0.0
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> "OtherPrograms":
        self.sample()
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()
        self.sample()

    def _follow(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            self.sample()

    def sample(self) -> None:
        """Add what they have used since the last sample."""
        with self._lock:
            self._sample()

    def _sample(self) -> None:
        there = [info for process in psutil.process_iter(ASKED) if (info := process.info)["cpu_times"]]
        system = psutil.cpu_times()
        now, busy_s = time.monotonic(), system.user + system.system + getattr(system, "nice", 0.0)
        parents, ours_s, theirs = {info["pid"]: info["ppid"] for info in there}, 0.0, Counter[str]()
        used = {(info["pid"], info["create_time"]): sum(info["cpu_times"][:4]) for info in there}
        for info, (process, seconds) in zip(there, used.items()):
            grown = seconds - self._before.get(process, seconds)
            if _is_ours(info["pid"], parents):
                ours_s += grown
            elif grown and KTHREADD not in (info["pid"], info["ppid"]) and self._is_beside(info["pid"]):
                theirs[info["name"]] += grown
        # The time of a child that has ended is also its parent's: together they used no more than the system has counted
        most_s = max(busy_s - self._busy_s - ours_s, 0.0) if self._before else 0.0
        total_s = self._samples[-1][1] if self._samples else 0.0
        self._samples.append((now, total_s + min(theirs.total(), most_s)))
        self.seconds += theirs
        self._before, self._busy_s = used, busy_s

    def _is_beside(self, pid: int) -> bool:
        """Whether a process may use one of the run's processors; of one that has ended, yes."""
        with suppress(psutil.Error, AttributeError):  # macOS tells no affinity
            return not self.processors.isdisjoint(psutil.Process(pid).cpu_affinity())
        return True

    def share(self, begin: float = float("-inf"), end: float = float("inf")) -> float | None:
        """The mean share of the processors, 0 to 1, from the last sample before ``begin`` to the first after ``end``, in monotonic
        seconds; None where there are fewer than two."""
        first = max((sample for sample in self._samples if sample[0] <= begin), default=self._samples[0])
        last = min((sample for sample in self._samples if sample[0] >= end), default=self._samples[-1])
        seconds = last[0] - first[0]
        return round((last[1] - first[1]) / seconds / len(self.processors), 3) if seconds else None

    def now(self) -> Others:
        """What they have used since the first sample, or for half a second more."""
        time.sleep(max(0.0, self._samples[0][0] + LOOK_S - time.monotonic()))
        self.sample()
        return self.used()

    def used(self, begin: float = float("-inf"), end: float = float("inf")) -> Others:
        """What they used between two moments, with the names of the two that used most; as ``share``."""
        return Others(processors=self.share(begin, end), programs=[name for name, _ in self.seconds.most_common(2)])


def _is_ours(pid: int, parents: dict[int, int]) -> bool:
    """Whether a process is this one, or descends from it."""
    while pid and pid != os.getpid():
        pid = parents.get(pid, 0)
    return bool(pid)
