"""Changed copies of notebooks, each in a checkout of its own, which has the real ``common``."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import nbformat

from rosetta.catalog import Row
from rosetta.paths import checkout


class Copy(Row):
    """A row whose notebook is a changed copy elsewhere."""

    path: Path

    @property
    def notebook(self) -> Path:
        return self.path

    @property
    def program(self) -> None:
        """The copy has its changes already."""


def copied(row: Row, code: dict[str, str], folder: Path) -> Copy:
    """Write the row's notebook below the folder, with this code by role in place of its own."""
    notebook = nbformat.read(row.notebook, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = code[cell.metadata.tags[0]]
    path = folder / "notebooks" / row.task / row.notebook.name
    path.parent.mkdir(parents=True)
    shutil.copytree(checkout.root / "common", folder / "common", ignore=shutil.ignore_patterns("__pycache__"))
    nbformat.write(notebook, path)
    return Copy(**row.model_dump(), path=path)


def edited(code: dict[str, str], edits: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """The cells with parts of them replaced. edits: role of a cell, what must stand there, what is to stand there."""
    code = dict(code)
    for role, before, after in edits:
        assert before in code.get(role, ""), f"the cell {role} does not hold {before}"
        code[role] = code[role].replace(before, after)
    return code
