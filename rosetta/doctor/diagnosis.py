"""Tells what this machine has and lacks, without changing anything."""

import shutil

from rich.table import Table

from rosetta import catalog, data
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError, Unavailable
from rosetta.paths import ROOT
from rosetta.records import Gpu
from rosetta.run import environments, machine
from rosetta.run.environments import Environment
from rosetta.run.kernels import Kernels
from rosetta.terminal import Console


def main(kernels: Kernels) -> int:
    """Print the checks; exit code 1 if the data or an environment cannot be had here."""
    known, cards, here = catalog.load(), machine.cards(), machine.describe()
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "state"):
        table.add_column(heading, overflow="fold")
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
    needed = _environments(known, kernels, cards)
    free, disk = shutil.disk_usage(ROOT).free, sum(found.holds.disk_gb for found in needed)
    table.add_row(
        "disk", f"{free / 1e9:.0f} GB free" + ("" if free > 1e9 * disk else f"; all environments take {disk:.0f} GB")
    )
    for version in sorted({found.python_version for found in needed}, key=lambda text: int(text.split(".")[1])):
        table.add_row(f"Python {version}", str(environments.find_python(version) or "not found"))
    sets = {task.data: _data(task.data) for task in known.tasks.values() if task.data}
    for name, (text, _) in sets.items():
        table.add_row(f"data {name}", text)
    for name in environments.names():
        for state, rows in _states(name, known, kernels, cards).items():
            table.add_row(f"environment {name}", f"{state}{rows}")
    Console().print(table)
    blocked = any(
        found.obstacle() for found in needed if kernels.interpreter(found.name) is None and not found.is_ready()
    )
    return 1 if blocked or not all(there for _, there in sets.values()) else 0


def _environments(known: Catalog, kernels: Kernels, cards: list[Gpu]) -> list[Environment]:
    """All that rows get on these cards, each once, and those that no row has."""
    found = {name: environments.load(name) for name in environments.names()}
    for row in known.rows():
        found.pop(row.environment, None)
    for row in known.rows():
        for gpus in [[card] for card in cards] or [[]]:
            try:
                environment = kernels.environment(row, gpus)
                found[environment.title] = environment
            except Unavailable:
                continue
    return list(found.values())


def _states(name: str, known: Catalog, kernels: Kernels, cards: list[Gpu]) -> dict[str, str]:
    """The states of an environment, each with the rows that it is of where there are several."""
    rows: dict[str, list[str]] = {}
    for row in known.rows():
        if row.environment == name:
            rows.setdefault(kernels.state(row, cards), []).append(known.label(row))
    if not rows:
        return {environments.load(name).state(): ""}
    return {state: f" ({', '.join(labels)})" if len(rows) > 1 else "" for state, labels in rows.items()}


def _data(dataset: str) -> tuple[str, bool]:
    try:
        return str(data.locate(dataset, fetch=False)), True
    except RosettaError as error:
        return str(error), False
