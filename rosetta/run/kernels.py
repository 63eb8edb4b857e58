"""Where a row's kernel comes from: a provisioned environment, or an interpreter that the user named."""

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rosetta.catalog import Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.paths import checkout
from rosetta.records import Gpu
from rosetta.run import environments, processes
from rosetta.run.environments import CPU, Environment, Tell
from rosetta.run.processes import last_words
from rosetta.where import assignments

ALL = "all"
STARTED = "rosetta: Python has started"  # printed by an interpreter that is asked
ANSWER_S = 60  # within which an interpreter must say whether it has ipykernel
IMPORT_S = 300  # and import a framework: many take minutes from a network file system's first reading


@dataclass(frozen=True)
class Kernel:
    """An interpreter and the variables it starts with."""

    python: Path
    variables: dict[str, str]
    build: str | None = None  # of its environment, where that is not the one for the CPU


class Kernels:
    """Chooses the kernel of each row; ``interpreters`` maps environments (or "all") to interpreters of the user's.

    builds: by environment, the build that the user asks for in place of the one that fits.
    here: whether those interpreters are on this machine, and so can be checked; not where the runs go to a cluster.
    """

    def __init__(
        self, interpreters: dict[str, Path] | None = None, builds: dict[str, str] | None = None, here: bool = True
    ):
        self.interpreters, self.builds = interpreters or {}, builds or {}
        self._lacking: dict[str, Unavailable] = {}  # environments that could not be had here, with the reason
        for name, python in self.interpreters.items():
            if name != ALL:
                environments.load(name)
            if here:
                _check_interpreter(name, python)
        for name, build in self.builds.items():
            environments.load(name, build)

    def interpreter(self, environment: str) -> Path | None:
        """The user's own interpreter for an environment, if one was given."""
        return self.interpreters.get(environment, self.interpreters.get(ALL))

    def environment(self, row: Row, gpus: Sequence[Gpu] = ()) -> Environment:
        """The environment that a row gets on these GPUs, in the build that was asked for or fits. Raises Unavailable."""
        asked = self.builds.get(row.environment)
        loaded = environments.load(row.environment, asked)
        if not gpus or loaded.build:
            return loaded
        if asked == CPU:
            raise Unavailable(f"--build {row.environment}={CPU} computes on no GPU")
        return loaded.for_gpus(row.imports, gpus)

    def has_build(self, row: Row, gpus: Sequence[Gpu]) -> bool:
        """Whether there is a build, or an interpreter of the user's, for a row on these GPUs."""
        try:
            self.environment(row, gpus)
        except Unavailable:
            return self.interpreter(row.environment) is not None
        return True

    def fingerprint(self, row: Row, gpus: Sequence[Gpu] = ()) -> str:
        """What stands for the content of a row's environment: that of its pins, or the interpreter that the user named."""
        python = self.interpreter(row.environment)
        if python is not None:
            return str(python)
        try:
            return self.environment(row, gpus).fingerprint_for(row.framework)
        except Unavailable:  # it will not run there
            return environments.load(row.environment).fingerprint_for(row.framework)

    def state(self, row: Row, cards: Sequence[Gpu] = ()) -> str:
        """One word or line for ``list`` and ``doctor``, of a run on one of these cards."""
        python = self.interpreter(row.environment)
        if python is not None:
            return f"given: {python}"
        states = {}
        for gpus in [[card] for card in cards] or [[]]:
            try:
                loaded = self.environment(row, gpus)
                state = f"build {loaded.build}: {loaded.state()}" if loaded.build else loaded.state()
            except Unavailable as reason:
                state = str(reason)
            states[gpus[0].name if gpus else ""] = state
        different = len(set(states.values())) > 1
        return "; ".join(f"{name}: {state}" for name, state in states.items()) if different else state

    def get(self, row: Row, log: Path, tell: Tell = lambda text: None, gpus: Sequence[Gpu] = ()) -> Kernel:
        """The kernel for a row that is to run on these GPUs; provisions the environment where it must, and tells how far it is.

        Raises Unavailable, also where no build computes on a GPU, or RosettaError.
        """
        python = self.interpreter(row.environment)
        if python is None:
            try:
                loaded = self.environment(row, gpus)
            except Unavailable as reason:
                raise Unavailable(
                    f"{reason}. On the CPU: run_all.py run {shlex.quote(row.full_name)} --gpus none. "
                    f"With another interpreter: --python {row.environment}=PATH"
                ) from None
            if loaded.title in self._lacking:  # every row would wait for the same download again
                raise self._lacking[loaded.title]
            try:
                loaded.provision(log, tell)
            except Unavailable as reason:
                self._lacking[loaded.title] = reason
                raise
            # A provisioned environment holds all it needs: what the user's shell adds to Python stays out
            isolation, shells = {"PYTHONNOUSERSITE": "1"}, None
            python = loaded.python
        else:
            _check_imports(python, row.imports, tuple(row.variables.items()))
            loaded, isolation, shells = environments.load(row.environment), {}, os.environ.get("PYTHONPATH")
        variables = loaded.variables(row.imports, locked=bool(isolation), on_gpu=bool(gpus)) | isolation | row.variables
        # Before any other package of the name ``common``
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(checkout.root), shells]))
        asked = {name: value for name, value in variables.items() if row.variables.get(name) != ""}
        return Kernel(python, asked, loaded.build)


def write_kernelspec(folder: Path, kernel: Kernel, variables: dict[str, str], name: str, title: str) -> None:
    """A kernelspec for Jupyter below ``folder``; ``variables`` come on top of the kernel's own."""
    spec = folder / "kernels" / name
    spec.mkdir(parents=True)
    argv = [str(kernel.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    described = {"argv": argv, "display_name": title, "language": "python", "env": kernel.variables | variables}
    (spec / "kernel.json").write_text(json.dumps(described, indent=1))


def chosen(python: list[str], build: list[str], here: bool = True) -> Kernels:
    """As ``--python ENV=PATH`` and ``--build ENV=NAME`` say. Raises RosettaError for what is none, or not there."""
    paths = assignments("--python", python, f"ENVIRONMENT=PATH or {ALL}=PATH")
    interpreters = {name: Path(os.path.expanduser(path)).absolute() for name, path in paths.items()}
    return Kernels(interpreters, assignments("--build", build, "ENVIRONMENT=NAME"), here)


@cache
def _check_interpreter(name: str, python: Path) -> None:
    if not python.is_file():
        raise RosettaError(f"--python {name}: there is no {python}")
    done = processes.ask(python, f"print('{STARTED}', flush=True); import ipykernel", ANSWER_S)
    if done is None:
        raise RosettaError(f"--python {name}: {python} gave no answer within {ANSWER_S} s: name another interpreter")
    if STARTED not in done.stdout:
        raise RosettaError(
            f"--python {name}: {python} does not start as Python does: {last_words(done.stderr, done.returncode)}"
        )
    if done.returncode:
        raise RosettaError(
            f"--python {name}: {python} has no ipykernel: install it there ({python} -m pip install ipykernel)"
        )


@cache
def _check_imports(python: Path, imports: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> None:
    """Raises Unavailable where the interpreter cannot import a row's modules: really imports them, because an installed
    framework may be broken."""
    code = "; ".join(f"import {name}" for name in imports)
    done = processes.ask(python, code, IMPORT_S, dict(variables))
    if done is None:
        raise Unavailable(f"the given interpreter did not finish importing {', '.join(imports)} within {IMPORT_S} s")
    if done.returncode:
        words = last_words(done.stderr, done.returncode)
        raise Unavailable(f"the given interpreter cannot import {', '.join(imports)}: {words}")
