"""Provisions the environments that kernels run in, with uv, from the pins below ``environments/``.

One folder an environment: ``environment.toml`` (its Python, what it needs from the machine, its variables), ``requirements.in``
(the packages), ``requirements.txt`` (their hashed lock) and, once made, ``.venv``. A build for GPUs has a pair of files
and a ``.venv-`` of its own name.
"""

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from rosetta import files
from rosetta.catalog import unknown
from rosetta.errors import RosettaError, Unavailable
from rosetta.files import Strict
from rosetta.paths import ENVIRONMENTS, portable
from rosetta.records import Gpu
from rosetta.run import builds, installer, interpreters, inventory, machine
from rosetta.run.builds import Build, PythonVersion
from rosetta.run.installer import Tell, quiet

# A gigabyte of packages, roughly: to download it at 200 Mbit/s, and to unpack and compile it on two cores
DOWNLOAD_S, UNPACK_S = 40.0, 20.0
OLDEST_PYTHON_OF_UV = (3, 8)  # uv downloads CPython from here on; older ones must be on the machine
ALWAYS = {
    "NVIDIA_TF32_OVERRIDE": "0"
}  # in every kernel: FP32 is FP32, also in libraries that have no switch of their own
LIBRARY_PATH = "LD_LIBRARY_PATH"
CLEAR = ("--clear", "--force")  # also what is no environment yet: its making was cut short
CPU_ONLY = ("UV_TORCH_BACKEND",)  # variables of the shell that ask uv for a build for the CPU
NOT_CONTENT = {
    "disk_gb",
    "download_gb",
    "builds",
    "without_gpu",
    "lock_flags",
}  # of a recipe: fields that change no environment


class Recipe(Strict):
    """``environment.toml``."""

    python: PythonVersion
    disk_gb: float = 0.0  # 10^9 bytes, once made
    download_gb: float = 0.0  # 10^9 bytes, with an empty cache of packages
    needs: list[str] = []  # programs that must be on PATH
    brought: dict[str, str] = {}  # programs that a package brings where the machine has none: its requirement
    builds: dict[str, Build] = {}  # for GPUs, by name, the newest first
    without_gpu: dict[str, str] = {}  # by a module that no build computes with on a GPU: why, or what does
    post_install: str | None = None  # run by the environment's interpreter after the packages
    install_flags: list[str] = []  # for ``uv pip install``; {lock} is the lock's file
    lock_flags: list[str] = []  # for ``uv pip compile``, in place of the usual ones; {python} is its interpreter
    variables: dict[str, str] = {}  # of the kernel; {folder} is the environment's folder
    variables_of_lock: dict[str, str] = {}  # only with the locked packages: other versions may refuse them
    variables_on: dict[str, dict[str, str]] = {}  # by the processor's vendor, as Linux names it
    variables_for: dict[str, dict[str, str]] = {}  # by a module that the notebook imports; {processors} is their number
    variables_on_gpu: dict[str, dict[str, str]] = {}  # by a module, where the run has a GPU


@dataclass(frozen=True)
class Environment:
    name: str
    folder: Path
    recipe: Recipe
    build: str | None = None  # None: that for the CPU

    @property
    def title(self) -> str:
        return f"{self.name} ({self.build})" if self.build else self.name

    @property
    def _asked(self) -> str:
        """How the command line asks for it."""
        return f"{self.name} --build {self.name}={self.build}" if self.build else self.name

    @property
    def gpu_build(self) -> Build | None:
        return self.recipe.builds[self.build] if self.build else None

    @property
    def holds(self) -> Recipe | Build:
        """What says of its packages what they take, and what is run after them."""
        return self.gpu_build or self.recipe

    @property
    def install_s(self) -> float:
        """Seconds that it should take to make it, on a fast network; 0 where it is ready."""
        return 0.0 if self.is_ready() else DOWNLOAD_S * self.holds.download_gb + UNPACK_S * self.holds.disk_gb

    @property
    def python_version(self) -> str:
        return self.gpu_build and self.gpu_build.python or self.recipe.python

    @property
    def venv(self) -> Path:
        return self.folder / (f".venv-{self.build}" if self.build else ".venv")

    @property
    def python(self) -> Path:
        scripts = "Scripts/python.exe" if os.name == "nt" else "bin/python"
        return self.venv / scripts

    @property
    def stamp(self) -> Path:
        """Written last, so an environment that was cut short while being made is made again."""
        return self.venv / "rosetta.json"

    @property
    def requirements(self) -> tuple[Path, Path]:
        """The packages asked for, and their lock."""
        stem = self.build or "requirements"
        return self.folder / f"{stem}.in", self.folder / f"{stem}.txt"

    def fingerprint(self) -> str:
        """SHA-256 over everything that decides what is in the environment and what its kernels are given."""
        recipe = self.recipe.model_dump(exclude=NOT_CONTENT)
        build = self.gpu_build and self.gpu_build.model_dump(include={"python", "libraries", "variables"})
        digest = hashlib.sha256(json.dumps([recipe, build, ALWAYS], sort_keys=True).encode())
        for file in self.sources:
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()

    def for_gpus(self, imports: Sequence[str], gpus: Sequence[Gpu]) -> "Environment":
        """Its build that computes on these GPUs for a notebook with these imports; raises Unavailable where there is none."""
        recipe = self.recipe
        return replace(self, build=builds.choose(recipe.builds, recipe.without_gpu, imports, gpus))

    @property
    def sources(self) -> list[Path]:
        """The files beside the recipe that it is made from."""
        return [file for file in (*self.requirements, self._post_install) if file]

    @property
    def _post_install(self) -> Path | None:
        script = self.holds.post_install
        return self.folder / script if script else None

    def is_ready(self) -> bool:
        """Whether it is there, made from today's pins."""
        try:
            made_from = json.loads(self.stamp.read_text())["fingerprint"]
        except (OSError, ValueError, KeyError):
            return False
        has_programs = all((self.python.parent / program).exists() for program in self._to_bring())
        return made_from == self.fingerprint() and self.python.exists() and has_programs

    def _to_bring(self) -> dict[str, str]:
        """The programs that the machine lacks, and their packages; they are for computing on a CPU."""
        brought = {} if self.build else self.recipe.brought
        return {name: package for name, package in brought.items() if shutil.which(name) is None}

    def obstacle(self) -> str | None:
        """Why it cannot be made on this machine, in one line; None where nothing stands in the way."""
        if not installer.is_locked(*self.requirements):
            return f"environment {self.title} has packages that are not locked: run_all.py env {self._asked} --lock"
        missing = [program for program in self.recipe.needs if shutil.which(program) is None]
        if os.name == "nt":  # a script cannot stand for a program there
            missing += self._to_bring()
        if missing:
            return f"environment {self.name} needs {' and '.join(missing)} on this machine: install with the system's package manager"
        if os.pathsep in str(self.folder) and (self.recipe.brought or self.gpu_build and self.gpu_build.libraries):
            return f"environment {self.title} cannot work in a path with {os.pathsep!r}: move this checkout"
        version = self.python_version
        if interpreters.find(version) is None and tuple(map(int, version.split("."))) < OLDEST_PYTHON_OF_UV:
            return (
                f"environment {self.name} needs Python {version}, which uv does not offer: install it with pyenv or conda, "
                f"or name an interpreter with --python {self.name}=PATH"
            )
        return None

    def state(self) -> str:
        """One word, or why it cannot be made here."""
        return "ready" if self.is_ready() else self.obstacle() or "can be made"

    def variables(self, imports: Iterable[str], locked: bool, on_gpu: bool = False) -> dict[str, str]:
        """What the kernel's environment adds for a notebook with these imports; a variable that the user's shell sets already wins.

        locked: whether the kernel has the packages of the lock, and not whatever an interpreter of the user's holds.
        """
        found = ALWAYS | self.recipe.variables | self.recipe.variables_on.get(machine.vendor(), {})
        for module in imports:
            found |= self.recipe.variables_for.get(module, {})
            found |= self.recipe.variables_on_gpu.get(module, {}) if on_gpu else {}
        if locked:
            found |= self.recipe.variables_of_lock
            found |= self.gpu_build.variables if self.gpu_build else {}
        places = {"{folder}": self.folder, "{venv}": self.venv, "{processors}": len(machine.processors())}
        added = {}
        for name, value in found.items():
            if name not in os.environ:
                for place, text in places.items():
                    value = value.replace(place, str(text))
                added[name] = value
        if locked and self.gpu_build and self.gpu_build.libraries:  # first, or those of another CUDA would be found
            packages = self.venv / "lib" / f"python{self.python_version}" / "site-packages" / "nvidia"
            folders = [str(packages / name / "lib") for name in self.gpu_build.libraries]
            added[LIBRARY_PATH] = os.pathsep.join([*folders, *filter(None, [os.environ.get(LIBRARY_PATH)])])
        if locked and self.recipe.brought:  # last, so that the machine's own programs come first
            added["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(self.python.parent)))
        return added

    def check_files(self) -> None:
        """Raises RosettaError, which says what to do, where files that were installed are gone or cut short."""
        lost = inventory.damaged(self.venv)
        if lost:
            raise RosettaError(
                f"environment {self.title} has lost {lost[0]}{f' and {len(lost) - 1} more files' * (len(lost) > 1)} since it was "
                f"made: run_all.py env {self._asked} --again makes it anew"
            )

    def provision(self, log: Path, tell: Tell = quiet, again: bool = False) -> None:
        """Make the environment unless it is ready; the installers' output goes to the log, their progress to ``tell``.

        again: also if it is ready. Raises Unavailable where the machine lacks something, RosettaError where a step fails.
        """
        if self.is_ready() and not again:
            return
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            tell(f"installing {self.title}: another run does it, waiting")
            lock.acquire()
        except OSError as error:
            why = f"cannot write {portable(str(self.folder))}: {error.strerror}"
            raise RosettaError(
                f"environment {self.title} could not be made: {why}; --python {self.name}=PATH names an interpreter"
            ) from None
        try:
            if self.is_ready() and not again:  # another run has made it meanwhile
                return
            obstacle = self.obstacle()
            if obstacle:
                raise Unavailable(obstacle)
            self._make(log, lambda state: tell(f"installing {self.title}: {state}"), again)
        finally:
            lock.release()

    def _make(self, log: Path, tell: Tell, again: bool) -> None:
        """In its place, because scripts in it hold its path; what counts is the stamp, the first to go and the last to come."""
        from uv import find_uv_bin

        uv, python, venv = find_uv_bin(), str(self.python), str(self.venv)
        version, brought = self.python_version, self._to_bring()
        asked, lock = (file.name for file in self.requirements)
        flags = [flag.replace("{lock}", lock) for flag in self.recipe.install_flags]
        # A file that was emptied may be emptied in uv's cache as well: it links the two
        install = [uv, "pip", "install", "--python", python, *flags, *["--refresh"] * again]
        steps = {
            f"Python {version}": [uv, "venv", *CLEAR, "--python", str(interpreters.find(version) or version), venv],
            "choosing packages": [*install, "-r", asked, *brought.values(), "-c", lock],
        }
        if self._post_install:
            steps[f"running {self._post_install.name}"] = [python, str(self._post_install)]
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")
        installer.end_leftovers(self.folder)
        self.stamp.unlink(missing_ok=True)
        for title, step in steps.items():
            tell(title)
            if installer.run(step, self.folder, log, tell, without=CPU_ONLY if self.build else ()):
                why = portable(installer.reason(log.read_text(encoding="utf-8", errors="replace")))
                if step[1] == "venv" and interpreters.find(version) is None:
                    raise Unavailable(
                        f"environment {self.title} needs Python {version}, which is not on this machine, and uv could not download it: "
                        f"install it with pyenv or conda ({why})"
                    )
                raise RosettaError(f"environment {self.title} could not be made: {why}")
        for program, package in brought.items():
            script = self.python.parent / program
            module = package.partition("==")[0]
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} -I -m {module} {program} "$@"\n')
            script.chmod(0o755)
        # Else the first run would compile what it imports, and every run where PYTHONDONTWRITEBYTECODE is set (containers).
        # It may fail: packages hold some files that are of another Python
        tell("compiling")
        installer.run([python, "-m", "compileall", "-q", "-j", "0", venv], self.folder, log)
        inventory.write(self.venv)
        self.stamp.write_text(json.dumps({"fingerprint": self.fingerprint()}))


def load(name: str, build: str | None = None) -> Environment:
    """Read an environment's recipe. build: a build for GPUs; that for the CPU when not given, or when it is ``builds.CPU``.

    Raises RosettaError, which names the file that is missing or not valid.
    """
    if name not in names():
        raise unknown("environment", name, names())
    folder = ENVIRONMENTS / name
    recipe = files.load(Recipe, folder / "environment.toml")
    if build not in (None, builds.CPU, *recipe.builds):
        raise unknown(f"build of {name}", build, [*recipe.builds, builds.CPU])
    loaded = Environment(name, folder, recipe, None if build == builds.CPU else build)
    script = loaded.holds.post_install
    if script and not (folder / script).is_file():
        raise RosettaError(f"environments/{name}/environment.toml is not valid: post_install: there is no {script}")
    for file in loaded.sources:
        files.text(file)
    return loaded


def names() -> list[str]:
    return sorted(path.parent.name for path in ENVIRONMENTS.glob("*/environment.toml"))
