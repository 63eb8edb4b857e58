"""Where a row's kernel comes from: a provisioned environment, or an interpreter that the user named."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rosetta.errors import RosettaError, Unavailable
from rosetta.records import Gpu
from rosetta.run import environments
from rosetta.run.child import KERNEL_NAME
from rosetta.run.installer import Tell, quiet

ALL = "all"
# Read by OpenMP, MKL, OpenBLAS, NumExpr and TensorFlow; XLA follows the processors that the process may use
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


@dataclass(frozen=True)
class Kernel:
    """An interpreter and the variables it starts with."""

    python: Path
    variables: dict[str, str]


class Kernels:
    """Chooses the kernel of each row; ``given`` maps environments (or "all") to interpreters of the user's.

    here: whether those are on this machine, and so can be checked; not where the runs go to a cluster.
    """

    def __init__(self, given: dict[str, Path] | None = None, here: bool = True):
        self.given = given or {}
        for name, python in self.given.items():
            if name != ALL:
                environments.load(name)
            if here:
                _check_interpreter(name, python)

    def interpreter(self, environment: str) -> Path | None:
        """The user's own interpreter for an environment, if one was given."""
        return self.given.get(environment, self.given.get(ALL))

    def fingerprint(self, environment: str) -> str:
        """What stands for the content of an environment: that of its pins, or the interpreter that the user named."""
        python = self.interpreter(environment)
        return environments.load(environment).fingerprint() if python is None else str(python)

    def state(self, environment: str) -> str:
        """One word or line for ``list`` and ``doctor``."""
        python = self.interpreter(environment)
        if python is not None:
            return f"given: {python}"
        loaded = environments.load(environment)
        return "ready" if loaded.is_ready() else loaded.obstacle() or "can be made"

    def get(
        self, environment: str, imports: tuple[str, ...], log: Path, tell: Tell = quiet, gpus: Sequence[Gpu] = ()
    ) -> Kernel:
        """The kernel for a row that is to run on these GPUs; provisions the environment where it must, and tells how far it is.

        Raises Unavailable, also where the locked build has no code for a GPU, or RosettaError.
        """
        loaded, python = environments.load(environment), self.interpreter(environment)
        if python is None:
            loaded.check_gpus(imports, gpus)
            loaded.provision(log, tell)
            # A provisioned environment holds all it needs: what the user's shell adds to Python stays out
            own = loaded.variables(imports, locked=True)
            return Kernel(loaded.python, own | {"PYTHONPATH": "", "PYTHONNOUSERSITE": "1"})
        _check_imports(python, imports)
        return Kernel(python, loaded.variables(imports, locked=False))


def write_kernelspec(
    folder: Path, kernel: Kernel, variables: dict[str, str], name: str = KERNEL_NAME, title: str = KERNEL_NAME
) -> None:
    """A kernelspec below ``folder``, which JUPYTER_PATH must then name; ``variables`` come on top of the kernel's own."""
    spec = folder / "kernels" / name
    spec.mkdir(parents=True)
    argv = [str(kernel.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    described = {"argv": argv, "display_name": title, "language": "python", "env": kernel.variables | variables}
    (spec / "kernel.json").write_text(json.dumps(described, indent=1))


def parse_given(options: list[str]) -> dict[str, Path]:
    """``["torch=/usr/bin/python3"]`` -> {"torch": Path("/usr/bin/python3")}."""
    given = {}
    for option in options:
        name, equals, path = option.partition("=")
        if not (name and equals and path):
            raise RosettaError(f"--python takes ENVIRONMENT=PATH or {ALL}=PATH, not {option}")
        given[name] = Path(path).expanduser().absolute()
    return given


def thread_variables(threads: int | None) -> dict[str, str]:
    return {} if threads is None else dict.fromkeys(THREAD_VARIABLES, str(threads))


@cache
def _check_interpreter(name: str, python: Path) -> None:
    if not python.is_file():
        raise RosettaError(f"--python {name}: there is no {python}")
    done = _run(python, "import ipykernel")
    if done is None:
        raise RosettaError(f"--python {name}: {python} does not start")
    if done.returncode:
        raise RosettaError(
            f"--python {name}: {python} has no ipykernel: install it there ({python} -m pip install ipykernel)"
        )


@cache
def _check_imports(python: Path, imports: tuple[str, ...]) -> None:
    """Raises Unavailable where the interpreter cannot import a row's modules: really imports them, because an installed
    framework may be broken."""
    done = _run(python, "; ".join(f"import {name}" for name in imports))
    if done is None:
        raise Unavailable(f"{python.name} did not finish importing {', '.join(imports)}")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"the given interpreter cannot import {', '.join(imports)}: {last}")


def _run(python: Path, code: str) -> subprocess.CompletedProcess | None:
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    try:
        return subprocess.run([str(python), "-c", code], env=env, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired):
        return None
