"""A notebook's code as a plain script, in its row's own environment: what the benchmarks run without the runner."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import nbformat

from rosetta.plan import Plan
from rosetta.run.kernels import Kernels

Edit = tuple[str, str, str]  # role of a cell, what stands there, what is to stand there


def script(planned: Plan, folder: Path, edits: Iterable[Edit] = ()):
    """Write the code cells to a file, with the parameters put where papermill puts them; returns what runs it.

    Calling that returns what the script prints. Raises LookupError for an edit of something that does not stand there.
    """
    kernel = Kernels().get(planned.row.environment, planned.row.imports, folder / "install.log")
    notebook = nbformat.read(planned.row.notebook, as_version=4)
    cells = {cell.metadata.tags[0]: cell.source for cell in notebook.cells if cell.cell_type == "code"}
    for role, before, after in edits:
        if before not in cells[role]:
            raise LookupError(f"{planned.row.name}: the cell {role} does not hold {before}")
        cells[role] = cells[role].replace(before, after)
    given = "\n".join(f"{name} = {value!r}" for name, value in planned.parameters.items())
    first, *others = cells.values()
    file = folder / "script.py"
    file.write_text("\n\n".join([first, given, *others]), encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | kernel.variables

    def run() -> str:
        done = subprocess.run(
            [str(kernel.python), str(file)],
            cwd=planned.row.notebook.parent,
            env=env,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    return run
