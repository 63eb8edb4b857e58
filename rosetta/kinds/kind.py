"""What a kind of task says of its tasks: the runner, tables, charts and pages know tasks by nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rosetta.figures import GIBIBYTES, KILOJOULES, SECONDS, Sample, Unit
from rosetta.files import Count, Number, Seconds, Strict

BATCH = "BATCHSIZE"  # the constant: examples a step
FROM_ZOO = {"SOURCE": "zoo"}  # with these a notebook takes the network from its framework's own zoo
BUSY = "(busy)"  # behind a time that is no figure: other programs computed beside the run
PASSES = 3  # of a training step: forward, and in backward the gradient of the inputs and that of the weights


class Metrics(Strict):
    """What the runner measures of every run, whatever its kind; a kind's own metrics extend this. None: could not be had.

    Times are in seconds, memory in bytes.
    """

    parameters: Count | None = None  # trainable numbers of the network
    start_s: Seconds | None = None  # from the start of the run's process to the first cell: papermill and the kernel
    setup_s: Seconds | None = None  # imports and device
    data_s: Seconds | None = None
    build_s: Seconds | None = None  # model, weights, loss and optimizer
    wall_s: Seconds | None = None  # the whole run, from the start of its process to its end
    cpu_s: Number | None = None  # processor seconds of the run's processes
    peak_rss: Count | None = None  # largest resident memory of the kernel and its children
    peak_gpu_memory: Count | None = None
    energy_j: Number | None = None  # of the GPU, the whole run


@dataclass(frozen=True)
class Role:
    """The job of one code cell: its tag, and the heading of its section.

    many: several cells may have it, one after the other; the tag of each names what it answers.
    """

    name: str
    heading: str
    many: bool = False


@dataclass(frozen=True)
class Quantity:
    """A figure of a run, for tables and comparisons. ``of``: metrics -> the value, or None.

    better: which way it should go, "less" or "more"; None: it is not compared. least: the smallest change that counts,
    since clocks and samples are no finer. spread: min - max is shown too, where there are several seeds. every: all
    values of a run, for comparisons, where it has several. tried: whether a run looked for it and may not have reached it.
    """

    heading: str
    of: Callable[[Any], float | None]
    unit: Unit
    better: str | None = None
    spread: bool = False
    always: bool = True  # a column of the table also where no run has it
    least: float = 0.0
    timed: bool = True  # means nothing where runs share a device
    share_of: str | None = None  # the constant that says of how many it is a fraction
    every: Callable[[Any], list[float]] | None = None
    tried: Callable[[Any], bool] | None = None

    def sample(self, runs) -> Sample | None:
        """The values of records of one experiment, one of each; a time that was taken beside other programs is none."""
        return Sample.of(self.of(record.metrics) for record in self._figures(runs))

    def all(self, runs) -> Sample | None:
        """All values of the records."""
        if self.every is None:
            return self.sample(runs)
        return Sample.of(value for record in self._figures(runs) for value in self.every(record.metrics))

    def _figures(self, runs) -> list:
        return [record for record in runs if not (self.timed and record.disturbed)]

    def has_column(self, runs) -> bool:
        """Whether a table of these records shows it."""
        return self.always or self.cell(runs) != ""

    def cell(self, runs) -> str:
        """What a table says of it: the median, "" where no run has it."""
        sample = self.sample(runs)
        tried = sum(self.tried(record.metrics) for record in runs) if self.tried else 0
        if sample is None:
            disturbed = Sample.of(self.of(record.metrics) for record in runs)
            return f"{self.unit.one(disturbed.median)} {BUSY}" if disturbed else "not reached" if tried else ""
        return self.unit.all(sample, of=tried or None) if self.spread else self.unit.one(sample.median)


DATA = Quantity("data", lambda metrics: metrics.data_s, SECONDS)
BUILD = Quantity("build", lambda metrics: metrics.build_s, SECONDS)
WALL = Quantity("wall", lambda metrics: metrics.wall_s, SECONDS, better="less", spread=True, least=2.0)
MEMORY = Quantity("memory", lambda metrics: metrics.peak_rss, GIBIBYTES, better="less", least=2**27, timed=False)
GPU_MEMORY = Quantity("GPU memory", lambda metrics: metrics.peak_gpu_memory, GIBIBYTES, always=False)
ENERGY = Quantity("energy", lambda metrics: metrics.energy_j, KILOJOULES, better="less", spread=True, always=False)
MEASURED = (WALL, MEMORY, GPU_MEMORY, ENERGY)  # of every kind
IMPORT = Quantity("import", lambda metrics: metrics.setup_s, SECONDS, better="less", least=0.5)
STARTING = (IMPORT, DATA, BUILD, MEMORY, GPU_MEMORY)  # what it takes before anything is computed, and in all


@dataclass(frozen=True)
class Series:
    """Values of one colour in a chart; of a ``Curves`` chart a list a run."""

    label: str
    of: Callable[[Any], Any]
    share: bool = False  # values are fractions, shown in percent


@dataclass(frozen=True)
class Dots:
    """A chart with a line a row: the median of each series, and its range across seeds."""

    name: str
    caption: str
    axis: str
    series: tuple[Series, ...]
    logarithmic: bool = False


@dataclass(frozen=True)
class Curves:
    """A chart with a panel a series, and in it a curve a run. Drawn from ``least`` values on."""

    name: str
    caption: str
    axis: str
    series: tuple[Series, ...]
    least: int = 3


@dataclass(frozen=True)
class Verdict:
    """All that short runs tell. good: whether it is as it should be."""

    text: str
    good: bool


class Kind(ABC):
    """One kind of task. What is written in capitals below belongs to the task: ``common/params/<task>.py``."""

    name: ClassVar[str]
    roles: ClassVar[tuple[Role, ...]]  # in their order
    lines: ClassVar[int] = 110  # of code that a notebook may have: it is short enough to read
    core: ClassVar[str] = "model"  # the role that tells frameworks apart best: a comparison opens at it
    constants: ClassVar[dict[str, Any]]  # that a task must have, each with a value of its type, the least of a number
    saved: ClassVar[tuple[str, ...]] = ("weights.npz", "outputs.npy")  # files of a notebook that is given SAVE_TO
    judged: ClassVar[dict[str, Any]] = {}  # that a task may have, likewise, and no notebook: figures are judged by them
    loaded: ClassVar[dict[str, str]] = {}  # part of the data set -> the constant that says how much of it is loaded
    bounded: ClassVar[tuple[str, ...]] = ()  # sizes that cannot be larger than the task's own
    metrics: ClassVar[type[Metrics]]
    timed: ClassVar[dict[str, str]]  # role -> the metric that the seconds of its cell add up to
    main: ClassVar[tuple[Quantity, ...]]  # of the overview
    beside: ClassVar[tuple[Quantity, ...]] = ()  # of the details those that may reverse the order of the main ones
    details: ClassVar[tuple[Quantity, ...]]  # behind the main ones
    charts: ClassVar[tuple[Dots | Curves, ...]] = ()
    figures: ClassVar[str] = ""  # what the figures mean, Markdown
    trains: ClassVar[bool] = False  # whether there is a training step to take apart
    # What a run does again and again, so that it can be timed: "epochs", "passes" or "repeats". Then ``steps(constants)`` counts
    # those of one, and ``short(constants, steps, turns)`` has the parameters of a run of fewer
    turns: ClassVar[str | None] = None
    phases: ClassVar[tuple[str, ...]] = ()  # of a step, that a sweep times
    protocols: ClassVar[bool] = False  # whether a published protocol can be repeated, point by point
    which: ClassVar[str | None] = None  # the constant that names one of several networks
    free: ClassVar[frozenset[str]] = frozenset({"SEED"})  # parameters that runs to be compared need not agree in

    @abstractmethod
    def items(self, constants: dict[str, Any]) -> float:
        """How much work a run is: so many times a row's ``cost.item_ms``."""

    def share(self, params: Any, constants: dict[str, Any]) -> float:
        """The work of an item against that of an item with the task's own constants. params: the task's module."""
        return 1.0

    def flop(self, params: Any, constants: dict[str, Any]) -> int | None:
        """FLOP of a step of so many examples; None where the task does not count what it computes."""
        return None

    @abstractmethod
    def size(self, constants: dict[str, Any]) -> str:
        """How much a run computes, in words: ``2 epochs of 5,000``."""

    def complete(self, metrics: Any, params: dict[str, Any], marked_j: float | None) -> None:
        """Fill in what follows from what the notebook reported. marked_j: energy from its first to its last progress line."""
        return None

    def verdict(self, quantity: Quantity, runs, constants: dict[str, Any], guessing: float) -> Verdict | None:
        """What is said in place of a figure of runs that are too short for it to mean anything; None where it does.

        constants: the task's own. guessing: the accuracy of a guess.
        """
        return None

    def trouble(self, metrics: Any, params: dict[str, Any]) -> tuple[str, str] | None:
        """What is wrong with the figures of a run whose notebook ended well: (its status then, why)."""
        return None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(role.name for role in self.roles)

    @property
    def headings(self) -> dict[str, str]:
        """Of the section of each role."""
        return {role.name: role.heading for role in self.roles}

    @property
    def clocked(self) -> Quantity | None:
        """The main quantity that is timed: others have published theirs, and a device that was not used shows in it."""
        return next((quantity for quantity in self.main if quantity.timed), None)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return self.main + self.details


SETUP = {"setup": "setup_s", "data": "data_s", "model": "build_s", "weights": "build_s", "optimizer": "build_s"}
PARAMETERS = Role("parameters", "Parameters")
NETWORK = (PARAMETERS, Role("setup", "Setup"), Role("data", "Data"), Role("model", "Model"), Role("weights", "Weights"))
RECORD = Role("record", "Result")
