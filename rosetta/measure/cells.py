"""How measured points read, on the screen as in the tables."""

from collections.abc import Iterable

from rosetta import markdown
from rosetta.figures import PERCENT, Sample, spread
from rosetta.kinds.kind import BATCH
from rosetta.records import Point, Record, days

Group = list[Record]  # of one machine, task and setting, in the catalog's order

PHASES = {"forward": "forward", "backward": "forward + backward", "step": "full step"}
SYNTHETIC = " SYNTHETIC"  # behind what was measured on such data
SECOND = "second step"  # of a start; comes after what is added up
# Of a start, in the order in which they happen
PARTS = {
    "start": "process, kernel",
    "import": "imports",
    "data": "data",
    "build": "building",
    "first step": "first step",
    SECOND: SECOND,
    "total": "to first step",
}


def timed(points: Iterable[Point]) -> list[Point]:
    """Those that are seconds, and could be taken."""
    return [point for point in points if point.unit == "s" and point.values]


def line(cells: Iterable[str], width: int) -> str:
    """On the screen, flush right."""
    return "".join(f"{cell:>{width}}" for cell in cells)


def milliseconds(point: Point) -> str:
    """Mean and standard deviation; of a single repeat its time alone."""
    mean = f"{1000 * point.sample.mean:.1f}"
    return mean if len(point.values) == 1 else f"{mean} ± {1000 * point.sample.deviation:.1f}"


def others(at: dict) -> dict:
    """The parameters of a point besides threads and batch size."""
    return {name: value for name, value in at.items() if name not in ("threads", BATCH, "phase", "steps", "program")}


def pairs(points: list[Point]) -> dict[str, list[Point]]:
    """Points of two programs by what else they were measured with, in words; "" where that is nothing."""
    found: dict[str, list[Point]] = {}
    for point in points:
        label = ", ".join(f"{name.lower()} {value}" for name, value in others(point.at).items())
        found.setdefault(label and f"{label}, batch {point.at[BATCH]}", []).append(point)
    return found


def pair(points: list[Point]) -> list[str]:
    """Milliseconds a step of a notebook and of another program, and how many times as long the first takes."""
    own, other = timed(points)
    ratios = Sample(tuple(a / b for a, b in zip(own.values, other.values)))
    return [spread(own.sample, 1, 1000), spread(other.sample, 1, 1000), spread(ratios, 2)]


def start(points: list[Point]) -> list[str]:
    """Seconds of each part, and what they add up to from the start of the process to the end of the first step."""
    parts = {point.at["part"]: point.sample for point in points}
    counted = [sample.values for part, sample in parts.items() if part != SECOND]
    parts["total"] = Sample(tuple(map(sum, zip(*counted))))
    return [f"{parts[part].median:.2f}" for part in PARTS]


def overhead(points: list[Point]) -> list[str]:
    """Seconds of a script and of a run, and the difference of their medians."""
    script, run = (point.sample for point in points)
    return [spread(script, 2), spread(run, 2), f"{run.median - script.median:.2f}"]


def lesson(point: Point) -> list[str]:
    """Its name; accuracies, or milliseconds a step."""
    if point.unit == "s":
        return [point.at["lesson"], f"{spread(point.sample, 1, 1000)} ms a step"]
    return [point.at["lesson"], ", ".join(map(PERCENT.one, point.values))]


def titled(record: Record) -> str:
    """The title of its row, with a word where the data is synthetic."""
    return markdown.escape(record.title) + (SYNTHETIC if record.dataset.synthetic else "")


def measured_on(group: Group, *parts: str) -> str:
    """Machine, protocol and days, below a table. parts: the protocol."""
    return markdown.wrapped("; ".join([markdown.escape(group[0].machine.about), *parts, days(group)]) + ".")


def threads(number: int) -> str:
    return f"{number} thread{'' if number == 1 else 's'}"
