"""A soak of the runner: a batch of many small runs under random faults, resumed whenever its runner has ended.

``python -m tests.soak --seed 1 --minutes 60``. The same seed gives the same faults at the same times. In the end every row
has one valid record with each seed, and nothing is left of the runs. Linux alone; needs gcc and unshare.
"""

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.soak_end import ON_PURPOSE, PERIOD, end_state, is_complete, open_sockets, unexplained
from tests.soak_faults import LOOK_S, SLEEP, Injector, RunName, below, schedule
from tests.standin import DATA, RECORD, SETUP, TRAIN, TRAINING, StandIn

DISK = "192m"  # where results and temporary files lie
LIMIT_S = 60  # of a run: it ends those that were stopped for ever
GROWTH = 50 * 10**6  # bytes by which a runner's memory may grow from its second run on
SEEDS_A_MINUTE = 0.3  # of the soak: a batch that ends before is followed by another
WAIT_S = 120  # for a runner that has been told to end
LEFT_S = 10  # for processes of a runner that has ended
DAEMON = f"import subprocess; subprocess.run(['setsid', '-f', 'env', '-i', 'sleep', f'{SLEEP}.{{SEED}}'])\n"
ODD = "".join(
    f"{'el' * bool(rest)}if SEED % {PERIOD} == {rest}:\n    {TRAINING[name]}\n"
    for rest, (name, _) in ON_PURPOSE.items()
)
TRAIN_CELLS = {
    "good": TRAIN,
    "tiny": TRAIN,  # in an environment that is made, deleted and made again
    "daemon": DAEMON + TRAIN,
    "odd": ODD + "else:\n" + "".join(f"    {line}\n" for line in TRAIN.strip().splitlines()),
}
LINK = """
import sysconfig
from pathlib import Path
Path(sysconfig.get_path("purelib"), "packages.pth").write_text({packages!r})
"""
# A plain line of a run that has ended
ENDED = re.compile(r"^\[\d+/\d+\] .*: (ok|failed|crashed|timeout|diverged|skipped)  ", re.MULTILINE)


def checkout(folder: Path) -> StandIn:
    """The stand-in with the rows of the soak."""
    standin = StandIn(folder)
    for name, train in TRAIN_CELLS.items():
        parameters = "EPOCHS, N_TRAIN, N_TEST, SECONDS, SEED = 2, 640, 100, 0.5, 0"
        code = [("parameters", parameters), ("setup", SETUP), ("data", DATA), ("train", train), ("record", RECORD)]
        standin.notebook(name, code)
    # Its packages are those of the tests' interpreter, so that it is made again in a second
    tiny = standin.environment("tiny", "{}.{}".format(*sys.version_info), "", post_install="link.py")
    (tiny / "link.py").write_text(LINK.format(packages=sysconfig.get_path("purelib")))
    standin.catalog("".join(standin.entry(name, "tiny" if name == "tiny" else "test") for name in TRAIN_CELLS))
    return standin


@dataclass
class Runner:
    """A runner at work, and its memory in bytes after its second run and now."""

    process: subprocess.Popen
    output: Path
    began: float
    runs: int = 0
    first: int | None = None
    last: int = 0

    @property
    def growth(self) -> int:
        return self.last - self.first if self.first else 0

    def look(self) -> None:
        self.runs = len(ENDED.findall(self.output.read_text(errors="replace")))
        try:
            now = psutil.Process(self.process.pid).memory_info().rss
        except psutil.NoSuchProcess:
            return
        self.last = now or self.last
        if self.runs >= 2 and now:
            self.first = self.first or now


class Soak:
    def __init__(self, seed: int, minutes: float, folder: Path, disk: Path):
        self.folder, self.disk, self.temp = folder, disk, disk / "tmp"
        self.temp.mkdir()
        self.standin = checkout(folder / "checkout")
        self.seconds, self.seeds = 60 * minutes, max(2, round(SEEDS_A_MINUTE * minutes))
        self.log_file = folder / "soak.log"
        venv = self.standin.root / "environments" / "tiny" / ".venv"
        self.injector = Injector(schedule(seed, self.seconds), folder, disk, venv, self.log)
        shim = folder / "clock_shift.so"
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-O1", "-o", shim, Path(__file__).with_name("clock_shift.c")], check=True
        )
        shifted = {"LD_PRELOAD": str(shim), "CLOCK_SHIFT": str(self.injector.clock)}
        self.variables = self.standin.variables(TMPDIR=str(self.temp), UV_OFFLINE="1", **shifted)
        self.outs, self.runners = [disk / "out-1"], []
        self.exits: Counter[str] = Counter()
        self.unexplained: list[str] = []
        self.sockets = 0  # most that were seen at once

    @property
    def runs(self) -> list[RunName]:
        return [(row, seed) for row in TRAIN_CELLS for seed in range(self.seeds)]

    def log(self, text: str) -> None:
        with self.log_file.open("a") as file:
            file.write(f"{time.strftime('%H:%M:%S')} {self.injector.elapsed_s if self.runners else 0:8.2f}  {text}\n")

    def run(self) -> None:
        """Faults until the time is over, then a last runner without any."""
        while self.injector.elapsed_s < self.seconds:
            runner = self.start()
            while runner.process.poll() is None and self.injector.elapsed_s < self.seconds:
                self.injector.inject()
                self.look(runner)
            if runner.process.poll() is not None:
                self.ended(runner)
                if runner.process.returncode == 2:
                    self.pause()
        self.injector.end()
        if runner.process.poll() is None:
            runner.process.terminate()
            runner.process.wait(WAIT_S)
            self.ended(runner)
        last = self.start()
        while last.process.poll() is None:
            self.look(last)
        self.ended(last)

    def pause(self) -> None:
        """Faults go on while no runner can begin, on a full disk."""
        until = self.injector.elapsed_s + 1
        while self.injector.elapsed_s < until:
            self.injector.inject()
            time.sleep(LOOK_S)

    def start(self) -> Runner:
        out, number = self.outs[-1], len(self.runners) + 1
        begun = any(out.glob(".batches/*/order.json"))
        run = ["run", "--preset", "smoke", "--synthetic", "--seeds", self.seeds, "--jobs", 2, "--timeout", LIMIT_S]
        command = ["resume"] if begun else [*run, f"--python=test={sys.executable}"]
        command = self.standin.command(*map(str, command), "--out", str(out), own_python=False)
        output = self.folder / f"runner-{number}.log"
        with output.open("wb") as file:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(command, cwd=self.standin.root, env=self.variables, **pipes)
        self.runners.append(Runner(process, output, time.time()))
        self.log(f"runner {number}, process {process.pid}: {'resume' if begun else 'run'} {out.name}")
        return self.runners[-1]

    def look(self, runner: Runner) -> None:
        """Takes a moment."""
        time.sleep(LOOK_S)
        runner.look()
        self.sockets = max(self.sockets, len(open_sockets(self.folder)))

    def ended(self, runner: Runner) -> None:
        runner.look()
        code = runner.process.returncode
        self.exits[str(code)] += 1
        lines = runner.output.read_text(errors="replace").splitlines() or [""]
        self.log(f"runner ended with {code} after {runner.runs} runs: {lines[-1][:150]}")
        deadline = time.monotonic() + LEFT_S
        while (left := below(self.folder)) and time.monotonic() < deadline:
            self.injector.inject()
            time.sleep(LOOK_S)
        for process in left:
            self.log(f"still there: {process}")
        for line in unexplained(self.outs[-1], runner.began, self.injector.met):
            self.unexplained.append(line)
            self.log(f"nothing explains {line}")
        if code in (0, 1) and is_complete(self.outs[-1], self.runs):
            self.log(f"{self.outs[-1].name} is complete")
            if self.injector.elapsed_s < self.seconds:
                self.outs.append(self.disk / f"out-{len(self.outs) + 1}")

    def table(self) -> list[tuple[str, str, bool]]:
        """What is looked at in the end, what was found, and whether it is as it must be."""
        longest = max(self.runners, key=lambda runner: runner.runs)
        traces = sum("Traceback (most recent call last)" in r.output.read_text(errors="replace") for r in self.runners)
        return [
            *end_state(self.folder, self.temp, self.standin.root, self.outs, self.runs),
            ("runs that failed though no fault met them", str(len(self.unexplained)), not self.unexplained),
            ("runners that showed a traceback", str(traces), not traces),
            (
                f"memory of the runner that lived longest, over its {longest.runs} runs",
                f"{longest.first / 1e6 if longest.first else 0:.1f} MB {longest.growth / 1e6:+.1f} MB",
                longest.first is not None and longest.growth < GROWTH,
            ),
            ("sockets seen at once while it went on", str(self.sockets), self.sockets > 0),
        ]


def soak(seed: int, minutes: float, folder: Path, disk: Path) -> int:
    """The exit code: 0 if all is as it must be."""
    one = Soak(seed, minutes, folder, disk)
    try:
        one.run()
        table = one.table()
    except Exception as error:  # also of a record that is not valid
        traceback.print_exc()
        table = [("the soak could not go on", repr(error), False)]
    finally:
        for process in below(folder):
            with suppress(psutil.NoSuchProcess):
                process.kill()
    runs = sum(runner.runs for runner in one.runners)
    print(f"seed {seed}, {minutes:g} minutes, {runs} runs, {len(one.outs)} batches of {len(one.runs)}, ", end="")
    print(f"{len(one.runners)} runners, which ended with {dict(one.exits)}")
    for title, counts in one.injector.counts().items():
        print(f"{title}: " + ", ".join(f"{name} {number}" for name, number in sorted(counts.items())))
    for what, seen, good in table:
        print(f"{'ok ' if good else 'BAD'}  {what}: {seen}")
    if all(good for *_, good in table):
        return 0
    print(f"the last faults of seed {seed}; all are in {one.log_file}:")
    print("\n".join(f"  {met.fault.at_s:.2f} s  {met.fault}" for met in one.injector.met[-10:]))
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--folder", type=Path, help="for checkout and logs; a new temporary one when not given")
    parser.add_argument("--disk", type=Path, help="a small file system for results; one is mounted when not given")
    given = parser.parse_args()
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="soak-"))).resolve()
    if given.disk:
        return soak(given.seed, given.minutes, folder, given.disk)
    disk = folder / "disk"
    disk.mkdir(parents=True)
    again = [sys.executable, "-m", "tests.soak", f"--seed={given.seed}", f"--minutes={given.minutes}"]
    mount = f'mount -t tmpfs -o size={DISK} tmpfs "$0" && exec "$@"'
    command = ["unshare", "-rm", "bash", "-c", mount, str(disk), *again, f"--folder={folder}", f"--disk={disk}"]
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
