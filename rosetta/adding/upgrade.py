"""What ``run_all.py upgrade`` does: try the newest releases of an environment's packages in a copy of the checkout, and take them
over if its rows still pass ``check`` there."""

import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.utils import canonicalize_name

from rosetta import catalog, files
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError
from rosetta.paths import ENVIRONMENTS, ROOT
from rosetta.run import environments
from rosetta.terminal import Console

ASKED, LOCK = "requirements.in", "requirements.txt"
GENERATED = ("runs", "site")  # folders of the checkout that a copy goes without, besides hidden ones
PIN = re.compile(r"^(?P<name>[\w.-]+)(?P<extras>\[[\w,.-]+\])?==(?P<version>[\w.]+)", re.MULTILINE)
Pins = dict[str, str]  # name -> exact version


def upgrade(names: list[str], options: list[str]) -> int:
    """Upgrade environments one after the other; all with a framework that still has releases when none is named.

    options: of ``check``. Exit code 1 if the newest releases of one break a row; its lock stays as it is.
    """
    known = catalog.load()
    chosen = [environments.load(name).name for name in names] or _living(known)
    return max(_upgrade(known, name, options, Console()) for name in dict.fromkeys(chosen))


def _living(known: Catalog) -> list[str]:
    frameworks = known.frameworks
    return sorted({row.environment for row in known.rows() if frameworks[row.framework].retired is None})


def _upgrade(known: Catalog, name: str, options: list[str], console: Console) -> int:
    rows = [row.full_name for row in known.rows() if row.environment == name and not row.facts.gpu_only]
    if not rows:
        raise RosettaError(f"environment {name} has no row that could be checked on a CPU")
    folder = ENVIRONMENTS / name
    old = pins(folder / ASKED)
    console.say(f"{name}: resolving and installing")
    with _trial(name, dict.fromkeys(old)) as trial:
        changed = {package: version for package, version in pins(trial / ASKED).items() if old[package] != version}
        if files.text(trial / LOCK) == files.text(folder / LOCK):
            console.say(f"{name}: nothing is newer")
            return 0
        for package, version in changed.items():
            console.say(f"  {package} {old[package]} -> {version}")
        console.say(f"  {'and ' if changed else ''}what these bring")
        broken = _broken(trial, rows, options, console)
        if broken is None:
            notes = [line for line in files.text(folder / LOCK).splitlines() if line.startswith("#")]
            for file in (ASKED, LOCK):
                shutil.copyfile(trial / file, folder / file)
            console.say(f"{name}: all rows pass, and the new lock is written: {', '.join(rows)}")
            for note in notes:  # written by hand: uv indents its own
                console.say(f"The earlier lock said, and what it is about is to be done again: {note}")
            if builds := environments.load(name).recipe.builds:
                asked = ", ".join(f"{build}.in" for build in builds)
                console.say(f"Its builds for GPUs keep their versions, in {asked}")
            console.say(f"Now run_all.py verify {shlex.join(rows)} --out results")
            return 0
    row, why = broken
    console.say(f"{name}: {row}: {why}", "red")
    console.say(
        f"{name}: {_culprit(name, changed, row, options, console)} breaks {row}; the lock stays as it is", "red"
    )
    return 1


def _culprit(name: str, changed: Pins, row: str, options: list[str], console: Console) -> str:
    """The package that breaks a row: each is tried alone, among the others as they are locked."""
    for package, version in changed.items():
        with suppress(RosettaError), _trial(name, {package: version}) as trial:  # which may not fit the others
            if _broken(trial, [row], options, console):
                return f"{package} {version}"
    return "a package that these bring, or several of them together,"


@contextmanager
def _trial(name: str, wanted: dict[str, str | None]) -> Iterator[Path]:
    """The environment's folder in a copy of the checkout, locked with these versions; None asks for the newest.

    Where every package is to be the newest, those that they bring are as well. Otherwise these stay while they fit.
    """

    def without(folder: str, entries: list[str]) -> list[str]:
        top = Path(folder) == ROOT
        return [entry for entry in entries if entry[0] == "." or entry == "__pycache__" or top and entry in GENERATED]

    with TemporaryDirectory(prefix="rosetta-upgrade-") as scratch:
        copy = Path(scratch) / "checkout"
        shutil.copytree(ROOT, copy, ignore=without)
        folder = copy / "environments" / name
        asked = folder / ASKED
        files.write_atomically(asked, _asking(files.text(asked), wanted))
        if None in wanted.values():
            files.write_atomically(folder / LOCK, "")
        done = _command(copy, "env", name, "--lock")
        if done.returncode:
            why = done.stderr.strip().removeprefix("run_all.py: ")
            raise RosettaError(f"{name} cannot be made of the newest releases: {why[-300:]}")
        yield folder


def _asking(text: str, wanted: dict[str, str | None]) -> str:
    """Requirements with other versions, and with none where the newest is wanted."""

    def other(found: re.Match) -> str:
        package = canonicalize_name(found["name"])
        version = wanted.get(package, found["version"])
        return found["name"] + (found["extras"] or "") + (f"=={version}" if version else "")

    return PIN.sub(other, text)


def pins(file: Path) -> Pins:
    """The packages that a file of requirements asks for by an exact version."""
    return {canonicalize_name(found["name"]): found["version"] for found in PIN.finditer(files.text(file))}


def _broken(folder: Path, rows: list[str], options: list[str], console: Console) -> tuple[str, str] | None:
    """The first row that does not pass ``check`` in a copy, and why."""
    for row in rows:
        console.say(f"  checking {row}", "dim")
        started = time.monotonic()
        done = _command(folder.parent.parent, "check", row, *options)
        if done.returncode:
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            return row, next((line for line in lines if "FAILED" in line), lines[-1] if lines else "check failed")
        console.say(f"  {row} passes  ({time.monotonic() - started:.0f} s)")
    return None


def _command(copy: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "run_all.py", *arguments], cwd=copy, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
