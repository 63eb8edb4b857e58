"""What the runner measures of a run from outside, the same way for every framework: memory, processor time, the GPUs, and what
other programs use of the processors, beside which a time is no figure.

What cannot be had, because there is no GPU or it does not tell, is None, never 0.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from math import inf
from statistics import fmean, median
from typing import Self

import psutil
import pynvml

from rosetta.kinds.kind import Metrics
from rosetta.records import Others, Telemetry
from rosetta.run import machine
from rosetta.run.processes import tree

INTERVAL_S, EARLY = 0.5, 3  # between samples; how many of them a kernel takes at least to start
OTHERS_INTERVAL_S = 2.0  # the same of other programs: a look at all processes takes some milliseconds
LOOK_S = 0.5  # the shortest look at them that tells something
KTHREADD = 2  # the parent of the system's own threads, which also work for a run
ASKED = ["pid", "ppid", "name", "create_time", "cpu_times"]
# NVML's reasons for a clock below the highest; an idle GPU and a clock that the user has set are none to worry about
THROTTLING = {
    "power": pynvml.nvmlClocksThrottleReasonSwPowerCap,
    "hardware": pynvml.nvmlClocksThrottleReasonHwSlowdown,
    "temperature": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
    "hardware temperature": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "power brake": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
}


class Follower:
    """Calls ``sample`` every so many seconds, in a thread of its own, as long as its context lasts, and once at its end."""

    def __init__(self, interval_s: float):
        self._lock, self._stop, self._interval_s = threading.Lock(), threading.Event(), interval_s
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.sample()
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._stop.wait(self._interval_s):
            self.sample()


class GpuMeter:
    """One GPU's energy, memory, use and clocks over a run. Making one and ``sample`` raise NVMLError."""

    def __init__(self, name: str):
        self.handle = machine.handle(name)
        self.before = pynvml.nvmlDeviceGetMemoryInfo(self.handle).used
        self.peak_memory: int | None = None  # bytes above what others use
        self.energy_j = 0.0
        self._last = self._look()
        _, counter_j, power_w = self._last
        self.source = "counter" if counter_j is not None else "power" if power_w is not None else None
        self.powers: list[float] = []
        self.used: list[float] = []
        self.clocks: list[float] = []
        self.throttled: set[str] = set()

    def sample(self) -> None:
        grown = pynvml.nvmlDeviceGetMemoryInfo(self.handle).used - self.before
        self.peak_memory = max(grown, self.peak_memory or 0)
        before, counter_before, power_before = self._last
        self._last = self._look()
        now, counter_j, power_w = self._last
        if self.source == "counter":
            self.energy_j += counter_j - counter_before
        elif self.source == "power":  # the mean of two readings over the time between them
            self.energy_j += (power_w + power_before) / 2 * (now - before)
        utilisation = _supported(lambda: pynvml.nvmlDeviceGetUtilizationRates(self.handle).gpu / 100)
        clock = _supported(lambda: pynvml.nvmlDeviceGetClockInfo(self.handle, pynvml.NVML_CLOCK_SM))
        for values, value in ((self.powers, power_w), (self.used, utilisation), (self.clocks, clock)):
            if value is not None:
                values.append(value)
        reasons = _supported(lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle)) or 0
        self.throttled |= {name for name, bit in THROTTLING.items() if reasons & bit}

    def _look(self) -> tuple[float, float | None, float | None]:
        """The clock in seconds, the energy counter of Volta and newer in joules, and the power in watts."""
        counter_j = _supported(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) / 1000)
        power_w = _supported(lambda: pynvml.nvmlDeviceGetPowerUsage(self.handle) / 1000)
        return time.monotonic(), counter_j, power_w


class RunMeter(Follower):
    """Follows the descendants of a run's process, and its GPUs, until the context ends; then ``fill`` the record.

    gpus: as CUDA_VISIBLE_DEVICES takes them.
    """

    def __init__(self, pid: int, gpus: Sequence[str]):
        self.pid, self.gpus = pid, gpus
        self.peak_rss: int | None = None
        self.meters: list[GpuMeter] = []
        self.error: str | None = None
        self._cpu_s: dict[psutil.Process, float] = {}  # of each process: it may end before the run
        self._marks: list[float] = []
        self._nvml = ExitStack()
        super().__init__(INTERVAL_S)

    def __enter__(self) -> Self:
        if self.gpus and self._nvml.enter_context(machine.nvml()):
            try:
                self.meters = [GpuMeter(name) for name in self.gpus]
            except pynvml.NVMLError as error:
                self.error = str(error)
        return super().__enter__()

    def __exit__(self, *_) -> None:
        super().__exit__()
        with self._lock:
            self._nvml.close()

    def mark(self) -> None:
        """Note the energy now: the run has printed a line of progress."""
        if self._sample_gpus() and self._source():
            self._marks.append(self._energy_j())

    @property
    def busy_before(self) -> float | None:
        """The share of the time in which others computed on the busiest GPU: of its first samples, while the kernel still starts, the
        smallest, for the first may be of the run before."""
        return max((min(meter.used[:EARLY]) for meter in self.meters if len(meter.used) >= EARLY), default=None)

    @property
    def seen(self) -> Collection[psutil.Process]:
        """Every process that was looked at; many have ended."""
        return self._cpu_s.keys()

    @property
    def marked_j(self) -> float | None:
        """Energy of the GPUs between the first and the last mark, in joules: what steady training takes, without start and test.

        None where the GPUs do not tell, and of fewer than two marks.
        """
        return self._marks[-1] - self._marks[0] if len(self._marks) > 1 else None

    def fill(self, metrics: Metrics) -> Telemetry | None:
        """Put what was measured into a record's metrics; returns what there is to tell of the GPUs.

        Of several GPUs energy, power and largest memory are added up; the rest is over the samples of all.
        """
        metrics.peak_rss = self.peak_rss
        metrics.cpu_s = round(sum(self._cpu_s.values()), 2) or None
        if not self.meters:
            return Telemetry(error=self.error) if self.error else None
        peaks = [meter.peak_memory for meter in self.meters]
        metrics.peak_gpu_memory = None if None in peaks else sum(peaks)
        metrics.energy_j = round(self._energy_j(), 1) if self._source() else None
        powers = [fmean(meter.powers) for meter in self.meters if meter.powers]
        used = [value for meter in self.meters for value in meter.used]
        clocks = [value for meter in self.meters for value in meter.clocks]
        return Telemetry(
            energy_from=self._source(),
            power_w=round(sum(powers), 1) if len(powers) == len(self.meters) else None,
            utilisation=round(fmean(used), 3) if used else None,
            clock_mhz=round(median(clocks), 0) if clocks else None,
            throttled=sorted(set().union(*(meter.throttled for meter in self.meters))),
            error=self.error,
        )

    def _source(self) -> str | None:
        """Where the energy of all comes from; None where one of them does not tell."""
        sources = {meter.source for meter in self.meters}
        return None if None in sources else "power" if "power" in sources else "counter"

    def _energy_j(self) -> float:
        return sum(meter.energy_j for meter in self.meters)

    def sample(self) -> None:
        self._sample_processes()
        self._sample_gpus()

    def _sample_gpus(self) -> bool:
        """Whether there were GPUs to sample."""
        with self._lock:
            if not self.meters or self.error or self._stop.is_set():
                return False
            try:
                for meter in self.meters:
                    meter.sample()
            except pynvml.NVMLError as error:  # a GPU is gone: what was measured until now stands
                self.error = str(error)
                return False
            return True

    def _sample_processes(self) -> None:
        resident = 0
        for process in tree(self.pid):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    resident += process.memory_info().rss
                    self._cpu_s[process] = times.user + times.system
            except psutil.Error:  # ended meanwhile
                continue
        if resident:
            self.peak_rss = max(resident, self.peak_rss or 0)


def _supported(ask: Callable[[], float]) -> float | None:
    """The answer, or None where this GPU or driver does not know; raises NVMLError for any other trouble."""
    try:
        return ask()
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_NoPermission, pynvml.NVMLError_FunctionNotFound):
        return None


class OtherPrograms(Follower):
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
        super().__init__(OTHERS_INTERVAL_S)

    def __enter__(self) -> Self:
        self.sample()
        return super().__enter__()

    def sample(self) -> None:
        """Add what they have used since the last sample."""
        with self._lock:
            us = psutil.Process()
            ours = {
                us.pid,
                *(child.pid for child in us.children(recursive=True)),
            }  # first: one that ends now is no other
            there = [info for process in psutil.process_iter(ASKED) if (info := process.info)["cpu_times"]]
            system = psutil.cpu_times()
            now, busy_s = time.monotonic(), system.user + system.system + getattr(system, "nice", 0.0)
            used = {(info["pid"], info["create_time"]): sum(info["cpu_times"][:4]) for info in there}
            ours_s, theirs = 0.0, Counter[str]()
            for info, (process, seconds) in zip(there, used.items()):
                grown = seconds - self._before.get(process, seconds)
                if info["pid"] in ours:
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

    def now(self) -> Others:
        """What they have used since the first sample, or for half a second more."""
        time.sleep(max(0.0, self._samples[0][0] + LOOK_S - time.monotonic()))
        self.sample()
        return self.used()

    def used(self, begin: float = -inf, end: float = inf) -> Others:
        """What they used from the last sample before ``begin`` to the first after ``end``, in monotonic seconds: the mean share of
        the processors, None where there are fewer than two samples, and the names of the two that used most."""
        first = max((sample for sample in self._samples if sample[0] <= begin), default=self._samples[0])
        last = min((sample for sample in self._samples if sample[0] >= end), default=self._samples[-1])
        seconds = last[0] - first[0]
        share = round((last[1] - first[1]) / seconds / len(self.processors), 3) if seconds else None
        return Others(processors=share, programs=[name for name, _ in self.seconds.most_common(2)])
