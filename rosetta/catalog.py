"""The catalog: which frameworks there are, and the rows that they make in each task."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rosetta import files, tasks
from rosetta import notebook as notebooks
from rosetta.errors import RosettaError, unknown
from rosetta.files import Count, Module, Name, Strict
from rosetta.kinds import Kind
from rosetta.paths import checkout, from_root
from rosetta.records import Named
from rosetta.tasks import TOLD, RowFacts, Task, check_values

SCHEMA = 2


class Variant(Strict):
    """A framework's notebooks with other parameters, in another environment, or with cells that a program changes.

    One that has neither parameters nor an environment is what its program makes of it (``Row.program``), in the tasks whose
    ``task.toml`` names the row.
    """

    title: str | None = None
    environment: Name | None = None
    imports: tuple[Module, ...] | None = None
    parameters: dict[str, Any] = {}
    variables: dict[str, str] = {}

    @property
    def is_program(self) -> bool:
        """Whether nothing but a program can tell it from the notebook."""
        return not (self.parameters or self.environment)


class Framework(Strict):
    """One framework: it has a row in each task that has its notebook, ``notebooks/<task>/<framework>.ipynb``."""

    title: str
    environment: Name
    imports: tuple[Module, ...]  # that an interpreter must have to run it
    released: Count
    retired: Count | None = None  # year of the last release, of a framework that has ended
    homepage: str = Field(pattern=r"^https?://")
    aliases: tuple[str, ...] = ()  # other words that people type for it, in small letters
    plain: bool = True  # whether the notebook with its own defaults is a row
    variants: dict[Name, Variant] = {}

    def words(self, key: str) -> set[str]:
        """What people type for it: its key, the first word of its title, its aliases."""
        return {key, self.title.lower().split()[0], *self.aliases}

    @property
    def complete_variants(self) -> dict[str | None, Variant]:
        """What its rows are, each with environment and imports. The notebook with its own defaults is named None."""
        complete = {}
        for name, variant in (({None: Variant()} if self.plain else {}) | self.variants).items():
            environment, imports = variant.environment or self.environment, variant.imports or self.imports
            complete[name] = variant.model_copy(update={"environment": environment, "imports": imports})
        return complete


class Row(Named, BaseModel):
    """One line of a table: a framework's notebook of one task, in one variant."""

    model_config = ConfigDict(frozen=True)

    task: str
    framework: str
    variant: str | None
    title: str
    environment: str
    imports: tuple[str, ...]
    parameters: dict[str, Any]
    variables: dict[str, str]  # of its kernels, over those of the environment; one that is empty is left out
    facts: RowFacts

    @property
    def notebook(self) -> Path:
        return checkout.notebooks / self.task / f"{self.framework}.ipynb"

    @property
    def program(self) -> Path | None:
        """What changes the notebook's cells: ``programs/variants/TASK/FRAMEWORK-VARIANT.py``, else that of any task; None: nothing."""
        file = notebooks.program("variants", self.task, f"{self.framework}-{self.variant}")
        return file if file.is_file() else None

    @property
    def code(self) -> dict[str, str]:
        """The code of each role as it runs, in the notebook's order."""
        code = notebooks.by_role(self.notebook)
        return notebooks.changed(code, *notebooks.changes(self.program, code)) if self.program else code


class LeftOut(Strict):
    """Variables of the user's shell that no notebook gets, and those that it does get; patterns of names. ``rosetta.shell`` reads them."""

    variables: tuple[str, ...] = ()
    but_for: tuple[str, ...] = ()


class Frameworks(Strict):
    """``catalog.toml``."""

    version: Literal[SCHEMA] = Field(alias="schema")
    main: Name | None = None  # the task that runs where none is named; none: the first
    compared: tuple[str, ...] = ()  # frameworks that a comparison begins with; none: the first ones
    left_out: LeftOut = LeftOut()
    frameworks: dict[Name, Framework]


class Catalog:
    """The frameworks and the tasks."""

    def __init__(self, content: Frameworks, tasks: dict[str, Task]):
        self.frameworks, self.compared, self.tasks = content.frameworks, content.compared, tasks
        self.main = content.main or next(iter(tasks), "")
        self._bound: dict[Path, dict[str, Any] | None] = {}
        self._rows = {key: self._make(task) for key, task in tasks.items()}

    def task(self, key: str) -> Task:
        if key not in self.tasks:
            raise unknown("task", key, self.tasks)
        return self.tasks[key]

    def kind(self, row: Named) -> Kind:
        """Of the task of a row or record."""
        return self.task(row.task).kind

    def bound(self, notebook: Path, task: Task) -> dict[str, Any] | None:
        """What the parameters cell of a notebook binds, as ``notebook.bound`` has it; None where that cannot be read."""
        if notebook not in self._bound:
            self._bound[notebook] = notebooks.bound(notebook, vars(task.params))
        return self._bound[notebook]

    def rows(self, task: str | None = None) -> list[Row]:
        """The rows of a task, or of all, in the catalog's order; without those that cannot exist."""
        return [row for row in self.shown(task) if row.facts.absent is None]

    def shown(self, task: str | None = None) -> list[Row]:
        """All rows, those that cannot exist too."""
        keys = [self.task(task).key] if task else list(self.tasks)
        return [row for key in keys for row in self._rows[key]]

    def first(self, task: str, count: int) -> list[str]:
        """The names of so many rows of a task, each of another framework, that a comparison begins with."""
        names: dict[str, str] = {}
        for row in self.rows(task):
            names.setdefault(row.framework, row.name)
        ordered = dict.fromkeys([key for key in self.compared if key in names] + list(names))
        return [names[key] for key in ordered][:count]

    def label(self, row: Named) -> str:
        """What tells a row from all others: without its task where that is the only one to have it."""
        several = sum(other.name == row.name for other in self.rows()) > 1
        return row.full_name if several else row.name

    def select(self, names: Iterable[str], task: str | None = None) -> list[Row]:
        """The rows that the names ask for; no name asks for all of the task, or of every task.

        ``pytorch`` is the plain row, or every variant of a framework without one; ``pytorch[compiled]`` one variant;
        ``pytorch[*]`` all rows: in every task, or in the one that ``task`` or ``TASK/`` in front of a name says.
        """
        rows, names = self.rows(task), list(names)
        chosen = [row for name in names for row in self._named(name, rows)]
        return [row for row in rows if row in chosen] if names else rows

    def to_run(self, names: Iterable[str], tasks: Collection[str] = (), every: bool = False) -> list[Row]:
        """The rows that a batch is asked for: of the main task, unless ``tasks`` or ``every`` or ``TASK/`` in a name asks for more.

        A name that the main task does not have is looked for in the others. Raises RosettaError for a name that is none.
        """
        wanted = [self.task(key).key for key in tasks] or ([*self.tasks] if every else [self.main])
        rows = [row for key in wanted for row in self.rows(key)]
        chosen = []
        for name in names:
            there = tasks or any(row.framework == name.partition("[")[0] for row in rows)
            chosen += self._named(name, rows if there and "/" not in name else self.rows())
        return [row for row in self.rows() if row in chosen] if chosen else rows

    def _named(self, name: str, rows: list[Row]) -> list[Row]:
        if name in self.tasks:
            raise RosettaError(f"{name} is a task: say --task {name}, or {name}/{rows[0].name}")
        key, slash, rest = name.rpartition("/")
        if slash:
            rows = [row for row in rows if row.task == self.task(key).key]
        framework, _, variant = rest.partition("[")
        variants = [row for row in rows if row.framework == framework]
        if name == "all":
            raise RosettaError("all is the name of no row: leave out names, and all rows are taken")
        if not variants:
            raise unknown("framework", framework, {row.framework for row in rows})
        if variant == "*]":
            return variants
        same = [row for row in variants if row.name == rest]
        if variant and not same:
            raise unknown("variant", rest, {row.name for row in variants})
        return same or variants

    def _make(self, task: Task) -> list[Row]:
        """The rows of a task: of every notebook, in its variants that apply, and those that it says cannot exist."""
        made = []
        for key, framework in self.frameworks.items():
            for name, variant in framework.complete_variants.items():
                facts = task.facts(key if name is None else f"{key}[{name}]")
                row = Row(
                    task=task.key,
                    framework=key,
                    variant=name,
                    title=variant.title or (framework.title if name is None else f"{framework.title} [{name}]"),
                    environment=variant.environment,
                    imports=variant.imports,
                    parameters=variant.parameters,
                    variables=facts.variables | variant.variables,
                    facts=facts,
                )
                if row.facts.absent or self._applies(row, framework.variants.get(name)):
                    made.append(row)
        return made

    def _applies(self, row: Row, variant: Variant | None) -> bool:
        """Whether the notebook is there, and makes a row of the variant: it binds its parameters, or the task names the row."""
        if not row.notebook.is_file():
            return False
        task = self.tasks[row.task]
        if variant and variant.is_program:
            return row.name in task.rows
        bound = self.bound(row.notebook, task)
        return bound is None or set(row.parameters) <= set(bound)


def load() -> Catalog:
    """Read and check the catalog and the tasks: what they name must be there."""
    path = checkout.catalog
    folders = [file.parent for file in sorted(checkout.notebooks.glob("*/task.toml"))]
    catalog = Catalog(files.load(Frameworks, path), {folder.name: tasks.load(folder) for folder in folders})
    for name in catalog.compared:
        if name not in catalog.frameworks:
            raise unknown(f"framework in compared of {path.name}:", name, catalog.frameworks)
    if not catalog.tasks:
        raise RosettaError("there is no notebooks/*/task.toml: run from a complete checkout")
    if catalog.main not in catalog.tasks:
        raise unknown(f"task in main of {path.name}:", catalog.main, catalog.tasks)
    for key, task in catalog.tasks.items():
        names = {name for row in catalog.shown(key) for name in (row.name, f"{row.framework}[*]")}
        for name in task.rows:
            if name not in names:
                raise unknown(f"row in {task.file}:", name, names)
        for file in task.folder.glob("*.ipynb"):
            if file.stem not in catalog.frameworks:
                raise unknown(f"framework of notebooks/{key}/{file.name}:", file.stem, catalog.frameworks)
    for row in catalog.rows():
        if not (checkout.environments / row.environment / "environment.toml").is_file():
            raise RosettaError(f"{path.name}: {row.name} names the environment {row.environment}, which is not there")
    _check_parameters(catalog, path.name)
    _check_programs(catalog, path.name)
    return catalog


def _check_programs(catalog: Catalog, name: str) -> None:
    """A variant that only a program makes has one, in each task that names its row."""
    for key, framework in catalog.frameworks.items():
        for variant in (variant for variant, declared in framework.variants.items() if declared.is_program):
            rows = [row for row in catalog.rows() if (row.framework, row.variant) == (key, variant)]
            if not rows or not all(row.program for row in rows):
                where = f"{name}: frameworks.{key}.variants.{variant} sets neither parameters nor an environment"
                raise RosettaError(
                    f"{where}: it takes programs/variants/{key}-{variant}.py, and a task.toml that names its row"
                )


def _check_parameters(catalog: Catalog, name: str) -> None:
    """What tasks and variants set must be bound by the notebooks, or a run would not be what its name says."""
    made = {(row.framework, row.variant) for row in catalog.shown()}
    for row in catalog.rows():  # a variant that none of its framework's notebooks binds is misspelt
        for key, variant in catalog.frameworks[row.framework].variants.items():
            if (row.framework, key) not in made:
                where = f"frameworks.{row.framework}.variants.{key}.parameters of {name}, for {from_root(row.notebook)}"
                check_values(variant.parameters, catalog.bound(row.notebook, catalog.task(row.task)) or {}, where)
    for task in catalog.tasks.values():
        task.examine()
        if task.data and not (checkout.common / "data" / f"{task.data}.py").is_file():
            raise RosettaError(f"{task.file}: data: there is no common/data/{task.data}.py")
        for row in catalog.rows(task.key):
            bound, file = catalog.bound(row.notebook, task), from_root(row.notebook)
            if bound is None:
                continue
            where = f"frameworks.{row.framework}.variants.{row.variant}.parameters of {name}, for {file}"
            check_values(row.parameters, bound, where)
            for preset, values in task.presets.items():
                if lacking := [parameter for parameter in values if parameter not in bound | TOLD | task.kind.judged]:
                    where = f"{task.file}: presets.{preset} sets {lacking[0]}"
                    raise RosettaError(f"{where}, which the parameters cell of {file} does not bind")
