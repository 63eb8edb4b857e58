"""Tasks: everything that a workload says of itself, read from ``notebooks/<task>/task.toml`` and ``common/params/<task>.py``.

Also whether a value can stand in the place of a parameter.
"""

import importlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from rosetta import files
from rosetta.errors import RosettaError, unknown
from rosetta.files import Count, Fraction, Name, Number, Positive, Strict
from rosetta.kinds import KINDS, Kind
from rosetta.kinds.kind import BATCH, Quantity, Verdict
from rosetta.paths import checkout

PRESETS = ("smoke", "quick", "epoch", "full")
SOME = {"epoch"}  # presets that not every task has
UNTIMED = "smoke"  # the preset whose times mean nothing: runs may share a device
# In records and presets beside parameters, and no notebook's: variables of the run's process tell them to ``common``
TOLD = {"SYNTHETIC": False, "TEST_EACH_EPOCH": False, "SAVE_TO": ""}
LARGEST = 10**15  # of any number


def fits(value: Any, usual: Any) -> bool:
    """Whether a value has the type of the usual one (None: any simple type) and is in its range.

    Numbers are finite. A whole number whose usual value is 1 or more is a count, and 0 counts nothing.
    """
    if usual is None:
        return value is None or fits(value, value) and not isinstance(value, list | dict)
    if isinstance(usual, bool) or isinstance(value, bool) or not isinstance(usual, int | float):
        return type(value) is type(usual)
    if isinstance(usual, int):
        return isinstance(value, int) and min(usual, 1) <= value <= LARGEST
    return isinstance(value, int | float) and (-LARGEST if usual < 0 else 0) <= value <= LARGEST


def check_values(values: Mapping[str, Any], usual: Mapping[str, Any], where: str) -> None:
    """Raises RosettaError for a value whose name is not among the usual ones, or that does not fit there.

    where: the values stand, for the message.
    """
    for name, value in values.items():
        if name not in usual:
            raise unknown(f"parameter in {where}:", name, usual)
        if not fits(value, usual[name]):
            raise RosettaError(f"{where}: {name} is {usual[name]!r} by itself; it cannot be {value!r:.60}")


class Cost(Strict):
    """What a run costs, roughly: for the estimate before a batch, until this machine has records."""

    start_s: Positive = 10.0  # import, build and compile, seconds
    # Milliseconds for each item of the kind's work: a training example, an input, ...
    item_ms: Positive = 5.0  # on 2 CPU cores
    gpu_item_ms: Positive = 0.2  # the K80 of 2018 took 0.34, its P100 0.10 for a training image of the first task


class Looser(Strict):
    """A tolerance of ``verify`` that a row needs beyond the usual one, and why."""

    tolerance: Positive
    reason: str


class RowFacts(Strict):
    """What a task says of one row."""

    cost: Cost = Cost()
    looser: dict[str, Looser] = {}  # by quantity of the kind's levels
    variables: dict[str, str] = {}  # of its kernels in this task, as a variant's
    flavour: str | None = None  # the published variant of a layer that the framework is bound to
    lacks: dict[str, str] = {}  # network or entry -> why the framework cannot have it, where a task has several
    lacks_on_cpu: dict[str, str] = {}  # network -> why not every CPU computes it
    zoo: dict[str, str] = {}  # network of its own zoo -> how it is another one, Markdown; empty: it is the task's
    slow_on_cpu: str | None = None  # why it runs the smoke preset at most where there is no GPU
    gpu_only: str | None = None  # why a batch leaves it out where there is no GPU, unless it is named
    feeds: Literal["resident", "prefetch", "batch"] | None = None  # how examples come to a GPU: see docs/gpu.md
    waits: Literal["epoch", "step"] | None = None  # how often Python waits for a GPU while it trains
    absent: str | None = None  # why the row cannot exist; it is shown with this reason and never run

    @model_validator(mode="after")
    def _of_the_zoo(self) -> "RowFacts":
        if both := [name for name in self.zoo if name in self.lacking(gpu=False)]:
            raise ValueError(f"zoo has {both[0]}, which the row lacks")
        return self

    def lacking(self, gpu: bool) -> dict[str, str]:
        """Networks that measurements and proofs on a machine with or without a GPU leave out, each with its reason."""
        return self.lacks if gpu else self.lacks | self.lacks_on_cpu


class Check(Strict):
    """A short run without chance by which tests tell that a row does what it should."""

    parameters: dict[str, Any]  # over the smallest preset
    least: dict[str, Number]  # metric -> what it must exceed


class Protocol(Strict):
    """How a publication measured: which points, and how often each."""

    title: str
    about: str  # what it showed, Markdown
    warmup: Count = 10  # steps that do not count
    steps: Count = 100  # that are timed at once
    repeats: Count = 5
    threads: Literal["all", "each"] = "all"  # all processors, or also 1, 2, 4 ... of them
    unit: Literal["ms", "examples/s"] = "ms"  # of its figures
    published: list[Name] = []  # files below results/published
    points: list[dict[str, Any]]  # parameters; a list stands for each of its values
    points_on_cpu: list[dict[str, Any]] | None = None  # where there is no GPU, if others

    def on(self, gpu: bool) -> "Protocol":
        """With the points of a machine with or without a GPU."""
        points = self.points if gpu or self.points_on_cpu is None else self.points_on_cpu
        return self.model_copy(update={"points": points})

    def places(self) -> list[dict[str, Any]]:
        """The parameters of each point, once."""
        places = [place for group in self.points for place in places_of(group)]
        return list({frozenset(place.items()): place for place in places}.values())


def places_of(group: dict[str, Any]) -> list[dict[str, Any]]:
    """The points of one entry of a protocol."""
    values = (value if isinstance(value, list) else [value] for value in group.values())
    return [dict(zip(group, each)) for each in product(*values)]


class Task(Strict):
    """One workload. Its parameters and reference are the modules of its name below ``common.params`` and ``common.reference``."""

    key: str = ""  # the name of its folder
    title: str
    kind_name: Literal[tuple(KINDS)] = Field(alias="kind")
    data: Name | None = None  # module below common.data
    presets: dict[str, dict[str, Any]]  # over the constants
    sweep: dict[str, list[Any]] = {}  # axes besides the number of threads
    # Parameters that only some notebooks have: their values, the usual one first; of a number that one alone
    switches: dict[str, list[str] | tuple[int]] = {}
    protocols: dict[str, Protocol] = {}  # published ones, that `measure sweep --protocol` repeats
    compared: list[dict[str, Any]] = [{}]  # parameters over the task's own with which `measure fastest` measures
    without_chance: dict[str, Any] = {}  # parameters of a run in which nothing is random, for ``verify``
    tolerances: dict[str, Positive] = {}  # of ``verify``, where this task needs others than its kind
    score: str | None = None  # what the kind's first figure is called, where it is no accuracy
    guessing: Fraction | None = None  # the accuracy of a guess, or that other score, where there is one
    check: Check | None = None
    about: dict[str, str] = {}  # role -> what that step is in every notebook of this task, Markdown
    figures: str = ""  # what the figures of this task mean, Markdown, besides what its kind says
    published: list[Name] = []  # files below results/published
    weights: dict[str, Name] = {}  # who publishes weights -> the framework whose program in programs/weights reads them
    rows: dict[str, RowFacts] = {}  # of a row, or of "framework[*]"

    @field_validator("presets")
    @classmethod
    def _complete(cls, presets: dict) -> dict:
        if not set(PRESETS) - SOME <= set(presets) <= set(PRESETS):
            needed = ", ".join(name for name in PRESETS if name not in SOME)
            raise ValueError(f"a task has the presets {needed}, and may have {', '.join(sorted(SOME))}")
        return presets

    @property
    def kind(self) -> Kind:
        return KINDS[self.kind_name]

    @property
    def main(self) -> tuple[Quantity, ...]:
        """The kind's main figures, the first under this task's own name."""
        first, *others = self.kind.main
        return replace(first, heading=self.score or first.heading), *others

    @property
    def folder(self) -> Path:
        return checkout.notebooks / self.key

    @property
    def file(self) -> str:
        """The task's own file, as messages name it."""
        return f"notebooks/{self.key}/task.toml"

    def facts(self, name: str) -> RowFacts:
        """Of a row by its name; what is said of all rows of its framework counts where nothing else is said."""
        of_all, own = (self.rows.get(key, RowFacts()) for key in (f"{name.partition('[')[0]}[*]", name))
        return of_all.model_copy(update={field: getattr(own, field) for field in own.model_fields_set})

    @cached_property
    def params(self) -> ModuleType:
        return _module("params", self.key)

    @property
    def reference(self) -> ModuleType:
        """The task in NumPy; it takes NumPy to import it."""
        return _module("reference", self.key)

    def constants(self) -> dict[str, Any]:
        """The shared constants that a run may change: the numbers and texts of the params module."""
        values = vars(self.params).items()
        constants = {name: value for name, value in values if name.isupper() and isinstance(value, int | float | str)}
        lacking = [name for name in self.kind.constants if name not in constants]
        module = f"common/params/{self.key}.py"
        if lacking:
            raise RosettaError(f"{module} lacks {', '.join(lacking)}, which kind {self.kind.name} needs")
        check_values(constants, constants | self.kind.constants, module)
        return constants

    @property
    def paths(self) -> list[str]:
        """The shared constants that name a file or a folder that a run may be given: None in the params module."""
        return [name for name, value in vars(self.params).items() if name.isupper() and value is None]

    def examine(self) -> None:
        """Raises RosettaError where the file sets a parameter that there is not or that does not fit, or names no metric."""
        places = {f"presets.{name}": values for name, values in self.presets.items()}
        places["without_chance"] = self.without_chance
        places |= {f"sweep.{name}, {value}": {name: value} for name, values in self.sweep.items() for value in values}
        places |= {f"compared, {point}": point for point in self.compared}
        for key, protocol in self.protocols.items():
            for point in protocol.on(gpu=True).places() + protocol.on(gpu=False).places():
                places[f"protocols.{key}, point {point}"] = point
        if self.check:
            places["check.parameters"] = self.check.parameters
            for metric in self.check.least.keys() - self.kind.metrics.model_fields.keys():
                raise unknown(f"metric in check.least of {self.file}:", metric, self.kind.metrics.model_fields)
        for place, values in places.items():
            self.fit(values, f"{place} of {self.file}", {"TEST_EACH_EPOCH": False})

    def fit(self, values: dict[str, Any], where: str, besides: Mapping[str, Any] | None = None) -> None:
        """Raises RosettaError for a value that is no parameter's, of another type, or a size that there is not.

        where: the values stand. besides: parameters that are no constants.
        """
        constants, choices = self.constants(), getattr(self.params, "CHOICES", {})
        usual = {name: choice[0] for name, choice in self.switches.items()}
        choices = choices | {name: choice for name, choice in self.switches.items() if isinstance(choice, list)}
        check_values(values, constants | usual | (besides or {}), where)
        for name in values.keys() & choices:
            if values[name] not in choices[name]:
                raise unknown(f"{name} in {where}:", values[name], choices[name])
        for name in (
            self.kind.bounded if self.data else ()
        ):  # a task that generates its data has as many as it is asked for
            if values.get(name, 0) > constants[name]:
                raise RosettaError(f"{where}: {name} is {values[name]}, but there are only {constants[name]}")

    def verdict(self, quantity: Quantity, runs: list) -> Verdict | None:
        """What is said of these records in place of a figure that means nothing yet."""
        if self.guessing is None or not self.kind.trains:
            return None
        return self.kind.verdict(quantity, runs, self.constants(), self.guessing)

    def share(self, constants: dict[str, Any]) -> float:
        """The work of an item against that of an item with the task's own constants."""
        return self.kind.share(self.params, constants)

    def flop(self, constants: dict[str, Any]) -> int | None:
        """FLOP of a step: what no framework goes below without computing less, as Winograd's convolutions do.

        None where the task does not say what its forward pass computes.
        """
        return self.kind.flop(self.params, constants)

    def step_s(self, facts: RowFacts, constants: dict[str, Any], gpu: bool) -> float:
        """Seconds that a step of a row should take, by its cost."""
        item_ms = facts.cost.gpu_item_ms if gpu else facts.cost.item_ms
        return constants[BATCH] * item_ms / 1000 * self.share(constants)

    def expected(self, name: str) -> dict[str, Any]:
        """What every finished run of this row must have reported, by field of its metrics.

        Raises RosettaError where the task's network has flavours and the row says none of them.
        """
        expected, flavours = (getattr(self.params, constant, {}) for constant in ("EXPECTED", "FLAVOURS"))
        flavour = self.facts(name).flavour
        if flavours and flavour is None:
            reason = f"of FLAVOURS in common/params/{self.key}.py; say it below [rows] of {self.file}"
            raise RosettaError(f"{self.key}/{name} has no flavour: it is one {reason}")
        if flavours and flavour not in flavours:
            raise unknown(f"flavour of {name} in {self.file}:", flavour, flavours)
        return expected[flavour] if flavours else expected


def _module(package: str, key: str) -> ModuleType:
    try:
        return importlib.import_module(f"common.{package}.{key}")
    except ModuleNotFoundError as error:
        if error.name != f"common.{package}.{key}":
            raise
        raise RosettaError(f"task {key} has no common/{package}/{key}.py") from None


def load(folder: Path) -> Task:
    """The task of a folder of notebooks."""
    return files.load(Task, folder / "task.toml").model_copy(update={"key": folder.name})
