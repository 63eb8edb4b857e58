"""Environments that kernels run in, made with uv from the pins below ``environments/``, for the CPU or for a GPU.

One folder an environment: ``environment.toml`` (its Python, what it needs from the machine, its variables), ``requirements.in``
(the packages), ``requirements.txt`` (their hashed lock) and, once made, ``.venv``. A build for GPUs has a pair of files
and a ``.venv-`` of its own name.
"""

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Any

from filelock import Timeout
from packaging.utils import canonicalize_name
from packaging.version import Version
from pydantic import Field

from rosetta import files, lock
from rosetta.catalog import unknown
from rosetta.errors import RosettaError, Unavailable
from rosetta.files import Strict
from rosetta.paths import checkout, portable
from rosetta.records import Gpu
from rosetta.run import machine, processes

CPU = "cpu"  # the name of the build that every environment has
# A gigabyte of packages, roughly: to download it at 200 Mbit/s, and to unpack and compile it on two cores
DOWNLOAD_S, UNPACK_S = 40.0, 20.0
TELL_S = 1.0  # how often an installation tells how long it has taken
OLDEST_PYTHON_OF_UV = "3.8"  # uv downloads CPython from here on; older ones must be on the machine
# In every kernel: FP32 is FP32, also in libraries that have no switch of their own
ALWAYS = {"NVIDIA_TF32_OVERRIDE": "0"}
LIBRARY_PATH = "LD_LIBRARY_PATH"
CLEAR = ("--clear", "--force")  # also what is no environment yet: its making was cut short
CPU_ONLY = ("UV_TORCH_BACKEND",)  # variables of the shell that ask uv for a build for the CPU
# Of a recipe: fields that change no environment
NOT_CONTENT = {"disk_gb", "download_gb", "builds", "without_gpu", "lock_flags", "repairs"}

MARK = re.compile(r"#\s*for ([\w, ]+)$")  # at the end of a requirement: the frameworks that it is for
VIA = re.compile(r"^\s*#\s+(?:via\s+)?(-r \S+|[\w.-]+)$", re.MULTILINE)  # in a lock: what asks for a package

Tell = Callable[[str], None]  # takes one short line
Number = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]  # of a version: "12.6"
PythonVersion = Annotated[str, Field(pattern=r"^\d+\.\d+$")]  # "3.11"
PTX = "+PTX"
GpuCode = Annotated[str, Field(pattern=r"^\d+\.\d+(\+PTX)?$")]


class Build(Strict):
    """Packages that compute on NVIDIA's GPUs: a table of ``environment.toml``, with two requirement files of its name."""

    cuda: Number  # of its libraries
    driver: Number  # the oldest that it runs with
    glibc: Number | None = None  # the oldest that it runs with, where that is newer than uv asks for
    python: PythonVersion | None = None  # where it is another than the environment's
    note: str | None = None  # what a table must say of its rows
    disk_gb: float = 0.0  # as an environment's
    download_gb: float = 0.0
    post_install: str | None = None  # run by the build's interpreter after the packages
    libraries: list[str] = []  # packages of NVIDIA's whose folders must be on the path of libraries: "cublas"
    code: dict[str, list[GpuCode]]  # by module: the compute capabilities that it has code for
    variables: dict[str, str] = {}  # of the kernel; {venv} is the build's virtual environment

    def codes(self, imports: Iterable[str]) -> list[list[GpuCode]]:
        """The codes of each of these modules that it names itself, or whose package it names."""
        names = [module if module in self.code else module.partition(".")[0] for module in imports]
        return [self.code[name] for name in names if name in self.code]

    def obstacle(self, imports: Iterable[str], gpu: Gpu) -> str | None:
        """Why it does not compute on a GPU for a notebook with these imports, in a few words."""
        for codes in self.codes(imports):
            if gpu.capability and not any(_runs_on(code, gpu.capability) for code in codes):
                oldest = min((code.removesuffix(PTX) for code in codes), key=Version)
                if Version(gpu.capability) < Version(oldest):
                    return f"needs compute capability {oldest} or newer"
                return f"has code for compute capability {', '.join(codes)} alone"
        if Version(gpu.driver) < Version(self.driver):
            return f"needs driver {self.driver} or newer"
        libc, version = platform.libc_ver()
        if self.glibc and libc == "glibc" and Version(version) < Version(self.glibc):
            return f"needs glibc {self.glibc} or newer, and this system has {version}"
        return None


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
    repairs: list[str] = []  # frameworks that this script, or a build's, is for; all where it is empty
    install_flags: list[str] = []  # for ``uv pip install``; {lock} is the lock's file
    lock_flags: list[str] = []  # for ``uv pip compile``, in place of the usual ones; {python} is its interpreter
    variables: dict[str, str] = {}  # of the kernel; {folder} is the environment's folder
    variables_of_lock: dict[str, str] = {}  # only with the locked packages: other versions may refuse them
    variables_on: dict[str, dict[str, str]] = {}  # by the processor's vendor, as Linux names it
    variables_for: dict[str, dict[str, str]] = {}  # by a module that the notebook imports; {processors} is their number
    variables_on_gpu: dict[str, dict[str, str]] = {}  # by a module, where the run has a GPU

    def covers_gpus(self, imports: Sequence[str]) -> bool:
        """Whether it says what a GPU is to a notebook with these imports: a build has code for it, or why none has."""
        reasons = [module for module in imports if module.partition(".")[0] in self.without_gpu]
        return bool(reasons) or any(build.codes(imports) for build in self.builds.values())


@dataclass(frozen=True)
class Environment:
    """A folder below ``environments/``, in one of its builds."""

    name: str
    folder: Path
    recipe: Recipe
    build: str | None = None  # None: that for the CPU

    @property
    def title(self) -> str:
        return f"{self.name} ({self.build})" if self.build else self.name

    @property
    def _arguments(self) -> str:
        """What ``run_all.py env`` takes for it."""
        return f"{self.name} --build {self.name}={self.build}" if self.build else self.name

    @property
    def gpu_build(self) -> Build | None:
        return self.recipe.builds[self.build] if self.build else None

    @property
    def holds(self) -> Recipe | Build:
        """The table that has the packages' sizes and the script that is run after them."""
        return self.gpu_build or self.recipe

    @property
    def install_s(self) -> float:
        """Seconds that it should take to make it, on a fast network; 0 where it is ready."""
        return 0.0 if self.is_ready() else DOWNLOAD_S * self.holds.download_gb + UNPACK_S * self.holds.disk_gb

    @property
    def python_version(self) -> str:
        build = self.gpu_build
        return build.python if build and build.python else self.recipe.python

    @property
    def venv(self) -> Path:
        return self.folder / (f".venv-{self.build}" if self.build else ".venv")

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

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
        digest = self._digest()
        for file in self.sources:
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()

    def fingerprint_for(self, framework: str) -> str:
        """The same of what a framework's notebooks can import: the versions, less those that are asked for others alone.

        The script that runs after the packages counts where it repairs something for this framework.

        A line of ``requirements.in`` that ends with ``# for NAME, ...`` asks for these frameworks.
        """
        digest, (asked, locked) = self._digest(), map(files.text, self.requirements)
        marked = [(MARK.search(line), line) for line in asked.splitlines()]
        others = {name_of(line) for mark, line in marked if mark and framework not in mark[1].replace(",", " ").split()}
        versions, needed_by = {}, {}
        for package in re.split(r"^(?=[^\s#])", locked, flags=re.MULTILINE)[1:]:
            version, *lines = package.splitlines()
            name = name_of(version)
            versions.setdefault(name, []).append(version.rstrip(" \\"))  # one of several by Python or system
            needed_by.setdefault(name, set()).update(VIA.findall("\n".join(lines)))
        wanted: set[str] = set()
        while more := {
            name
            for name, needing in needed_by.items()
            if name not in wanted
            and (needing & wanted or name not in others and any(one.startswith("-") for one in needing))
        }:
            wanted |= more
        digest.update(json.dumps([sorted(versions[name]) for name in sorted(wanted)]).encode())
        if (script := self.holds.post_install) and framework in (self.recipe.repairs or [framework]):
            digest.update(files.read(self.folder / script))
        return digest.hexdigest()

    def _digest(self) -> Any:
        """Of what is no file: the recipe, the build, and the variables of every kernel."""
        recipe = self.recipe.model_dump(exclude=NOT_CONTENT)
        build = self.gpu_build and self.gpu_build.model_dump(include={"python", "libraries", "variables"})
        return hashlib.sha256(json.dumps([recipe, build, ALWAYS], sort_keys=True).encode())

    def for_gpus(self, imports: Sequence[str], gpus: Iterable[Gpu]) -> "Environment":
        """The environment in the first build that computes on all of these GPUs for a notebook with these imports.

        Raises Unavailable, which says what each build lacks.
        """
        builds = {name: build for name, build in self.recipe.builds.items() if build.codes(imports)}
        if not builds:
            packages, reasons = [module.partition(".")[0] for module in imports], self.recipe.without_gpu
            name = next((package for package in packages if package in reasons), packages[0])
            raise Unavailable(f"no build of {name} for a GPU{f': {reasons[name]}' if name in reasons else ''}")
        lacking = []
        for name, build in builds.items():
            obstacles = [(gpu, reason) for gpu in gpus if (reason := build.obstacle(imports, gpu))]
            if not obstacles:
                return replace(self, build=name)
            card, reason = obstacles[0]
            lacking.append(f"{name} {reason}")
        card_text = f"{card.name} (compute capability {card.capability}, driver {card.driver})"
        raise Unavailable(f"no build for {card_text}: {'; '.join(lacking)}")

    @property
    def sources(self) -> list[Path]:
        """The files beside the recipe that it is made from: the requirements, their lock, and a script that is run after them."""
        script = self.holds.post_install
        return [*self.requirements, *([self.folder / script] if script else [])]

    def is_ready(self) -> bool:
        """Whether it is there, made in this place from today's pins."""
        try:
            stamp = json.loads(self.stamp.read_text())
            made_from, folder = stamp["fingerprint"], stamp.get("folder", str(self.venv))
        except (OSError, ValueError, LookupError, AttributeError):
            return False
        has_programs = all((self.python.parent / program).exists() for program in self._to_bring())
        stayed = folder == str(self.venv)  # programs in it hold its path
        return made_from == self.fingerprint() and self.python.exists() and has_programs and stayed

    def _to_bring(self) -> dict[str, str]:
        """The programs that the machine lacks, and their packages; they are for computing on a CPU."""
        brought = {} if self.build else self.recipe.brought
        return {name: package for name, package in brought.items() if shutil.which(name) is None}

    def obstacle(self) -> str | None:
        """Why it cannot be made on this machine, in one line; None where nothing stands in the way."""
        asked, locked = map(files.text, self.requirements)
        asks = any(line.partition("#")[0].strip() for line in asked.splitlines())
        if asks and "==" not in locked:
            return f"environment {self.title} has packages that are not locked: run_all.py env {self._arguments} --lock"
        missing = [program for program in self.recipe.needs if shutil.which(program) is None]
        if missing:
            return f"environment {self.name} needs {' and '.join(missing)} on this machine: install with the system's package manager"
        if os.pathsep in str(self.folder) and (self.recipe.brought or self.gpu_build and self.gpu_build.libraries):
            return f"environment {self.title} cannot work in a path with {os.pathsep!r}: move this checkout"
        version = self.python_version
        if find_python(version) is None and Version(version) < Version(OLDEST_PYTHON_OF_UV):
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
        values = ALWAYS | self.recipe.variables | self.recipe.variables_on.get(machine.cpuinfo("vendor_id"), {})
        for module in imports:
            values |= self.recipe.variables_for.get(module, {})
            values |= self.recipe.variables_on_gpu.get(module, {}) if on_gpu else {}
        if locked:
            values |= self.recipe.variables_of_lock
            values |= self.gpu_build.variables if self.gpu_build else {}
        places = {"{folder}": self.folder, "{venv}": self.venv, "{processors}": len(machine.processors())}
        added = {name: value for name, value in values.items() if name not in os.environ}
        for place, text in places.items():
            added = {name: value.replace(place, str(text)) for name, value in added.items()}
        if locked and self.gpu_build and self.gpu_build.libraries:  # first, or those of another CUDA would be found
            folders = [str(self._packages / "nvidia" / name / "lib") for name in self.gpu_build.libraries]
            added[LIBRARY_PATH] = os.pathsep.join([*folders, *filter(None, [os.environ.get(LIBRARY_PATH)])])
        if locked and self.recipe.brought:  # last, so that the machine's own programs come first
            added["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(self.python.parent)))
        return added

    @property
    def _packages(self) -> Path:
        return self.venv / "lib" / f"python{self.python_version}" / "site-packages"

    def check_files(self) -> None:
        """Raises RosettaError, which says what to do, where files of packages are gone or shorter than the packages say."""
        lost: list[str] = []
        for package in distributions(path=[str(self._packages)]):
            for noted in package.files or ():
                file = Path(noted.locate())
                # uv writes a package's own description anew, and Python compiles when it likes
                varies = file.suffix == ".pyc" or file.parent.suffix == ".dist-info"
                if noted.size and not varies and not (file.is_file() and file.stat().st_size >= noted.size):
                    lost.append(os.path.relpath(file, self.venv))
        if lost:
            more = f" and {len(lost) - 1} more files" if len(lost) > 1 else ""
            raise RosettaError(
                f"environment {self.title} has lost {lost[0]}{more} since it was made: "
                f"run_all.py env {self._arguments} --again makes it anew"
            )

    def provision(self, log: Path, tell: Tell = lambda text: None, again: bool = False) -> None:
        """Make the environment unless it is ready; the installers' output goes to the log, what they are at to ``tell``.

        again: also if it is ready. Raises Unavailable where the machine lacks something, RosettaError where a step fails.
        """
        if self.is_ready() and not again:
            return
        try:
            try:
                held = lock.take(self.folder / ".lock")
            except Timeout:
                tell(f"installing {self.title}: another run does it, waiting")
                held = lock.take(self.folder / ".lock", wait_s=-1)
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
            self._make(log, tell, again)
        finally:
            held.release()

    def _make(self, log: Path, tell: Tell, again: bool) -> None:
        """In its place, because scripts in it hold its path; what counts is the stamp, the first to go and the last to come."""
        from uv import find_uv_bin

        uv, python, venv = find_uv_bin(), str(self.python), str(self.venv)
        version, brought = self.python_version, self._to_bring()
        asked, locked, *scripts = self.sources
        flags = [flag.replace("{lock}", locked.name) for flag in self.recipe.install_flags]
        # A file that was emptied may be emptied in uv's cache as well: it links the two
        install = [uv, "pip", "install", "--python", python, *flags, *["--refresh"] * again]
        steps = {
            f"Python {version}": [uv, "venv", *CLEAR, "--python", str(find_python(version) or version), venv],
            "packages": [*install, "-r", asked.name, *brought.values(), "-c", locked.name],
        }
        steps |= {f"running {script.name}": [python, str(script)] for script in scripts}
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")
        self.stamp.unlink(missing_ok=True)
        for title, step in steps.items():
            if self._run(title, step, log, tell):
                why = portable(uv_error(log.read_text(encoding="utf-8", errors="replace")))
                if step[1] == "venv" and find_python(version) is None:
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
        self._run("compiling", [python, "-m", "compileall", "-q", "-j", "0", venv], log, tell)
        self.stamp.write_text(json.dumps({"fingerprint": self.fingerprint(), "folder": str(self.venv)}))

    def _run(self, title: str, step: list[str], log: Path, tell: Tell) -> int:
        """Run a step of an installation, append its output to the log, and tell how long it takes; its exit code."""
        what, began, cookie = f"installing {self.title}: {title}", time.monotonic(), f"install {self.folder}"
        tell(what)
        processes.kill_tree(None, cookie)  # what an earlier runner's installation may still be at
        without = (*processes.FOREIGN_VARIABLES, *(CPU_ONLY if self.build else ()))
        command = (processes.GUARD, str(self.folder), *step)
        with log.open("a", encoding="utf-8") as file:
            file.write("$ " + " ".join(step) + "\n")
            file.flush()
            # Not through a pipe: a build that outlives uv would hold its other end open
            options = {"without": without, "stdout": file, "stderr": subprocess.STDOUT}
            with processes.start(*command, cookie=cookie, **options) as process:
                while True:
                    try:
                        return process.wait(TELL_S)
                    except subprocess.TimeoutExpired:
                        tell(f"{what}, {time.monotonic() - began:.0f} s")


def load(name: str, build: str | None = None) -> Environment:
    """Read an environment's recipe. build: a build for GPUs; that for the CPU when not given, or when it is ``CPU``.

    Raises RosettaError, which names the file that is missing or not valid.
    """
    if name not in names():
        raise unknown("environment", name, names())
    folder = checkout.environments / name
    recipe = files.load(Recipe, folder / "environment.toml")
    if build not in (None, CPU, *recipe.builds):
        raise unknown(f"build of {name}", build, [*recipe.builds, CPU])
    loaded = Environment(name, folder, recipe, None if build == CPU else build)
    script = loaded.holds.post_install
    if script and not (folder / script).is_file():
        raise RosettaError(f"environments/{name}/environment.toml is not valid: post_install: there is no {script}")
    for file in loaded.sources:
        files.text(file)
    return loaded


def names() -> list[str]:
    return sorted(path.parent.name for path in checkout.environments.glob("*/environment.toml"))


def uv_error(log: str) -> str:
    """uv's error with its causes, or the last line of a script that failed, as one line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if line.startswith(("error", "×"))), len(lines) - 1)
    return " ".join(line.strip("×├─▶╰│ ") for line in lines[first:])[:400]


def event(text: str) -> str:
    """What matters of a line of progress where lines stay: that something is installed, not how far that is."""
    return text.partition(": ")[0]


def events(tell: Tell) -> Tell:
    """A teller of lines that stay: each installation is one."""
    last = ""

    def tell_once(text: str) -> None:
        nonlocal last
        if event(text) != last:
            last = event(text)
            tell(last)

    return tell_once


def name_of(requirement: str) -> str:
    """The package of a line of requirements, as all of them spell it: ``Keras==2.3.1  # why`` -> keras."""
    return canonicalize_name(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0])


@cache
def find_python(version: str) -> Path | None:
    """The path of a Python of that version ("3.6"), or None.

    Looks in pyenv, then in conda's environments, then on PATH. Each candidate is run before it is believed:
    pyenv's shims on PATH exit with an error unless their version is active.
    """
    name, home = f"python{version}", Path(os.path.expanduser("~"))
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    candidates = sorted(pyenv.glob(f"versions/*/bin/{name}"), reverse=True)
    # conda lists every environment that it has made in one file; the active one is in CONDA_PREFIX
    listed, prefixes = home / ".conda" / "environments.txt", [os.environ.get("CONDA_PREFIX", "")]
    if listed.is_file():
        prefixes += listed.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    candidates += [Path(prefix) / "bin" / name for prefix in prefixes if prefix.strip()]
    candidates += [Path(folder) / name for folder in os.environ.get("PATH", "").split(os.pathsep)]
    for path in filter(os.path.isfile, candidates):
        answer = processes.ask(path, "import sys; print('%d.%d' % sys.version_info[:2])", timeout_s=30)
        if answer and answer.returncode == 0 and answer.stdout.strip() == version:
            return path
    return None


def _runs_on(code: str, capability: str) -> bool:
    """CUDA's rule: machine code runs on its capability and later ones of the same major number, PTX on all later ones."""
    held, card = Version(code.removesuffix(PTX)), Version(capability)
    return held <= card and (code.endswith(PTX) or held.major == card.major)
