"""Runs one step of installing an environment: its output goes to a log, its progress to the user, and nothing stays behind."""

import os
import re
import subprocess
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from rosetta import files
from rosetta.run.guard import guarded
from rosetta.run.processes import kill_tree

Tell = Callable[[str], None]  # takes one short line
LOOK_S = 0.1  # how often the log is read
# The runner's own environment must not leak into others
FOREIGN_VARIABLES = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "CONDA_PREFIX")


def quiet(_: str) -> None:
    """For callers that show no progress."""


def event(text: str) -> str:
    """What matters of a line of progress where lines stay: that something is installed, not how far that is."""
    return text.partition(": ")[0]


def events(tell: Tell) -> Tell:
    """A teller of lines that stay: each installation is one."""
    said = ""

    def told(text: str) -> None:
        nonlocal said
        if event(text) != said:
            said = event(text)
            tell(said)

    return told


def run(step: list[str], folder: Path, log: Path, tell: Tell = quiet, without: Collection[str] = ()) -> int:
    """Run a command in a folder, append its output to the log, and tell what uv says there of its progress.

    without: variables of the user's shell that must not reach it. Returns the exit code. However this ends, and also if
    the runner is killed, no process of the command is left.
    """
    output, left_out = UvOutput(), {*FOREIGN_VARIABLES, *without}
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    with log.open("a", encoding="utf-8") as file, log.open(encoding="utf-8", errors="replace") as written:
        file.write("$ " + " ".join(step) + "\n")
        file.flush()
        written.seek(0, os.SEEK_END)
        # Not through a pipe: a build that outlives uv would hold its other end open
        with guarded(step, folder, env, _cookie(folder), stdout=file, stderr=subprocess.STDOUT) as process:
            while process.returncode is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_S)
                for state in output.read(written.read()):
                    tell(state)
    return process.returncode


def reason(log: str) -> str:
    """uv's error with its causes, or the last line of a script that failed, as one line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if line.startswith(("error", "×"))), len(lines) - 1)
    return " ".join(line.strip("×├─▶╰│ ") for line in lines[first:])[:400]


def is_locked(asked: Path, lock: Path) -> bool:
    """Whether there is a lock, where packages are asked for."""
    return "==" in files.text(lock) or not any(
        line.partition("#")[0].strip() for line in files.text(asked).splitlines()
    )


def end_leftovers(folder: Path) -> None:
    """End what an earlier runner's installation in this folder may still be at; the caller holds the folder's lock."""
    kill_tree(None, _cookie(folder))


def _cookie(folder: Path) -> str:
    return f"install {folder}"


class UvOutput:
    """What uv prints without a terminal. It names each download above 1 MiB and each build when it begins and ends.

    Its wording may change with its version: a line that is not known changes nothing.
    """

    def __init__(self):
        self.sizes: dict[str, tuple[int, float]] = {}  # of downloads that go on: (unit, number)
        self.building: list[str] = []
        self.downloads = 0
        self._rest, self._state = "", ""

    def read(self, text: str) -> list[str]:
        """The states, each one short line, that the next part of the output leads to."""
        *lines, self._rest = (self._rest + text).split("\n")
        states = []
        for line in lines:
            state = self._after(line.strip())
            if state and state != self._state:
                self._state = state
                states.append(state)
        return states

    def _after(self, line: str) -> str:
        if download := re.match(r"Downloading (\S+) .*?\(?([\d.]+) ?([KMG])iB\)", line):
            name, number, unit = download.groups()
            self.sizes[name] = "KMG".index(unit), float(number)
            self.downloads += 1
        elif match := re.match(r"(Downloaded|Building|Built) ([^\s=]+)", line):
            what, name = match.groups()
            if what == "Downloaded":
                self.sizes.pop(name, None)
            elif what == "Building":
                self.building.append(name)
            elif name in self.building:
                self.building.remove(name)
        elif match := re.match(r"(Resolved|Prepared|Installed) (\d+) packages?", line):
            what, number = match.groups()
            return f"{what.lower()} {number} package{'s' * (number != '1')}"
        return "; ".join(filter(None, (self._downloading(), self.building and f"building {self.building[-1]}")))

    def _downloading(self) -> str:
        if not self.sizes:
            return ""
        largest = max(self.sizes, key=self.sizes.__getitem__)
        unit, number = self.sizes[largest]
        done = self.downloads - len(self.sizes)
        size = f"{number:.{unit // 2}f} {'KMG'[unit]}iB"  # tenths of a GiB
        return f"downloading {largest} ({size}), {done} of {self.downloads} downloads done"
