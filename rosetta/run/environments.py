"""Provisions the environments that kernels run in, with uv, from the pins below ``environments/``.

One folder an environment: ``environment.toml`` (its Python, what it needs from the machine, its variables),
``requirements.in`` (the packages), ``requirements.txt`` (their hashed lock) and, once made, ``.venv``.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, ValidationError

from rosetta.catalog import unknown
from rosetta.errors import RosettaError, Unavailable
from rosetta.paths import ENVIRONMENTS, portable
from rosetta.run import interpreters, machine

OLDEST_PYTHON_OF_UV = (3, 8)  # uv downloads CPython from here on; older ones must be on the machine
# The runner's own environment must not leak into others
FOREIGN_VARIABLES = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "CONDA_PREFIX")


class Recipe(BaseModel):
    """``environment.toml``."""

    model_config = ConfigDict(extra="forbid")

    python: str
    needs: list[str] = []  # programs that must be on PATH
    post_install: str | None = None  # run by the environment's interpreter after the packages
    install_flags: list[str] = []  # for ``uv pip install``
    variables: dict[str, str] = {}  # of the kernel; {folder} is the environment's folder
    variables_of_lock: dict[str, str] = {}  # only with the locked packages: other versions may refuse them
    variables_on: dict[str, dict[str, str]] = {}  # by the processor's vendor, as Linux names it
    disk_gb: float = 0.0  # once made
    download_gb: float = 0.0
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
        return made_from == self.fingerprint() and self.python.exists()

    def obstacle(self) -> str | None:
        """Why it cannot be made on this machine, in one line; None where nothing stands in the way."""
        missing = [program for program in self.recipe.needs if shutil.which(program) is None]
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
        return {
            name: value.replace("{folder}", str(self.folder)).replace("{processors}", processors)
            for name, value in found.items()
            if name not in os.environ
        }

    def provision(self, log: Path) -> None:
        """Make the environment unless it is ready; uv's output goes to the log.

        Raises Unavailable where the machine lacks something, RosettaError where an installation step fails.
        """
        if self.is_ready():
            return
        with FileLock(self.folder / ".lock"):
            if self.is_ready():  # another runner has made it meanwhile
                return
            obstacle = self.obstacle()
            if obstacle:
                raise Unavailable(obstacle)
            self._make(log)

    def _make(self, log: Path) -> None:
        from uv import find_uv_bin

        uv, python = find_uv_bin(), str(self.python)
        log.parent.mkdir(parents=True, exist_ok=True)
        base = str(interpreters.find(self.recipe.python) or self.recipe.python)
        steps = [
            [uv, "venv", "--clear", "--python", base, str(self.folder / ".venv")],
            [
                uv,
                "pip",
                "install",
                "--python",
                python,
                *self.recipe.install_flags,
                "-r",
                "requirements.in",
                "-c",
                "requirements.txt",
            ],
        ]
        if self._post_install:
            steps.append([python, str(self._post_install)])
        # Else the first run would compile what it imports, and every run where PYTHONDONTWRITEBYTECODE is set (containers)
        compile_all = [python, "-m", "compileall", "-q", "-j", "0", str(self.folder / ".venv")]
        with log.open("w", encoding="utf-8") as output:
            for step in steps:
                self._run(step, output)
            self._run(compile_all, output, may_fail=True)  # packages hold some files that are of another Python
        self.stamp.write_text(json.dumps({"fingerprint": self.fingerprint()}))

    def _run(self, step: list[str], output, may_fail: bool = False) -> None:
        env = {name: value for name, value in os.environ.items() if name not in FOREIGN_VARIABLES}
        output.write("$ " + " ".join(step) + "\n")
        output.flush()
        done = subprocess.run(
            step, cwd=self.folder, env=env, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        if done.returncode and not may_fail:
            reason = _reason(Path(output.name).read_text(encoding="utf-8", errors="replace"))
            raise RosettaError(f"environment {self.name} could not be made: {portable(reason)}")


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
    try:
        recipe = Recipe.model_validate(tomllib.loads((folder / "environment.toml").read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise RosettaError(f"environments/{name}/environment.toml is not valid: {str(error).splitlines()[0]}") from None
    return Environment(name, folder, recipe)


def names() -> list[str]:
    return sorted(path.parent.name for path in ENVIRONMENTS.glob("*/environment.toml"))
