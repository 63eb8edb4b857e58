"""A notebook's code as a plain script in its row's own environment, with some cells replaced."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rosetta.catalog import load as load_catalog
from rosetta.errors import RosettaError
from rosetta.notebook import program
from rosetta.paths import from_root
from rosetta.plan import Plan
from rosetta.run import devices
from rosetta.run.devices import Slot
from rosetta.run.kernels import Kernels
from rosetta.run.processes import last_words


@dataclass(frozen=True)
class Script:
    """A file to run: the interpreter, the variables and the folder that it needs."""

    file: Path
    python: Path
    variables: dict[str, str]
    folder: Path

    def environment(self, slot: Slot) -> dict[str, str]:
        """This process's variables, its own and the slot's; those that are empty are left out."""
        together = os.environ | self.variables | slot.variables()
        return {name: value for name, value in together.items() if value and name != "VIRTUAL_ENV"}

    def run(self, slot: Slot, timeout_s: float | None = None) -> str:
        """To its end; what it prints. Raises RosettaError with its last words if it fails."""
        return run("its script", [str(self.python), str(self.file)], self.folder, self.environment(slot), timeout_s)


def write(planned: Plan, code: dict[str, str], file: Path, kernels: Kernels, slot: Slot) -> Script:
    """Make a script of cells, to run on a slot, with the plan's parameters put where papermill puts them."""
    kernel = kernels.get(planned.row, file.with_suffix(".install.log"), gpus=slot.machine.gpus)
    parameters = "\n".join(f"{name} = {value!r}" for name, value in planned.parameters.items())
    first, *others = code.values()
    pieces = [first, parameters, *others]
    if any(re.search(r"\bIn\b", source) for source in others):  # IPython's list of the cells so far
        pieces = ["In = []", *(f"In.append({source!r})\n{source}" for source in pieces)]
    file.write_text("\n\n".join(pieces) + "\n", encoding="utf-8")
    return Script(file, kernel.python, kernel.variables | planned.variables, planned.row.notebook.parent)


def run(
    title: str,
    command: list[str],
    folder: Path,
    variables: dict[str, str] | None = None,
    timeout_s: float | None = None,
) -> str:
    """A process to its end; what it prints. Raises RosettaError with its title and last words if it fails."""
    try:
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise RosettaError(f"{title} did not end within {timeout_s:g} s") from None
    if done.returncode:
        raise RosettaError(f"{title} failed: {last_words(done.stderr or done.stdout, done.returncode)}")
    return done.stdout


def _no_weights(file: Path) -> str | None:
    """What a file is in the place of weights, and what to do; None where it may hold some."""
    with file.open("rb") as opened:
        head = opened.read(100).lstrip()
    if not head:
        return "empty: download it again"
    if head.startswith(b"version https://git-lfs"):
        return "a pointer of Git LFS and not the file itself: run git lfs pull where it comes from"
    if head.startswith(b"<"):
        return "a page of the web and not the file itself: its server may ask for a login"
    return None


def convert_weights(task_key: str, source: str, file: Path, to: Path, kernels: Kernels) -> int:
    """Write the canonical weights of a task from a source's file, which ``programs/weights/<task>/<framework>.py`` reads.

    Exit code 0. Raises RosettaError for what is not known, not there or does not fit.
    """
    from common.weights import WeightsError, load_weights, save_weights  # here, because they bring NumPy

    catalog = load_catalog()
    task = catalog.task(task_key)
    if source not in task.weights:
        there = ", ".join(task.weights) or "none"
        raise RosettaError(f"{task.file} names no source of weights {source}; there are: {there}")
    if not file.is_file():
        raise RosettaError(f"there is no {file}")
    if to.suffix != ".npz":
        raise RosettaError(f"{to}: the file of weights must end in .npz")
    if not to.absolute().parent.is_dir():
        raise RosettaError(f"{to}: there is no folder {to.parent} to write it to")
    if other := _no_weights(file):
        raise RosettaError(f"{file} is {other}")
    (row, *_) = catalog.select([task.weights[source]], task_key)
    reader = program("weights", row.task, row.framework)
    with TemporaryDirectory(prefix="rosetta-") as folder:
        kernel, made = kernels.get(row, Path(folder) / "install.log"), Path(folder) / "weights.npz"
        script = Script(reader, kernel.python, kernel.variables, Path(folder))
        (slot, *_) = devices.shared(gpus="none", jobs=1)
        command = [str(script.python), str(reader), str(file.absolute()), str(made)]
        run(f"{from_root(reader)} on {file}", command, Path(folder), script.environment(slot))
        try:
            weights = load_weights(made, task.reference.WEIGHT_SHAPES)
        except WeightsError as error:
            reason = str(error).partition(f"{made}: ")[2] or error
            raise RosettaError(f"{file} holds other weights than {task.title}: {reason}") from None
    save_weights(to, weights)
    print(f"{to}: {len(weights)} tensors. A run takes them by --set INITIAL_WEIGHTS={to.absolute()}")
    return 0
