"""The tables of one column: every figure of its rows, and how accuracy scatters across seeds and frameworks."""

from dataclasses import dataclass
from pathlib import Path

from rosetta import markdown, records
from rosetta.catalog import Row
from rosetta.records import Record
from rosetta.report.columns import Column, train_time
from rosetta.report.figures import GIBIBYTES, KILOJOULES, PERCENT, ROUGH, SECONDS, WHOLE, Unit
from rosetta.report.samples import Sample, sample


@dataclass(frozen=True)
class Quantity:
    """A column of the details."""

    heading: str
    metric: str
    unit: Unit
    spread: bool = False  # show min - max too where there are several seeds
    always: bool = True  # also where no run has it

    def of(self, runs: list[Record]) -> Sample | None:
        return sample(runs, lambda record: getattr(record.metrics, self.metric))

    def cell(self, runs: list[Record]) -> str:
        found = self.of(runs)
        return self.unit.all(found) if self.spread else self.unit.one(found and found.median)


AFTER_TRAIN = (
    Quantity("first epoch", "first_epoch_s", SECONDS),
    Quantity("steady", "steady_epoch_s", SECONDS, spread=True),
    Quantity("images/s", "images_per_s", WHOLE),
    Quantity("data", "data_s", SECONDS),
    Quantity("build", "build_s", SECONDS),
    Quantity("test", "evaluate_s", SECONDS),
    Quantity("wall", "wall_s", SECONDS, spread=True),
    Quantity("memory", "peak_rss", GIBIBYTES),
    Quantity("GPU memory", "peak_gpu_memory", GIBIBYTES, always=False),
    Quantity("energy", "energy_j", KILOJOULES, spread=True, always=False),
    Quantity("images/J", "images_per_j", ROUGH, always=False),
)


SCATTER = ["framework", "n", "median", "min", "max", "median among the values of all other rows"]


def details(rows: list[Row], column: Column, results: Path, base: Path) -> str:
    """Every figure of a column's rows; links are relative to ``base``."""
    after = [quantity for quantity in AFTER_TRAIN if quantity.always or quantity.of(column.records)]
    targets = [record.params.get("TARGET_ACCURACY") for record in column.records if record.metrics.epoch_accuracy]
    target = [f"to {100 * targets[0]:g} %"] if targets and targets[0] else []
    body = []
    for row in rows:
        runs = column.runs.get(row.name)
        if runs:
            body.append(
                [
                    _name(row, runs[0], results, base),
                    markdown.escape(versions(runs[0])),
                    markdown.escape(runs[0].device or ""),
                    PERCENT.all(sample(runs, lambda record: record.metrics.accuracy)),
                    train_time(runs),
                    *([to_target(runs)] if target else []),
                    *(quantity.cell(runs) for quantity in after),
                ]
            )
    heading = ["framework", "versions", "device", "accuracy", "train", *target]
    return markdown.table(heading + [quantity.heading for quantity in after], body)


def across_seeds(rows: list[Row], column: Column) -> list[str]:
    """Whether a row's accuracy lies outside what all other rows reach, where at least one row has several seeds."""
    body = [
        [
            markdown.escape(one.row.title),
            str(len(one.accuracy)),
            *(PERCENT.one(value) for value in (one.accuracy.median, one.accuracy.low, one.accuracy.high)),
            f"**{one.place}**" if one.outside else one.place,
        ]
        for one in scatter(rows, column)
    ]
    return ["#### Accuracy across seeds and frameworks", markdown.table(SCATTER, body)] if body else []


@dataclass(frozen=True)
class Scattered:
    """One row's accuracies, and whether their median lies outside what all other rows reach."""

    row: Row
    accuracy: Sample
    outside: bool
    place: str


def scatter(rows: list[Row], column: Column) -> list[Scattered]:
    """Of every row of a column; empty unless one has several seeds."""
    found = [(row, sample(column.runs.get(row.name, []), lambda record: record.metrics.accuracy)) for row in rows]
    found = [(row, accuracy) for row, accuracy in found if accuracy]
    if not any(len(accuracy) > 1 for _, accuracy in found):
        return []
    scattered = []
    for row, accuracy in found:
        others = [value for other, values in found if other is not row for value in values.values]
        scattered.append(Scattered(row, accuracy, *_place(accuracy.median, others)))
    return scattered


def _place(median: float, others: list[float]) -> tuple[bool, str]:
    if not others:
        return False, "no other row"
    if min(others) <= median <= max(others):
        return False, "inside"
    return True, f"outside: {'above' if median > max(others) else 'below'} all of them"


def to_target(runs: list[Record]) -> str:
    """Seconds of training to the target accuracy, of the runs that were tested after each epoch."""
    tested = [record for record in runs if record.metrics.epoch_accuracy]
    reached = sample(tested, lambda record: record.metrics.target_s)
    return SECONDS.all(reached, of=len(tested)) if reached else "not reached" if tested else ""


def _name(row: Row, record: Record, results: Path, base: Path) -> str:
    title = markdown.escape(row.title)
    if record.notebook.executed is None:
        return title
    return f"[{title}]({markdown.link(records.path(record, results).parent / record.notebook.executed, base)})"


def versions(record: Record) -> str:
    versions = [f"{name} {version}" for name, version in record.versions.items() if name not in ("python", "numpy")]
    versions += [f"Python {record.versions['python']}"] if "python" in record.versions else []
    return ", ".join(versions + [f"{name} {version}" for name, version in record.cuda.items()])
