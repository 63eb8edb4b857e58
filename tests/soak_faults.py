"""The faults of the soak: drawn beforehand from a seed, and how each is injected into a batch at work."""

import heapq
import json
import math
import os
import random
import shutil
import struct
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from signal import Signals

import psutil

from rosetta.run.processes import COOKIE

EVERY_S = 10.0  # a fault, on average
PATIENCE_S = 30.0  # for a process of the role that a fault is for
LOOK_S = 0.1
SLEEP = "98760"  # seconds, before a daemon's seed: no other process sleeps as long
KINDS = {"signal": 45, "two signals": 15, "stop": 15, "disk": 9, "clock": 9, "environment": 7}
SIGNALS = ("SIGTERM", "SIGINT", "SIGKILL", "SIGSEGV", "SIGHUP")
# What the command line of a process of a run holds, by its role; and how often a fault is for that role
ROLES = {
    "runner": "run_all.py",
    "child": "rosetta.run.child",
    "kernel": "ipykernel_launcher",
    "daemon": f"sleep {SLEEP}.",
}
OFTEN = {"runner": 3, "child": 4, "kernel": 4, "daemon": 2}
CLOCKS = (-86_400, -3600, -5, 0, 5, 3600, 86_400)  # seconds by which the clock of the day is set off
QUIET = 0.4, 0.75  # part of the time in which no signal is for the runner: one lives long enough to watch its memory

RunName = tuple[str, int]  # framework and seed
Steps = Generator[float, None, None]  # what a fault does, with the seconds that it waits between


@dataclass(frozen=True)
class Hit:
    role: str
    index: int  # among the processes of that role
    signal: str

    def __str__(self) -> str:
        return f"{self.signal} to {self.role} {self.index}"


@dataclass(frozen=True)
class Fault:
    at_s: float
    kind: str
    hits: tuple[Hit, ...] = ()
    lasts_s: float = 0.0  # until the process goes on or the disk is freed; between two signals
    clock_s: int = 0

    def __str__(self) -> str:
        clock = f"{self.clock_s:+d} s" if self.kind == "clock" else ""
        lasts = f"{self.lasts_s:.2f} s" if self.lasts_s else ""
        return " ".join(filter(None, (self.kind, ", ".join(map(str, self.hits)), clock, lasts)))


@dataclass
class Met:
    """A fault as it was injected. run: of a signal's process; None where it meets every run."""

    fault: Fault
    run: RunName | None
    began: float  # by the system's own clock of the day, in seconds, as are times of files
    ended: float = math.inf
    hit: Hit | None = None


def schedule(seed: int, seconds: float) -> list[Fault]:
    """The same faults for the same seed."""
    chance, faults, at_s = random.Random(seed), [], 0.0
    while (at_s := at_s + chance.expovariate(1 / EVERY_S)) < seconds:
        kind = chance.choices([*KINDS], [*KINDS.values()])[0]
        quiet = QUIET[0] < at_s / seconds < QUIET[1]
        roles = chance.choices([*ROLES], [OFTEN[role] for role in ROLES], k=2)
        if quiet:
            roles = ["kernel" if role == "runner" else role for role in roles]
        if set(roles) == {"runner", "child"}:  # both killed at once: what they leave is ended by the next batch alone
            roles[1] = "kernel"
        hits = tuple(Hit(role, chance.randrange(100), chance.choice(SIGNALS)) for role in roles)
        lasts_s, never = chance.uniform(1, 10), chance.random() < 0.4 and roles[0] != "runner"
        clock_s = chance.choice(CLOCKS)
        faults.append(
            {
                "signal": Fault(at_s, kind, hits[:1]),
                "two signals": Fault(at_s, kind, hits, lasts_s / 100),
                "stop": Fault(at_s, kind, (Hit(roles[0], hits[0].index, "SIGSTOP"),), math.inf if never else lasts_s),
                "disk": Fault(at_s, kind, (), lasts_s),
                "clock": Fault(at_s, kind, clock_s=clock_s),
                "environment": Fault(at_s, kind),
            }[kind]
        )
    return faults


class Injector:
    """Injects faults into what runs below a folder. ``met`` is what has come of them."""

    def __init__(self, faults: list[Fault], folder: Path, disk: Path, venv: Path, log: Callable[[str], None]):
        self.folder, self.ballast, self.venv, self.log = folder, disk / "ballast", venv, log
        self.clock = folder / "clock"
        self.clock.write_bytes(struct.pack("q", 0))
        self.met: list[Met] = []
        self._began, self._order = time.monotonic(), count()
        self._steps: list[tuple[float, int, Steps]] = []
        for fault in faults:
            self._later(fault.at_s, getattr(self, "_" + fault.kind.replace(" ", "_"))(fault))

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def counts(self) -> dict[str, Counter[str]]:
        """Of faults that met something: how many of each kind, of each signal, and for each role."""
        faults = {id(met.fault): met.fault for met in self.met}.values()
        hits = [met.hit for met in self.met if met.hit]
        return {
            "faults": Counter(fault.kind for fault in faults),
            "signals": Counter(hit.signal for hit in hits),
            "to": Counter(hit.role for hit in hits),
        }

    def inject(self) -> None:
        """What is due."""
        while self._steps and self._steps[0][0] <= self.elapsed_s:
            _, _, steps = heapq.heappop(self._steps)
            with suppress(StopIteration):
                self._later(self.elapsed_s + next(steps), steps)

    def end(self) -> None:
        """Undo what lasts: stopped processes go on, the disk has room, the clock is right."""
        for _, _, steps in self._steps:
            steps.close()
        self._steps.clear()
        self._set_clock(0)

    def _later(self, at_s: float, steps: Steps) -> None:
        heapq.heappush(self._steps, (at_s, next(self._order), steps))

    def _note(self, fault: Fault, hit: Hit | None = None, pid: int | None = None, run: RunName | None = None) -> Met:
        self.log(f"{fault}: {hit.signal} to {hit.role} {pid} of {run}" if hit else str(fault))
        self.met.append(Met(fault, run, time.time(), hit=hit))
        return self.met[-1]

    def _signal(self, fault: Fault) -> Steps:
        found = []
        for hit in fault.hits:
            found.append((yield from self._find(fault, hit)))
        runs = [process and run_of(process) for process in found]
        for hit, process, run in zip(fault.hits, found, runs):
            with suppress(psutil.NoSuchProcess):
                if process:
                    process.send_signal(Signals[hit.signal])
                    self._note(fault, hit, process.pid, run)
            time.sleep(fault.lasts_s)  # here, since it is short

    _two_signals = _signal

    def _stop(self, fault: Fault) -> Steps:
        (hit,) = fault.hits
        process = yield from self._find(fault, hit)
        if process is None:
            return
        run = run_of(process)
        with suppress(psutil.NoSuchProcess):
            process.suspend()
            met = self._note(fault, hit, process.pid, run)
            try:
                yield fault.lasts_s
            finally:
                with suppress(psutil.NoSuchProcess):
                    process.resume()
                met.ended = time.time()

    def _disk(self, fault: Fault) -> Steps:
        while self.ballast.exists():  # full already
            yield LOOK_S
        met = self._note(fault)
        try:
            with suppress(OSError), self.ballast.open("wb", buffering=0) as file:
                while file.write(bytes(2**16)):
                    pass
            yield fault.lasts_s
        finally:
            self.ballast.unlink()
            met.ended = time.time()

    def _clock(self, fault: Fault) -> Steps:
        self._set_clock(fault.clock_s)
        self._note(fault)
        yield 0

    def _set_clock(self, seconds: int) -> None:
        with self.clock.open("r+b") as file:  # in its place: processes have mapped it
            file.write(struct.pack("q", seconds))

    def _environment(self, fault: Fault) -> Steps:
        met = self._note(fault)
        shutil.rmtree(self.venv, ignore_errors=True)
        met.ended = time.time()
        yield 0

    def _find(self, fault: Fault, hit: Hit) -> Generator[float, None, psutil.Process | None]:
        """A process of the role, as soon as there is one."""
        deadline = self.elapsed_s + PATIENCE_S
        while self.elapsed_s < deadline:
            found = [process for process in below(self.folder) if ROLES[hit.role] in command_line(process)]
            if found:
                return found[hit.index % len(found)]
            yield LOOK_S
        self.log(f"{fault}: met no {hit.role}")
        return None


def below(folder: Path) -> list[psutil.Process]:
    """Every process of this machine whose working directory, cookie or command line lies below a folder;
    but for this one and what has started it."""
    here = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in here and any(str(folder) in place for place in _places(process))
    ]


def _places(process: psutil.Process) -> Iterator[str]:
    for ask in (process.cwd, lambda: process.environ().get(COOKIE, ""), lambda: command_line(process)):
        with suppress(psutil.Error, OSError):
            yield ask()


def command_line(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def run_of(process: psutil.Process) -> RunName | None:
    """The run that a process belongs to; None of the runner."""
    if ROLES["daemon"] in command_line(process):
        return "daemon", int(command_line(process).rpartition(".")[2])
    try:
        job = json.loads(Path(process.environ()[COOKIE], "job.json").read_text())
    except (psutil.Error, KeyError, OSError, ValueError):
        return None
    return Path(job["notebook"]).stem, job["parameters"].get("SEED", 0)
