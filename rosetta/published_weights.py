"""Weights that others publish, made canonical: ``programs/weights/<task>/<framework>.py`` reads them."""

from pathlib import Path
from tempfile import TemporaryDirectory

from rosetta import catalog
from rosetta.errors import RosettaError
from rosetta.paths import from_root
from rosetta.run import devices, scripts
from rosetta.run.kernels import Kernels


def convert(task_key: str, source: str, file: Path, to: Path, kernels: Kernels) -> int:
    """Write the canonical weights of a task from a source's file. Exit code 0. Raises RosettaError for what is not known, not there or does not fit."""
    from common.weights import WeightsError, load_weights, save_weights  # here, because they bring NumPy

    collection = catalog.load()
    task = collection.task(task_key)
    if source not in task.weights:
        there = ", ".join(task.weights) or "none"
        raise RosettaError(f"{task.file} names no source of weights {source}; there are: {there}")
    if not file.is_file():
        raise RosettaError(f"there is no {file}")
    if to.suffix != ".npz":
        raise RosettaError(f"{to}: the file of weights must end in .npz")
    (row, *_) = collection.select([task.weights[source]], task_key)
    program = scripts.program("weights", row)
    with TemporaryDirectory(prefix="rosetta-") as folder:
        kernel, made = kernels.get(row, Path(folder) / "install.log"), Path(folder) / "weights.npz"
        script = scripts.Script(program, kernel.python, kernel.variables, Path(folder))
        (slot, *_) = devices.shared(gpus="none", jobs=1)
        command = [str(script.python), str(program), str(file.absolute()), str(made)]
        scripts.run(f"{from_root(program)} on {file}", command, Path(folder), script.environment(slot))
        try:
            weights = load_weights(made, task.reference.WEIGHT_SHAPES)
        except WeightsError as error:
            reason = str(error).partition(f"{made}: ")[2] or error
            raise RosettaError(f"{file} holds other weights than {task.title}: {reason}") from None
    save_weights(to, weights)
    print(f"{to}: {len(weights)} tensors. A run takes them by --set INITIAL_WEIGHTS={to.absolute()}")
    return 0
