"""Tells what this machine has and lacks, without changing anything."""

import shutil

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rosetta import catalog, data
from rosetta.errors import RosettaError
from rosetta.paths import ROOT
from rosetta.run import environments, interpreters, machine
from rosetta.run.kernels import Kernels, parse_given


def main(python: list[str]) -> int:
    """Print the checks; exit code 1 if the data or an environment cannot be had here."""
    known, kernels, here = catalog.load(), Kernels(parse_given(python)), machine.describe()
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "state"):
        table.add_column(heading, overflow="fold")
    free = shutil.disk_usage(ROOT).free
    table.add_row("machine", f"{here.cpu}, {here.cores} cores, {here.memory / 2**30:.0f} GiB; {here.os}")
    table.add_row(
        "GPU",
        "; ".join(
            f"{one.id}: {one.gpu.name}, {one.gpu.memory / 2**30:.0f} GiB, compute capability {one.gpu.capability}, "
            f"driver {one.gpu.driver}, CUDA up to {one.gpu.cuda}"
            for one in machine.devices()
        )
        or "none found",
    )
    needed = sum(environments.load(name).recipe.disk_gb for name in environments.names())
    enough = "" if free > 1e9 * needed else f"; all environments together take {needed:.0f} GB"
    table.add_row("disk", f"{free / 1e9:.0f} GB free{enough}")
    for version in sorted(
        {environments.load(name).recipe.python for name in environments.names()},
        key=lambda text: int(text.split(".")[1]),
    ):
        table.add_row(f"Python {version}", str(interpreters.find(version) or "not found"))
    sets = {task.data: _data(task.data) for task in known.tasks.values() if task.data}
    for name, (text, _) in sets.items():
        table.add_row(f"data {name}", Text(text))
    states = {name: kernels.state(name) for name in environments.names()}
    for name, state in states.items():
        table.add_row(f"environment {name}", Text(state))
    Console().print(table)
    blocked = [
        name for name in states if kernels.interpreter(name) is None and states[name] not in ("ready", "can be made")
    ]
    return 1 if blocked or not all(there for _, there in sets.values()) else 0


def _data(dataset: str) -> tuple[str, bool]:
    try:
        return str(data.locate(dataset, fetch=False)), True
    except RosettaError as error:
        return str(error), False
