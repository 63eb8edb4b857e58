"""Provisions the environments that kernels run in, with uv, from the pins below ``environments/``.

One folder an environment: ``environment.toml`` (its Python, what it needs from the machine, its variables),
``requirements.in`` (the packages), ``requirements.txt`` (their hashed lock) and, once made, ``.venv``.
"""

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from filelock import FileLock, Timeout
from pydantic import Field

from rosetta import files
from rosetta.catalog import unknown
from rosetta.errors import RosettaError, Unavailable
from rosetta.files import Strict
from rosetta.paths import ENVIRONMENTS, portable
from rosetta.records import Gpu
from rosetta.run import installer, interpreters, machine
from rosetta.run.installer import Tell, quiet

OLDEST_PYTHON_OF_UV = (3, 8)  # uv downloads CPython from here on; older ones must be on the machine
GpuCode = Annotated[str, Field(pattern=r"^\d+\.\d+(\+PTX)?$")]


class Recipe(Strict):
    """``environment.toml``."""

    python: str
    disk_gb: float = 0.0  # 10^9 bytes, once made
    download_gb: float = 0.0  # 10^9 bytes, with an empty cache of packages
    needs: list[str] = []  # programs that must be on PATH
    brought: dict[str, str] = {}  # programs that a package brings where the machine has none: its requirement
    gpu_code: dict[str, list[GpuCode]] = {}  # by a module of the locked build: the capabilities that it has code for
    post_install: str | None = None  # run by the environment's interpreter after the packages
    install_flags: list[str] = []  # for ``uv pip install``
    variables: dict[str, str] = {}  # of the kernel; {folder} is the environment's folder
    variables_of_lock: dict[str, str] = {}  # only with the locked packages: other versions may refuse them
    variables_on: dict[str, dict[str, str]] = {}  # by the processor's vendor, as Linux names it
    variables_for: dict[str, dict[str, str]] = {}  # by a module that the notebook imports; {processors} is their number


@dataclass(frozen=True)
class Environment:
    name: str
    folder: Path
    recipe: Recipe

    @property
    def python(self) -> Path:
        scripts = "Scripts/python.exe" if os.name == "nt" else "bin/python"
        return self.folder / ".venv" / scripts

    @property
    def stamp(self) -> Path:
        """Written last, so an environment that was cut short while being made is made again."""
        return self.folder / ".venv" / "rosetta.json"

    def fingerprint(self) -> str:
        """SHA-256 over everything that decides what is in the environment."""
        files = [self.folder / name for name in ("environment.toml", "requirements.in", "requirements.txt")]
        if self._post_install:
            files.append(self._post_install)
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()

    @property
    def _post_install(self) -> Path | None:
        return self.folder / self.recipe.post_install if self.recipe.post_install else None

    def is_ready(self) -> bool:
        """Whether it is there, made from today's pins."""
        try:
            made_from = json.loads(self.stamp.read_text())["fingerprint"]
        except (OSError, ValueError, KeyError):
            return False
        has_programs = all((self.python.parent / program).exists() for program in self._to_bring())
        return made_from == self.fingerprint() and self.python.exists() and has_programs

    def _to_bring(self) -> dict[str, str]:
        """The programs that the machine lacks, and their packages."""
        return {name: package for name, package in self.recipe.brought.items() if shutil.which(name) is None}

    def obstacle(self) -> str | None:
        """Why it cannot be made on this machine, in one line; None where nothing stands in the way."""
        missing = [program for program in self.recipe.needs if shutil.which(program) is None]
        if os.name == "nt":  # a script cannot stand for a program there
            missing += self._to_bring()
        if missing:
            return f"environment {self.name} needs {' and '.join(missing)} on this machine: install with the system's package manager"
        version = self.recipe.python
        if interpreters.find(version) is None and tuple(map(int, version.split("."))) < OLDEST_PYTHON_OF_UV:
            return (
                f"environment {self.name} needs Python {version}, which uv does not offer: install it with pyenv or conda, "
                f"or name an interpreter with --python {self.name}=PATH"
            )
        return None

    def variables(self, imports: Iterable[str], locked: bool) -> dict[str, str]:
        """What the kernel's environment adds for a notebook with these imports; a variable that the user's shell sets already wins.

        locked: whether the kernel has the packages of the lock, and not whatever an interpreter of the user's holds.
        """
        found = self.recipe.variables | self.recipe.variables_on.get(machine.vendor(), {})
        for module in imports:
            found |= self.recipe.variables_for.get(module, {})
        found |= self.recipe.variables_of_lock if locked else {}
        processors = str(len(machine.processors()))
        added = {
            name: value.replace("{folder}", str(self.folder)).replace("{processors}", processors)
            for name, value in found.items()
            if name not in os.environ
        }
        if locked and self.recipe.brought:  # last, so that the machine's own programs come first
            added["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(self.python.parent)))
        return added

    def check_gpus(self, imports: Iterable[str], gpus: Iterable[Gpu]) -> None:
        """Raises Unavailable where a module of the locked build has no code for one of these GPUs."""
        for module in imports:
            package = module.partition(".")[0]
            codes = self.recipe.gpu_code.get(package)
            for gpu in gpus if codes else ():
                if gpu.capability and not any(_runs_on(code, gpu.capability) for code in codes):
                    raise Unavailable(
                        f"{package} of environment {self.name} has GPU code for compute capability {', '.join(codes)}, and "
                        f"{gpu.name} has {gpu.capability}: run it with --gpus none, or with another build: "
                        f"--python {self.name}=PATH"
                    )

    def provision(self, log: Path, tell: Tell = quiet) -> None:
        """Make the environment unless it is ready; the installers' output goes to the log, their progress to ``tell``.

        Raises Unavailable where the machine lacks something, RosettaError where an installation step fails.
        """
        if self.is_ready():
            return
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            tell(f"installing {self.name}: another run does it, waiting")
            lock.acquire()
        try:
            if self.is_ready():  # another run has made it meanwhile
                return
            obstacle = self.obstacle()
            if obstacle:
                raise Unavailable(obstacle)
            self._make(log, lambda state: tell(f"installing {self.name}: {state}"))
        finally:
            lock.release()

    def _make(self, log: Path, tell: Tell) -> None:
        from uv import find_uv_bin

        uv, python, venv = find_uv_bin(), str(self.python), str(self.folder / ".venv")
        base, brought = str(interpreters.find(self.recipe.python) or self.recipe.python), self._to_bring()
        install = [uv, "pip", "install", "--python", python, *self.recipe.install_flags]
        steps = {
            f"Python {self.recipe.python}": [uv, "venv", "--clear", "--python", base, venv],
            "choosing packages": [*install, "-r", "requirements.in", *brought.values(), "-c", "requirements.txt"],
        }
        if self._post_install:
            steps[f"running {self._post_install.name}"] = [python, str(self._post_install)]
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")
        for title, step in steps.items():
            tell(title)
            if installer.run(step, self.folder, log, tell):
                reason = _reason(log.read_text(encoding="utf-8", errors="replace"))
                raise RosettaError(f"environment {self.name} could not be made: {portable(reason)}")
        for program, package in brought.items():
            script = self.python.parent / program
            module = package.partition("==")[0]
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} -I -m {module} {program} "$@"\n')
            script.chmod(0o755)
        # Else the first run would compile what it imports, and every run where PYTHONDONTWRITEBYTECODE is set (containers).
        # It may fail: packages hold some files that are of another Python
        tell("compiling")
        installer.run([python, "-m", "compileall", "-q", "-j", "0", venv], self.folder, log)
        self.stamp.write_text(json.dumps({"fingerprint": self.fingerprint()}))


def _runs_on(code: str, capability: str) -> bool:
    """CUDA's rule: machine code runs on its capability and later ones of the same major number, PTX on all later ones."""
    number, _, ptx = code.partition("+")
    held, card = (tuple(map(int, text.split("."))) for text in (number, capability))
    return held <= card and (bool(ptx) or held[0] == card[0])


def _reason(log: str) -> str:
    """uv's error with its causes, or the last line of a script that failed, as one line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if line.startswith(("error", "×"))), len(lines) - 1)
    return " ".join(line.strip("×├─▶╰│ ") for line in lines[first:])[:400]


def load(name: str) -> Environment:
    """Read an environment's recipe."""
    if name not in names():
        raise unknown("environment", name, names())
    folder = ENVIRONMENTS / name
    return Environment(name, folder, files.load(Recipe, folder / "environment.toml"))


def names() -> list[str]:
    return sorted(path.parent.name for path in ENVIRONMENTS.glob("*/environment.toml"))
