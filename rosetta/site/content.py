"""One task's part of the site: its rows, programs, records and proofs, read once for all pages."""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rosetta.catalog import Catalog, Framework, Row
from rosetta.paths import COMMON
from rosetta.records import Record
from rosetta.report.columns import TaskResults
from rosetta.report.tables import Cell
from rosetta.site import concepts, programs
from rosetta.site.concepts import Concept
from rosetta.site.programs import Program
from rosetta.tasks import Task

COLUMNS = 2  # that a comparison begins with


@dataclass
class TaskContent:
    task: Task
    frameworks: dict[str, Framework]  # those with a notebook of this task, in the catalog's order
    rows: list[Row]  # that can run
    first: list[str]  # names of the rows that a comparison begins with
    results: TaskResults
    badges: dict[str, Cell]  # by row name, of what was verified
    constants: dict[str, str]  # those that the network page shows: name -> the comment behind it

    @classmethod
    def of(cls, catalog: Catalog, key: str, records: list[Record], badges: dict[str, Cell]) -> "TaskContent":
        """Of all records those of this task whose rows the catalog still has."""
        rows = catalog.rows(key)
        frameworks = {row.framework: catalog.frameworks[row.framework] for row in rows}
        results = TaskResults.of(catalog, key, records)
        first = catalog.first(key, COLUMNS)
        return cls(
            catalog.task(key), frameworks, rows, first, results, badges, _constants(_params(key), catalog.task(key))
        )

    @property
    def key(self) -> str:
        return self.task.key

    @cached_property
    def programs(self) -> dict[str, Program]:
        """The notebooks, by framework."""
        return {key: programs.notebook(self.task.folder / f"{key}.ipynb", self.task.kind) for key in self.frameworks}

    @cached_property
    def reference(self) -> Program | None:
        """The task in NumPy; None where it has no reference."""
        module = COMMON / "reference" / f"{self.key}.py"
        return programs.reference(module, _params(self.key), self.task.kind) if module.is_file() else None

    @cached_property
    def concepts(self) -> dict[str, Concept]:
        return concepts.read(self.task.folder / "concepts.toml")

    def of_framework(self, framework: str) -> list[Row]:
        return [row for row in self.rows if row.framework == framework]


def _params(key: str) -> Path:
    return COMMON / "params" / f"{key}.py"


def _constants(params: Path, task: Task) -> dict[str, str]:
    """The constants of a params module with the comment behind each."""
    shown = {*task.constants(), "WEIGHT_SHAPES"}
    text = params.read_text(encoding="utf-8")
    lines, constants = text.splitlines(), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in shown:
            constants[node.targets[0].id] = lines[node.lineno - 1].partition("#")[2].strip()
    return constants
