"""What changed between two sets of records beyond noise: row by row of the same machine, task and column."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import sqrt

from rosetta.compare.significance import apart, ratio
from rosetta.figures import Sample
from rosetta.kinds import KINDS
from rosetta.kinds.kind import Quantity
from rosetta.records import Record
from rosetta.report.results import current
from rosetta.tasks import PRESETS, UNTIMED

FACTOR = 1.1
STANDARD_ERRORS = 3  # of a share that a single run has, either way

WORSE, BETTER, NEW, GONE, OTHER = "worse", "better", "new", "gone", "not comparable"
OUTCOMES = (WORSE, BETTER, NEW, GONE, OTHER)

Place = tuple[str, str, str]  # machine, task, and column of the task's table


@dataclass(frozen=True)
class Change:
    """One line of what changed; ``before`` and ``after`` are as they are to be read."""

    place: Place
    row: str
    outcome: str
    quantity: str = ""
    before: str = ""
    after: str = ""
    why: str = ""


Maker = Callable[..., Change]  # a Change of a row that is known already


@dataclass
class Comparison:
    changes: list[Change] = field(default_factory=list)
    rows: int = 0  # that both sides have under the same conditions

    def of(self, *outcomes: str) -> list[Change]:
        return [change for change in self.changes if change.outcome in outcomes]


class Side:
    """A row of a column on one side: the runs of its current experiment, and those that did not succeed."""

    def __init__(self, records: list[Record]):
        succeeded = [record for record in records if record.status == "ok"]
        self.runs = current(succeeded) if succeeded else []
        self.failed = [record for record in records if record.status not in ("ok", "skipped")]
        self.skipped = [record for record in records if record.status == "skipped"]

    @property
    def first_figure(self) -> tuple[str, str]:
        """Heading and text of the first main quantity of the runs."""
        quantity = KINDS[self.runs[0].kind].main[0]
        return quantity.heading, quantity.unit.all(quantity.sample(self.runs))


def compare(before: Iterable[Record], after: Iterable[Record], factor: float = FACTOR) -> Comparison:
    """What changed from ``before`` to ``after``: by more than the factor, and more than the runs scatter."""
    first, second, comparison = _sides(before), _sides(after), Comparison()
    for key in sorted(first.keys() | second.keys()):
        one, two, change = first.get(key, Side([])), second.get(key, Side([])), partial(Change, *key)
        comparison.changes += _status(one, two, change)
        if one.runs and two.runs:
            differing = _conditions(one.runs[0], two.runs[0])
            if differing:
                comparison.changes.append(change(OTHER, why=differing))
            else:
                comparison.rows += 1
                comparison.changes += _figures(one.runs, two.runs, factor, change)
    return comparison


def _sides(records: Iterable[Record]) -> dict[tuple[Place, str], Side]:
    groups: dict[tuple[Place, str], list[Record]] = {}
    for record in records:
        if record.preset in PRESETS:
            place = (record.machine.name, record.task, record.column)
            groups.setdefault((place, record.name), []).append(record)
    return {key: Side(group) for key, group in groups.items()}


def _status(before: Side, after: Side, change: Maker) -> Iterator[Change]:
    """A row that came, went, broke or was mended."""
    if after.failed and before.runs and not before.failed:
        yield change(WORSE, "status", "ok", after.failed[0].status, after.failed[0].error or "")
    elif before.failed and after.runs and not after.failed:
        yield change(BETTER, "status", before.failed[0].status, "ok")
    elif after.runs and not before.runs:
        heading, text = after.first_figure
        yield change(NEW, heading, after=text)
    elif before.runs and not after.runs:
        reason = after.skipped[0].error if after.skipped else None
        yield change(GONE, *before.first_figure, why=reason or "")


def _conditions(before: Record, after: Record) -> str:
    """The parameters in which two experiments differ, so that their figures cannot be compared; "" where they do not.

    A switch that one side does not have was off; any other parameter that it does not have did not exist yet.
    """
    one, two = (side.params | {"kind": side.kind, "threads": side.threads} for side in (before, after))
    differing = []
    for name in [name for name in one | two if name not in KINDS[before.kind].free]:
        values = one.get(name, False), two.get(name, False)
        if values[0] != values[1] and (name in one and name in two or any(value is True for value in values)):
            differing.append(f"{name} {values[0]} and {values[1]}")
    return ", ".join(differing)


def _figures(before: list[Record], after: list[Record], factor: float, change: Maker) -> Iterator[Change]:
    timed = before[0].preset != UNTIMED
    for quantity in KINDS[before[0].kind].quantities:
        one, two = quantity.all(before), quantity.all(after)
        if quantity.better is None or one is None or two is None or quantity.timed and not timed:
            continue
        if quantity.share_of:
            judged = _share(quantity, before, after, factor)
        else:
            why = apart(one, two, factor) if abs(two.median - one.median) >= quantity.least else None
            times = ratio(one.median, two.median)
            more_is_worse = quantity.better == "less"
            judged = why and ((times > 1) == more_is_worse, f"{times:.2f} times; {why}")
        if judged:
            worse, why = judged
            shown = [quantity.unit.all(sample) for sample in (one, two)]
            yield change(WORSE if worse else BETTER, quantity.heading, *shown, why)


def _share(quantity: Quantity, before: list[Record], after: list[Record], factor: float) -> tuple[bool, str] | None:
    """Whether a share became worse, and why; None for noise. Near its ceiling the factor is one of the error, 1 - share."""
    one, two = quantity.sample(before), quantity.sample(after)
    errors = [
        Sample(tuple(1 - value if quantity.better == "more" else value for value in sample.values))
        for sample in (one, two)
    ]
    times = ratio(errors[0].median, errors[1].median)
    if min(len(one), len(two)) > 1:
        why = apart(*errors, factor)
    elif 1 / factor <= times <= factor:
        why = None
    else:
        why = _beyond_the_sample(one, two, *(run.params.get(quantity.share_of, 0) for run in (before[0], after[0])))
    return (times > 1, f"error {times:.2f} times; {why}") if why else None


def _beyond_the_sample(one: Sample, two: Sample, n_one: int, n_two: int) -> str | None:
    """A run without others beside it has an interval from the number of trials that its share is of, and from nothing else."""
    intervals = []
    for share, n in ((one, n_one), (two, n_two)):
        p = (share.median * n + 1) / (n + 2)  # so that 0 and 1 have an error too
        margin = STANDARD_ERRORS * sqrt(p * (1 - p) / (n + 2)) if len(share) == 1 else 0.0
        intervals.append((share.low - margin, share.high + margin))
    (low, high), (other_low, other_high) = intervals
    if low <= other_high and other_low <= high:
        return None
    return f"n = 1: more than {STANDARD_ERRORS} standard errors of the test set, but seeds scatter more"
