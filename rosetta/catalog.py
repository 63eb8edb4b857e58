"""The catalog: which tasks and frameworks there are, and the rows that they make."""

import difflib
import importlib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rosetta.errors import RosettaError
from rosetta.naming import Named
from rosetta.paths import CATALOG, ENVIRONMENTS, NOTEBOOKS

PRESETS = ("smoke", "quick", "full")


class Strict(BaseModel):
    """A table of the catalog in which a misspelt key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Task(Strict):
    """One workload. ``params``, ``data`` and ``reference`` name modules below the packages of ``common`` of that name."""

    title: str
    params: str
    data: str
    reference: str
    presets: dict[str, dict[str, Any]]

    def parameters(self) -> dict[str, Any]:
        """The shared constants of the task that a run may change: the numbers of its params module."""
        module = importlib.import_module(f"common.params.{self.params}")
        return {
            name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, int | float)
        }

    def expected(self) -> dict[str, Any]:
        """What every finished run must have reported, by field of its metrics."""
        return importlib.import_module(f"common.params.{self.params}").EXPECTED


class Cost(Strict):
    """What a run costs on 2 CPU cores, roughly: for the estimate before a batch, until this machine has records."""

    start_s: float = 10.0  # import, build and compile, seconds
    image_ms: float = 5.0  # one training image, milliseconds


class Looser(Strict):
    """A tolerance of ``verify`` that a row needs beyond the usual one, and why."""

    tolerance: float
    reason: str


class Variant(Strict):
    """A framework's notebook with other parameters, or in another environment."""

    title: str | None = None
    environment: str | None = None
    imports: tuple[str, ...] | None = None
    parameters: dict[str, Any] = {}
    cost: Cost | None = None
    looser: dict[str, Looser] = {}


class Framework(Strict):
    """One framework: its notebooks lie at ``notebooks/<task>/<framework>.ipynb`` for each of its tasks."""

    title: str
    tasks: tuple[str, ...]
    environment: str
    imports: tuple[str, ...]  # modules that an interpreter must have to run it
    released: int
    retired: int | None = None  # year of the last release, of a framework that has ended
    homepage: str = Field(pattern=r"^https?://")
    cost: Cost = Cost()
    slow_on_cpu: str | None = None  # why it runs the smoke preset at most where there is no GPU
    looser: dict[str, Looser] = {}  # by quantity, as rosetta.verify.levels.TOLERANCES names them
    plain: bool = True  # whether the notebook with its own defaults is a row
    variants: dict[str, Variant] = {}


class Row(Named, BaseModel):
    """One line of the table: a framework's notebook of one task, in one variant."""

    model_config = ConfigDict(frozen=True)

    task: str
    framework: str
    variant: str | None
    title: str
    environment: str
    imports: tuple[str, ...]
    parameters: dict[str, Any]
    cost: Cost
    slow_on_cpu: str | None
    looser: dict[str, Looser] = {}

    @property
    def notebook(self) -> Path:
        return NOTEBOOKS / self.task / f"{self.framework}.ipynb"


class Catalog(Strict):
    version: int = Field(alias="schema")
    tasks: dict[str, Task]
    frameworks: dict[str, Framework]

    def rows(self, task: str) -> list[Row]:
        """The rows of a task, in the catalog's order."""
        self.task(task)
        return [
            row
            for key, framework in self.frameworks.items()
            if task in framework.tasks
            for row in _rows(task, key, framework)
        ]

    def task(self, name: str) -> Task:
        if name not in self.tasks:
            raise unknown("task", name, self.tasks)
        return self.tasks[name]

    def select(self, task: str, names: Iterable[str]) -> list[Row]:
        """The rows that the names ask for; no name asks for all.

        ``pytorch`` is the plain row, or every variant of a framework without one; ``pytorch[compiled]`` one variant; ``pytorch[*]`` all rows.
        """
        rows = self.rows(task)
        chosen: list[Row] = []
        for name in names:
            chosen += [row for row in self._named(name, rows) if row not in chosen]
        return [row for row in rows if row in chosen] if names else rows

    def _named(self, name: str, rows: list[Row]) -> list[Row]:
        framework, _, rest = name.partition("[")
        own = [row for row in rows if row.framework == framework]
        if not own:
            raise unknown("framework", framework, {row.framework for row in rows})
        if not rest:
            return [row for row in own if row.variant is None] or own
        variant = rest.removesuffix("]")
        if variant == "*":
            return own
        found = [row for row in own if row.variant == variant]
        if not found:
            raise unknown("variant", name, {row.name for row in own})
        return found


def _rows(task: str, key: str, framework: Framework) -> list[Row]:
    plain = {None: Variant()} if framework.plain else {}
    return [
        Row(
            task=task,
            framework=key,
            variant=name,
            title=variant.title or (framework.title if name is None else f"{framework.title} [{name}]"),
            environment=variant.environment or framework.environment,
            imports=variant.imports or framework.imports,
            parameters=variant.parameters,
            cost=variant.cost or framework.cost,
            slow_on_cpu=framework.slow_on_cpu,
            looser=framework.looser | variant.looser,
        )
        for name, variant in (plain | framework.variants).items()
    ]


def load(path: Path = CATALOG) -> Catalog:
    """Read and check the catalog: every notebook and environment that it names must be there."""
    try:
        catalog = Catalog.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise RosettaError(f"{path.name} is not there: run from a complete checkout") from None
    except tomllib.TOMLDecodeError as error:
        raise RosettaError(f"{path.name} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise RosettaError(f"{path.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    for key, framework in catalog.frameworks.items():
        for task in framework.tasks:
            catalog.task(task)
            for row in _rows(task, key, framework):
                _check(path, row)
    return catalog


def _check(path: Path, row: Row) -> None:
    if not row.notebook.is_file():
        raise RosettaError(
            f"{path.name}: {row.name} names the notebook {row.task}/{row.notebook.name}, which is not there"
        )
    if not (ENVIRONMENTS / row.environment / "environment.toml").is_file():
        raise RosettaError(f"{path.name}: {row.name} names the environment {row.environment}, which is not there")


def unknown(kind: str, name: str, known: Iterable[str]) -> RosettaError:
    """The error for a name that does not exist, with the nearest one that does."""
    known = sorted(known)
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    return RosettaError(f"unknown {kind} {name}; {hint}")
