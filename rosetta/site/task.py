"""One task's part of the site: its rows, programs, records and proofs, read once for all pages."""

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rosetta.catalog import Catalog, Framework, Row
from rosetta.paths import COMMON, NOTEBOOKS
from rosetta.records import Record
from rosetta.site import concepts, programs
from rosetta.site.concepts import Concept
from rosetta.site.programs import Program
from rosetta.verify.conformance import Conformance


@dataclass
class Task:
    key: str
    title: str
    params: str  # module below common.params
    frameworks: dict[str, Framework]  # those of this task, in the catalog's order
    rows: list[Row]
    records: list[Record]
    verified: dict[str, Conformance]  # by row name
    reference: Program
    constants: dict[str, str]  # name -> the comment behind it

    @cached_property
    def programs(self) -> dict[str, Program]:
        """The notebooks, by framework."""
        return {key: programs.notebook(NOTEBOOKS / self.key / f"{key}.ipynb") for key in self.frameworks}

    @cached_property
    def concepts(self) -> dict[str, Concept]:
        return concepts.read(NOTEBOOKS / self.key / "concepts.toml")

    def of(self, framework: str) -> list[Row]:
        """The rows of a framework."""
        return [row for row in self.rows if row.framework == framework]


def make(catalog: Catalog, key: str, found: list[Record], verified: list[Conformance]) -> Task:
    """Of all records and proofs, those of this task whose rows the catalog still has."""
    task, rows = catalog.task(key), catalog.rows(key)
    names = {row.name for row in rows}
    params = COMMON / "params" / f"{task.params}.py"
    return Task(
        key,
        task.title,
        task.params,
        {name: one for name, one in catalog.frameworks.items() if key in one.tasks},
        rows,
        [record for record in found if record.task == key and record.name in names],
        {one.name: one for one in verified if one.task == key and one.name in names},
        programs.reference(COMMON / "reference" / f"{task.reference}.py", params),
        _constants(params),
    )


def _constants(params: Path) -> dict[str, str]:
    """The constants of a params module with the comment behind each."""
    text = params.read_text(encoding="utf-8")
    lines, found = text.splitlines(), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = lines[node.lineno - 1].partition("#")[2].strip()
    return found
