"""What the proofs of all kinds share: what a level finds, short runs of a row's own notebook, the reference that these are compared
with, what a failed level tells beyond its numbers, and the table of rows that have computed with the same weights."""

import importlib
import importlib.util
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np

from common.weights import WeightsError, check_weights, save_weights
from rosetta import markdown
from rosetta.catalog import Row
from rosetta.errors import RosettaError, unknown
from rosetta.files import Strict
from rosetta.plan import Plan
from rosetta.records import Commit, Machine, Record
from rosetta.run.devices import Workers
from rosetta.run.execute import execute
from rosetta.run.kernels import Kernels
from rosetta.tasks import Task

# ---- What a level finds

UNITS = dict.fromkeys(("mean", "variance", "spread"), " σ")  # the other quantities have none


class Finding(Strict):
    """What one level found. ``measured`` and ``tolerances`` have the same keys."""

    level: int
    passed: bool
    measured: dict[str, float | None] = {}
    tolerances: dict[str, float] = {}
    reason: str | None = None  # why it failed, in one line


class Judge:
    """Collects in ``finding`` the measurements of one level, the largest of each quantity, and the first reason to fail it."""

    def __init__(self, level: int, tolerances: dict[str, float] | None = None):
        self.finding = Finding(level=level, passed=True)
        self.tolerances = tolerances or {}
        self.place = ""  # what is looked at now, in front of the reason

    def fail(self, reason: str) -> None:
        if self.finding.passed:
            self.finding.passed, self.finding.reason = False, self.place + reason

    def at_most(self, quantity: str, value: float, what: str, tolerance: float | None = None) -> None:
        """Note a measured difference; one that is larger than its tolerance, or no number, fails the level."""
        limit = self.tolerances[quantity] if tolerance is None else tolerance
        largest = self.finding.measured.get(quantity, 0.0)
        is_number = largest is not None and np.isfinite(value)
        self.finding.measured[quantity] = max(float(value), largest) if is_number else None
        self.finding.tolerances[quantity] = limit
        if not value <= limit:
            self.fail(f"{what}: {value:.2g}, allowed {limit:.2g}")


def failed(levels: tuple[int, ...], reason: str) -> list[Finding]:
    """Levels that could not be looked at."""
    return [Finding(level=level, passed=False, reason=reason) for level in levels]


def tolerances(of_kind: dict[str, float], task: Task, row: Row) -> dict[str, float]:
    """A kind's tolerances, with the task's own and the looser ones of a row.

    Raises RosettaError for a quantity that is none, and for a looser tolerance that is not.
    """
    file, looser = f"notebooks/{task.key}/task.toml:", {name: each.tolerance for name, each in row.facts.looser.items()}
    for quantity in (task.tolerances | looser).keys() - of_kind.keys():
        raise unknown(f"tolerance in {file}", quantity, of_kind)
    of_task = of_kind | task.tolerances
    for quantity, tolerance in looser.items():
        if tolerance <= of_task[quantity]:
            raise RosettaError(
                f"{file} looser.{quantity} of {row.name} is {tolerance:g}, all have {of_task[quantity]:g}: leave it out"
            )
    return of_task | looser


def cast(array: np.ndarray, precision: type = np.float64) -> np.ndarray:
    """An array in this precision, where it holds floating-point numbers."""
    return array.astype(precision, copy=False) if array.dtype.kind == "f" else array


def cast_all(arrays: dict[str, np.ndarray], precision: type = np.float64) -> dict[str, np.ndarray]:
    return {name: cast(array, precision) for name, array in arrays.items()}


# ---- Short runs of a notebook

PRESET, TIMEOUT_S = "verify", 900


@dataclass(frozen=True)
class Outputs:
    """What a run has left, by the files' names. ``error`` says why it left nothing."""

    record: Record
    weights: dict[str, np.ndarray] | None = None
    outputs: np.ndarray | None = None
    answers: dict[str, np.ndarray] | None = None
    error: str | None = None

    @property
    def skipped(self) -> bool:
        """Whether this machine cannot run the row."""
        return self.record.status == "skipped"

    def fit(self, network: Any, judge: Judge) -> bool:
        """Level 1: the exported weights have the canonical names and shapes, and the notebook counts as many trained numbers.

        network: the reference. It may have PARAMETERS, where not every number of WEIGHT_SHAPES is trained. Returns whether
        the names and shapes are right.
        """
        shapes, counted, fits = network.WEIGHT_SHAPES, self.record.metrics.parameters, True
        try:
            # Names and shapes alone: a run that diverged has the right ones, too
            check_weights({name: np.zeros_like(array) for name, array in self.weights.items()}, shapes)
        except WeightsError as error:
            judge.fail(str(error))
            fits = False
        expected = getattr(network, "PARAMETERS", sum(int(np.prod(shape)) for shape in shapes.values()))
        judge.at_most(
            "count", abs((counted or 0) - expected), f"{counted} parameters instead of {expected}", tolerance=0
        )
        return fits


Prober = Callable[[dict], Outputs]  # parameters over the notebook's own -> what the run left


def from_weights(probe: Prober, weights: dict[str, np.ndarray], parameters: dict) -> Outputs:
    """A run that starts from these weights."""
    with TemporaryDirectory(prefix="rosetta-") as folder:
        start = Path(folder) / "start.npz"
        save_weights(start, weights)
        return probe(parameters | {"INITIAL_WEIGHTS": str(start)})


class Reference:
    """A task in NumPy: ``network`` is its reference module, or what its ``of(flavour)`` returns where it has flavours."""

    def __init__(self, task: Task, flavour: str | None = None, synthetic: bool = False):
        module = task.reference
        self.task, self.flavour, self.synthetic = task, flavour, synthetic
        self.network = module.of(flavour) if hasattr(module, "of") else module
        self.lock, self._answers = RLock(), {}  # rows are verified by several threads

    def once(self, compute: Callable, *arguments: Any) -> Any:
        """What ``compute(self, *arguments)`` returns; it is called once, whatever the row."""
        with self.lock:
            if (compute, arguments) not in self._answers:
                self._answers[compute, arguments] = compute(self, *arguments)
            return self._answers[compute, arguments]

    @cached_property
    def mistakes(self) -> SimpleNamespace:
        """The known ones: ``common/reference/<task>_mistakes.py``, or what its ``of(flavour)`` returns where the task has flavours.

        They are dicts: a key says in plain words what is done, its value offers what the kind needs. SIZES maps a number of values
        that an error may tell, in place of SIZE, to a mistake. CARRIED has, for a mistake, the names of the tensors that it changes.
        """
        name = f"common.reference.{self.task.key}_mistakes"
        lists = importlib.import_module(name) if importlib.util.find_spec(name) else SimpleNamespace()
        lists = lists.of(self.flavour) if hasattr(lists, "of") else lists
        return SimpleNamespace(**{"FORWARD": {}, "TRAINING": {}, "CARRIED": {}, "SIZES": {}, "SIZE": 1} | vars(lists))


@dataclass(frozen=True)
class Bench:
    """Where runs go: interpreters, and the workers that share the machine."""

    kernels: Kernels
    workers: Workers

    def prober(
        self, row: Row, reference: Reference, log: Path | None = None, tell: Callable[[str], None] = lambda note: None
    ) -> Prober:
        """Runs the row's notebook with the parameters that it is called with, and reads what it saves.

        log: where what the runs print is kept, one after the other. tell: called as each run begins.
        """
        task = reference.task

        def probe(parameters: dict) -> Outputs:
            given = [f"{name}={value}" for name, value in parameters.items() if name not in task.paths]
            tell(f"run with {', '.join(given) or 'the parameters of the notebook'}")
            with self.workers.share() as slot, TemporaryDirectory(prefix="rosetta-") as folder:
                changed = row.parameters | parameters
                plan = Plan(
                    row=row,
                    kind_name=task.kind_name,
                    preset=PRESET,
                    parameters=changed,
                    constants={name: changed.get(name, value) for name, value in task.constants().items()},
                    dataset=task.data,
                    synthetic=reference.synthetic,
                    save_to=folder,
                    timeout_s=TIMEOUT_S,
                )
                run = execute(plan, slot, self.kernels, watch=lambda progress: None)
                try:
                    if log:
                        with suppress(OSError):  # a full disk: the proof need not end with its log
                            printed = run.log.read_bytes()
                            log.parent.mkdir(parents=True, exist_ok=True)
                            with log.open("ab") as kept:
                                kept.write(printed)
                    return _read(run.record, Path(folder), task.kind.saved)
                finally:
                    run.close()

        return probe


def _read(record: Record, folder: Path, names: tuple[str, ...]) -> Outputs:
    """What a run has saved in the folder, in files of these names."""
    if record.status != "ok":
        return Outputs(record, error=f"the notebook's run: {record.status}: {record.error}")
    saved: dict[str, Any] = {}
    try:
        for file in (folder / name for name in names):
            arrays = np.load(file, allow_pickle=False)
            saved[file.stem] = dict(arrays) if file.suffix == ".npz" else arrays
    except (OSError, ValueError) as error:
        return Outputs(record, error=f"the notebook has not saved what is compared: {error}")
    return Outputs(record, **saved)


# ---- What a failed level tells beyond its numbers

GUESS = 3.0  # a mistake that comes so many times closer than the reference is told as a guess
CERTAIN = 1000.0  # so many times closer as what happens, in training: numbers far from the reference do not meet a small tolerance
MANY = 0.1  # of the outputs are those of others where a recorded step is read late: a whole batch


Replay = tuple[str, Finding]  # a known mistake, and what a failed level finds when it takes the reference's place


def named(failed: Finding, replays: Iterable[Replay], certain: float = math.inf) -> str | None:
    """The mistake that reproduces what failed; else the closest, as a guess; None where none is much closer than the reference.

    Ends at the first mistake that reproduces it.
    """
    closest, distance, excess = "", math.inf, _excess(failed)
    for mistake, finding in replays:
        about = f"what happens with {mistake}"
        if finding.passed or _excess(finding) * certain <= excess < math.inf:
            return f"this is {about} ({_within(failed, finding)})"
        if _excess(finding) < distance:
            closest, distance = f"closest to {about}, a guess ({_within(failed, finding)})", _excess(finding)
    return closest if distance * GUESS <= excess and distance < math.inf else None


def _excess(finding: Finding) -> float:
    """The largest difference of a finding, in tolerances; infinite where one is no number or nothing could be compared."""
    pairs = [(value, finding.tolerances[quantity]) for quantity, value in finding.measured.items()]
    if not pairs or any(value is None or value and not limit for value, limit in pairs):
        return math.inf
    return max(value / limit if value else 0.0 for value, limit in pairs)


def _within(failed: Finding, replayed: Finding) -> str:
    """How close, in the quantity that failed most of those that still differ."""
    differing = {name: value for name, value in replayed.measured.items() if value} or replayed.measured
    quantity = max(differing, key=lambda name: (failed.measured.get(name) or 0.0) / (replayed.tolerances[name] or 1e-9))
    return f"{quantity} within {differing[quantity] or 0.0:.1g}"


def spoken_of(error: str, mistakes: SimpleNamespace, examples: int) -> str | None:
    """The mistake that an error gives away by a number: of an example's values, of a batch's, or of rows that a batch was cut into.

    examples: of a batch.
    """
    numbers = set(map(int, re.findall(r"\d+", error.partition(" (in the cell ")[0])))
    for size, mistake in mistakes.SIZES.items():
        telling = {size, size * examples} | ({examples * size // mistakes.SIZE} if examples in numbers else set())
        if number := numbers & telling - {examples}:
            return f"the error speaks of {max(number)}: this is what {mistake} makes of the sizes, a guess"
    return None


def transposed(exported: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> str | None:
    """The first tensor that has its axes in another order."""
    for name, shape in shapes.items():
        theirs = exported[name].shape if name in exported else ()
        for axes in permutations(range(len(theirs))):
            if theirs != tuple(shape) == tuple(theirs[axis] for axis in axes):
                return f"{name} is {theirs} instead of {tuple(shape)}: transpose it in export_weights, axes {axes}"
    return None


def misplaced(mine: np.ndarray, first: np.ndarray, n: int, tolerance: float) -> str | None:
    """What is wrong with the order or the number of the test examples, where their probabilities are right.

    mine: the notebook's, a row an example; first: the reference's of the first examples; n: examples there are.
    """
    distances = np.abs(mine[:, None] - first).max(axis=2)  # of each row from each of the first
    places = [next(iter(np.flatnonzero(column <= tolerance)), None) for column in distances.T]
    if places[0] == 0 and len(mine) < n:
        return f"the first {len(mine)} of {n} test examples are there: is the last batch of the test dropped?"
    distinct = len(np.unique(mine, axis=0))
    # Some are the same by rounding, or say the same to what is alike: as large a share of the reference's
    alike = 1 - len(np.unique(first, axis=0)) / len(first)
    late = len(mine) - distinct > (alike + MANY) * len(mine)
    if late and (places[0] == 0 or distinct > len(first)):  # a network that has died says few things
        return (
            f"{len(mine) - distinct} test examples have the probabilities of others: are the outputs of a recorded step read late, "
            "when the next step has written over them?"
        )
    if len(mine) == n and places[0] != 0 and None not in places:
        return f"test example 1 stands at place {places[0] + 1}: are the test examples shuffled?"
    return None


# ---- Crossing: what rows compute with the same weights


class Crossing(Strict):
    """How rows agree, pair by pair. None: that run failed.

    others[i][j]: of how many examples row j says something else than row i, ties aside. ties[i]: for how many of row i's examples
    two answers are as good. A kind adds ``passed``, ``cells()`` (the figures of each row, as text) and ``explained()`` (a heading, and
    what the figures mean).
    """

    made: datetime
    commit: Commit
    machine: Machine
    rows: list[str]
    others: list[list[int | None]]
    ties: list[int | None]
    errors: list[str] = []

    corner: ClassVar[str]  # of the table: what its lines and columns are
    other: ClassVar[str]  # the heading over the most of ``others``

    @classmethod
    def empty(cls, rows: list[Row], bench: Bench, **fields: Any) -> Self:
        """Before any run has ended."""
        none = [[None] * len(rows) for _ in rows]
        return cls(
            made=datetime.now(UTC).replace(microsecond=0),
            commit=Commit(),
            machine=bench.workers.slots[0].machine,
            rows=[row.name for row in rows],
            others=none,
            ties=[None] * len(rows),
            **fields,
        )

    def section(self, titles: dict[str, str]) -> list[str]:
        """The table as a section of the conformance page. titles: of the rows, by name."""
        names = [titles.get(name, name) for name in self.rows]
        body = [
            [name, *cells, "" if None in others else f"{max(others):,}", "" if ties is None else f"{ties:,}"]
            for name, cells, others, ties in zip(names, self.cells(), self.others, self.ties)
        ]
        verdict = "All agree" if self.passed else "**They do not agree**"
        heading, explanation = self.explained()
        text = f"{explanation} {verdict}. {self.machine.name}, {self.made:%Y-%m-%d}, commit {self.commit}."
        table = markdown.table([self.corner, *names, self.other, "ties"], body)
        return [f"## {heading}", text, table, *map(markdown.escape, self.errors)]
