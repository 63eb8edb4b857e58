"""What changed between two sets of records beyond noise: row by row of the same machine, task, preset and kind of data."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import sqrt

from rosetta.compare.significance import apart, ratio
from rosetta.figures import GIBIBYTES, KILOJOULES, PERCENT, SECONDS, Sample, Unit
from rosetta.records import Record
from rosetta.report import samples
from rosetta.tasks import UNTIMED

FACTOR = 1.1
STANDARD_ERRORS = 3  # of a single run's accuracy, either way
# Parameters that need not agree: they do not change what a run does, or only what is off the clock
FREE = {"SEED", "TARGET_ACCURACY", "TEST_EACH_EPOCH", "DATA_DIR"}

WORSE, BETTER, NEW, GONE, OTHER = "worse", "better", "new", "gone", "not comparable"
KINDS = (WORSE, BETTER, NEW, GONE, OTHER)


@dataclass(frozen=True, order=True)
class Place:
    """A column of the table."""

    machine: str
    task: str
    preset: str
    synthetic: bool

    @classmethod
    def of(cls, record: Record) -> "Place":
        return cls(record.machine.name, record.task, record.preset, record.dataset.synthetic)

    def __str__(self) -> str:
        return f"{self.machine}, {self.task}, {self.preset}{', SYNTHETIC data' if self.synthetic else ''}"


@dataclass(frozen=True)
class Change:
    """One line of what changed; ``before`` and ``after`` are as they are to be read."""

    place: Place
    row: str
    kind: str
    quantity: str = ""
    before: str = ""
    after: str = ""
    why: str = ""


Maker = Callable[..., Change]  # a Change of a row that is known already


@dataclass
class Comparison:
    changes: list[Change] = field(default_factory=list)
    rows: int = 0  # that both sides have under the same conditions

    def of(self, *kinds: str) -> list[Change]:
        return [change for change in self.changes if change.kind in kinds]


@dataclass(frozen=True)
class Quantity:
    """What is compared; less of it is better."""

    name: str
    values: Callable[[Record], Iterable[float | None]]
    unit: Unit
    least: float = 0.0  # what a change must come to: sampling and the start of a process are no finer
    timed: bool = True
    whole_run: bool = False  # the tests between the epochs are in it

    def sample(self, runs: list[Record]) -> Sample | None:
        return Sample.of(value for record in runs for value in self.values(record))


QUANTITIES = (
    Quantity("train", lambda record: [record.metrics.train_s], SECONDS),
    Quantity("steady epoch", lambda record: record.metrics.epoch_s[1:], SECONDS),
    Quantity("wall", lambda record: [record.metrics.wall_s], SECONDS, least=2.0, whole_run=True),
    Quantity("energy", lambda record: [record.metrics.energy_j], KILOJOULES, whole_run=True),
    Quantity("memory", lambda record: [record.metrics.peak_rss], GIBIBYTES, least=2**27, timed=False),
)


class Row:
    """A row of a column on one side: the runs of its current experiment, and those that did not succeed."""

    def __init__(self, records: list[Record]):
        succeeded = [record for record in records if record.status == "ok"]
        self.runs = samples.current(succeeded) if succeeded else []
        self.failed = [record for record in records if record.status not in ("ok", "skipped")]
        self.skipped = [record for record in records if record.status == "skipped"]


def compare(before: Iterable[Record], after: Iterable[Record], factor: float = FACTOR) -> Comparison:
    """What changed from ``before`` to ``after``: by more than the factor, and more than the runs scatter."""
    first, second, found = _rows(before), _rows(after), Comparison()
    for key in sorted(first.keys() | second.keys()):
        one, two, change = first.get(key, Row([])), second.get(key, Row([])), partial(Change, *key)
        found.changes += _status(one, two, change)
        if one.runs and two.runs:
            differing = _conditions(one.runs[0], two.runs[0])
            if differing:
                found.changes.append(change(OTHER, why=differing))
            else:
                found.rows += 1
                found.changes += _accuracies(one.runs, two.runs, factor, change)
                found.changes += _figures(one.runs, two.runs, factor, change)
    return found


def _rows(records: Iterable[Record]) -> dict[tuple[Place, str], Row]:
    groups: dict[tuple[Place, str], list[Record]] = {}
    for record in records:
        groups.setdefault((Place.of(record), record.name), []).append(record)
    return {key: Row(group) for key, group in groups.items()}


def _status(before: Row, after: Row, change: Maker) -> Iterator[Change]:
    """A row that came, went, broke or was mended."""
    if after.failed and before.runs and not before.failed:
        yield change(WORSE, "status", "ok", after.failed[0].status, after.failed[0].error or "")
    elif before.failed and after.runs and not after.failed:
        yield change(BETTER, "status", before.failed[0].status, "ok")
    elif after.runs and not before.runs:
        yield change(NEW, "accuracy", after=PERCENT.all(_accuracy(after.runs)))
    elif before.runs and not after.runs:
        reason = after.skipped[0].error if after.skipped else None
        yield change(GONE, "accuracy", PERCENT.all(_accuracy(before.runs)), why=reason or "")


def _conditions(before: Record, after: Record) -> str:
    """The parameters in which two experiments differ, so that their figures cannot be compared; "" where they do not."""
    one, two = before.params | {"threads": before.threads}, after.params | {"threads": after.threads}
    names = [name for name in one if name in two and name not in FREE and one[name] != two[name]]
    return ", ".join(f"{name} {one[name]} and {two[name]}" for name in names)


def _figures(before: list[Record], after: list[Record], factor: float, change: Maker) -> Iterator[Change]:
    timed = before[0].preset != UNTIMED
    same_tests = bool(before[0].metrics.epoch_accuracy) == bool(after[0].metrics.epoch_accuracy)
    for quantity in QUANTITIES:
        one, two = quantity.sample(before), quantity.sample(after)
        if one is None or two is None or quantity.timed and not timed or quantity.whole_run and not same_tests:
            continue
        why = apart(one, two, factor) if abs(two.median - one.median) >= quantity.least else None
        if why:
            times = ratio(one.median, two.median)
            yield change(
                WORSE if times > 1 else BETTER,
                quantity.name,
                quantity.unit.all(one),
                quantity.unit.all(two),
                f"{times:.2f} times; {why}{_moved(before[0], after[0])}",
            )


def _accuracies(before: list[Record], after: list[Record], factor: float, change: Maker) -> Iterator[Change]:
    """Accuracy is near its ceiling: the factor is one of the error, 1 - accuracy."""
    one, two = _accuracy(before), _accuracy(after)
    if one is None or two is None:
        return
    errors = [Sample(tuple(1 - value for value in accuracy.values)) for accuracy in (one, two)]
    times = ratio(errors[0].median, errors[1].median)
    if min(len(one), len(two)) > 1:
        why = apart(*errors, factor)
    else:
        why = None if 1 / factor <= times <= factor else _beyond_the_test_set(one, two, before[0], after[0])
    if why:
        shown = [PERCENT.all(accuracy) for accuracy in (one, two)]
        yield change(WORSE if times > 1 else BETTER, "accuracy", *shown, f"error {times:.2f} times; {why}")


def _beyond_the_test_set(one: Sample, two: Sample, before: Record, after: Record) -> str | None:
    """A run without others beside it has an interval from the size of the test set alone."""
    intervals = []
    for accuracy, record in ((one, before), (two, after)):
        n = record.params.get("N_TEST", 0)
        share = (accuracy.median * n + 1) / (n + 2)  # so that 0 and 1 have an error too
        margin = STANDARD_ERRORS * sqrt(share * (1 - share) / (n + 2)) if len(accuracy) == 1 else 0.0
        intervals.append((accuracy.low - margin, accuracy.high + margin))
    (low, high), (other_low, other_high) = intervals
    if low <= other_high and other_low <= high:
        return None
    return f"n = 1: more than {STANDARD_ERRORS} standard errors of the test set, but seeds scatter more"


def _accuracy(runs: list[Record]) -> Sample | None:
    return samples.sample(runs, lambda record: record.metrics.accuracy)


def _moved(before: Record, after: Record) -> str:
    """Whether the device explains it."""
    was, now = samples.on_cpu_despite_gpu(before), samples.on_cpu_despite_gpu(after)
    return "" if was == now else "; now on cpu" if now else "; no longer on cpu"
