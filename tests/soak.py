"""A soak of the runner: batches of small runs under random faults, resumed whenever their runner has ended.

``python -m tests.soak --seed 1 --minutes 60``. Then every row must have one valid record with each seed, and nothing may be left
of the runs. Linux alone; needs unshare, for a small file system of its own.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from signal import Signals

import psutil

from rosetta import lock, records
from rosetta.errors import RosettaError
from rosetta.run.processes import COOKIE
from tests.standin import DATA, RECORD, SETUP, TRAIN, TRAINING, StandIn

DISK = "192m"  # where results and temporary files lie
EVERY_S = 10.0  # a fault, on average
LIMIT_S = 60  # of a run: it ends those that were stopped for ever
WAIT_S = 120  # for a runner that has been told to end
LEFT_S = 10  # for processes of a runner that has ended
SEEDS = 6  # a batch has each row with so many; another follows while there is time
SLEEP = "98760"  # seconds of a daemon: no other process sleeps as long
SIGNALS = ("SIGTERM", "SIGINT", "SIGKILL", "SIGSEGV", "SIGHUP")
KINDS = {"signal": 50, "two signals": 20, "stop": 20, "disk": 10}
# What the command line of a process of a run holds, by its role; and how often a fault is for that role
ROLES = {
    "runner": ("run_all.py", 3),
    "child": ("rosetta.run.child", 4),
    "kernel": ("ipykernel_launcher", 4),
    "daemon": (f"sleep {SLEEP}", 2),
}
# What the row ``odd`` does instead of its training, by its seed: a cell of the stand-in, and its status
ON_PURPOSE = {0: ("raises", "failed"), 1: ("segfault", "crashed"), 2: ("exits", "crashed"), 3: ("diverges", "diverged")}
ODD = "".join(f"if SEED == {seed}:\n    {TRAINING[name]}\n" for seed, (name, _) in ON_PURPOSE.items())
DAEMON = f"import subprocess; subprocess.run(['setsid', '-f', 'env', '-i', 'sleep', '{SLEEP}'])\n"
CELLS = {"good": TRAIN, "daemon": DAEMON + TRAIN, "odd": f"{ODD}if SEED > 3:\n" + TRAIN.replace("\n", "\n    ")}

Run = tuple[str, int]  # framework and seed
RUNS: dict[Run, str] = {  # and the status that it must end with
    (row, seed): ON_PURPOSE[seed][1] if row == "odd" and seed in ON_PURPOSE else "ok"
    for row in CELLS
    for seed in range(SEEDS)
}


def below(folder: Path) -> Iterator[psutil.Process]:
    """Every process of this machine whose working directory, cookie or command line lies below a folder; but for this one and what
    has started it."""
    here = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
    for process in psutil.process_iter():
        places = []
        for ask in (process.cwd, lambda one=process: one.environ().get(COOKIE, ""), lambda one=process: command(one)):
            with suppress(psutil.Error, OSError):
                places.append(ask())
        if process.pid not in here and any(str(folder) in place for place in places):
            yield process


def command(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


class Faults:
    """Injects random faults into what runs below a folder. ``count``: how many of each kind and signal, and for each role."""

    def __init__(self, seed: int, folder: Path, disk: Path):
        self.chance, self.folder, self.ballast = random.Random(seed), folder, disk / "ballast"
        self.count, self._due = Counter[str](), time.monotonic()
        self._lasting: list[tuple[float, Callable[[], None]]] = []  # until when, and what undoes it

    def inject(self) -> None:
        """Undo what has lasted long enough, and inject one fault, if it is due."""
        now = time.monotonic()
        self.end(now)
        if now < self._due:
            return
        self._due = now + self.chance.expovariate(1 / EVERY_S)
        kind, lasts_s = self.chance.choices([*KINDS], [*KINDS.values()])[0], self.chance.uniform(1, 10)
        self.count[kind] += 1
        if kind == "disk":
            with suppress(OSError), self.ballast.open("wb", buffering=0) as file:
                while file.write(bytes(2**16)):
                    pass
            self._lasting.append((now + lasts_s, lambda: self.ballast.unlink(missing_ok=True)))
        elif kind == "stop":
            role, process = self._process()
            if process:
                process.suspend()
                if role == "runner" or self.chance.random() < 0.6:  # else for ever: the limit must end the run
                    self._lasting.append((now + lasts_s, process.resume))
        else:
            first = self._signal()
            if kind == "two signals":  # but not to runner and child: the next batch alone would end what these leave
                time.sleep(lasts_s / 100)
                self._signal(but={"runner": "child", "child": "runner"}.get(first))

    def end(self, now: float = inf) -> None:
        """Undo what lasts, as far as its time is over by now."""
        for until, undo in self._lasting[:]:
            if until <= now:
                self._lasting.remove((until, undo))
                with suppress(psutil.NoSuchProcess):
                    undo()

    def _signal(self, but: str | None = None) -> str:
        """Send one to a process of a role that is not ``but``; returns the role."""
        role, process = self._process(but)
        name = self.chance.choice(SIGNALS)
        with suppress(psutil.NoSuchProcess):
            if process:
                process.send_signal(Signals[name])
                self.count[name] += 1
        return role

    def _process(self, but: str | None = None) -> tuple[str, psutil.Process | None]:
        """A process of a role, None if there is none just now."""
        roles = {role: often for role, (_, often) in ROLES.items() if role != but}
        role = self.chance.choices([*roles], [*roles.values()])[0]
        of_role = [process for process in below(self.folder) if ROLES[role][0] in command(process)]
        self.count[role] += bool(of_role)
        return role, self.chance.choice(of_role) if of_role else None


def soak(seed: int, minutes: float, folder: Path, disk: Path) -> list[str]:
    """Returns what is not as it must be."""
    (disk / "tmp").mkdir()
    standin = StandIn(folder / "checkout")
    for name, train in CELLS.items():
        parameters = "EPOCHS, N_TRAIN, N_TEST, SECONDS, SEED = 2, 640, 100, 0.5, 0"
        code = {"parameters": parameters, "setup": SETUP, "data": DATA, "train": train, "record": RECORD}
        standin.notebook(name, [*code.items()])
    standin.catalog("".join(standin.entry(name) for name in CELLS))
    faults, end, outs, ended = Faults(seed, folder, disk), time.monotonic() + 60 * minutes, [disk / "out-1"], Counter()
    tracebacks, last = 0, False
    while not last:
        last, out = time.monotonic() >= end, outs[-1]  # the last runner meets no fault
        if any(out.glob(".batches/*/order.json")):
            arguments = ["resume"]
        else:
            arguments = ["run", "--preset", "smoke", "--synthetic", "--seeds", str(SEEDS), "--jobs", "2"]
            arguments += ["--timeout", str(LIMIT_S), f"--python=all={sys.executable}"]
        with (folder / "runner.log").open("w+b") as log:
            started = standin.command(*arguments, "--out", str(out), own_python=False)
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            env = standin.variables(TMPDIR=str(disk / "tmp"))
            runner = subprocess.Popen(started, cwd=standin.root, env=env, **pipes)
            while runner.poll() is None and (last or time.monotonic() < end):
                if not last:
                    faults.inject()
                time.sleep(0.1)
            if time.monotonic() >= end:
                faults.end()
            if runner.poll() is None:
                runner.terminate()
            runner.wait(WAIT_S)
            log.seek(0)
            tracebacks += b"Traceback (most recent call last)" in log.read()
        ended[str(runner.returncode)] += 1
        deadline = time.monotonic() + LEFT_S
        while any(below(folder)) and time.monotonic() < deadline:
            time.sleep(0.1)
        if runner.returncode in (0, 1) and not wrong_records(out) and not last:
            outs.append(disk / f"out-{len(outs) + 1}")
    print(f"seed {seed}, {minutes:g} minutes, {len(outs)} batches of {len(RUNS)}; runners ended with {dict(ended)}")
    print(", ".join(f"{name} {number}" for name, number in sorted(faults.count.items())))
    wrong = [line for out in outs for line in wrong_records(out)]
    return wrong + left(folder, disk / "tmp", standin.root, outs) + ["a runner showed a traceback"] * bool(tracebacks)


def wrong_records(out: Path) -> list[str]:
    """The runs of a batch without exactly one valid record that ended as it should, with a reason where it failed."""
    try:
        found = [record for _, record in records.read_all(out)]
    except RosettaError as error:
        return [str(error)]
    ends = Counter(
        (record.framework, record.seed or 0, record.status) for record in found if record.error or record.status == "ok"
    )
    wanted = Counter((*run, status) for run, status in RUNS.items())
    return [f"{out.name}: {one}" for one in [*(wanted - ends), *(ends - wanted)]]


def left(folder: Path, temp: Path, root: Path, outs: list[Path]) -> list[str]:
    """What is still there of runs and runners below a folder."""
    found = [f"process {process}" for process in below(folder)]
    sockets = (line.rpartition(" ")[2] for line in Path("/proc/net/unix").read_text().splitlines())
    found += [f"socket {path}" for path in sockets if str(folder) in path]
    found += [f"lock held: {file}" for out in outs for file in out.glob(".batches/*/lock") if lock.is_held(file)]
    found += [f"lock: {file}" for place in (root, *outs) if (file := place / lock.LOCK).exists()]
    patterns = (".batches/*/rosetta-*", "**/*.tmp")
    files = [*temp.iterdir(), *(file for out in outs for pattern in patterns for file in out.glob(pattern))]
    for out in outs:
        named = set()
        for file, record in records.read_all(out):
            named |= {file, *(file.with_name(name) for name in (record.notebook.executed, record.notebook.log) if name)}
        files += [file for file in out.glob("[!.]*/*/*/*") if file not in named]
    return found + [f"file {file}" for file in files]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--folder", type=Path, help="for checkout and logs; a new temporary one when not given")
    parser.add_argument("--disk", type=Path, help="a small file system for results; one is mounted when not given")
    asked = parser.parse_args()
    folder = (asked.folder or Path(tempfile.mkdtemp(prefix="soak-"))).resolve()
    if asked.disk:
        try:
            wrong = soak(asked.seed, asked.minutes, folder, asked.disk)
        finally:
            for process in below(folder):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        print("\n".join(f"BAD  {line}" for line in wrong) or "all is as it must be")
        return bool(wrong)
    disk = folder / "disk"
    disk.mkdir(parents=True)
    again = [sys.executable, "-m", "tests.soak", f"--seed={asked.seed}", f"--minutes={asked.minutes}"]
    mount = f'mount -t tmpfs -o size={DISK} tmpfs "$0" && exec "$@"'
    start = ["unshare", "-rm", "bash", "-c", mount, str(disk), *again, f"--folder={folder}", f"--disk={disk}"]
    os.execvp(start[0], start)


if __name__ == "__main__":
    sys.exit(main())
