"""Figures and the tables that hold them, as pages and the terminal write them.

A figure has values, a unit, and a spread where there are several values. A ``Table`` is made once. ``markdown.render`` writes
it for pages, ``site/templates/table.html`` for the site, ``terminal.Console.table`` for the terminal.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any


@dataclass(frozen=True)
class Sample:
    """The values of one quantity; at least one."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Sample | None":
        """Of the values that could be had; None where there is none."""
        had = tuple(value for value in values if value is not None)
        return cls(had) if had else None

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float:
        """Standard deviation; 0 of a single value."""
        return stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Unit:
    number: Callable[[float], str]
    name: str = ""

    def one(self, value: float | None) -> str:
        return "" if value is None else self.number(value) + self.name

    def all(self, sample: Sample | None, of: int | None = None) -> str:
        """The median, and min - max where there are several: ``77.47 % (76.90 - 78.10, n = 3)``.

        of: how many runs there are, where not all of them have this figure.
        """
        if sample is None:
            return ""
        notes = [f"{self.number(sample.low)} - {self.number(sample.high)}"] if len(sample) > 1 else []
        some = f" of {of}" if of not in (None, len(sample)) else ""
        if notes or some:
            notes.append(f"n = {len(sample)}{some}")
        return self.one(sample.median) + (f" ({', '.join(notes)})" if notes else "")


def spread(sample: Sample, digits: int, scale: float = 1) -> str:
    """Median, smallest and largest: ``1.47 (1.44 - 1.51)``; each is multiplied by ``scale``."""
    low, middle, high = (f"{scale * value:.{digits}f}" for value in (sample.low, sample.median, sample.high))
    return f"{middle} ({low} - {high})"


def _rough(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


PERCENT = Unit(lambda fraction: f"{100 * fraction:.2f}", " %")
SECONDS = Unit(_rough, " s")
MILLISECONDS = Unit(lambda seconds: _rough(1000 * seconds), " ms")
KILOJOULES = Unit(lambda joules: _rough(joules / 1000), " kJ")
GIBIBYTES = Unit(lambda size: f"{size / 2**30:.1f}", " GiB")
WHOLE = Unit(lambda value: f"{value:,.0f}")
ROUGH = Unit(_rough)


def clock(seconds: float) -> str:
    """Seconds as a person reads them: ``42 s``, ``3:07 min``, ``1:02 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02d} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02d} h"


@dataclass(frozen=True)
class Cell:
    """``to``: an address on the web, or anything that the writer of the page has an address for."""

    text: str
    value: float | None = None  # of a figure: the site sorts by it, and Markdown sets its column flush right
    to: Any = None
    badge: str | None = None  # "good" or "bad"
    framework: str | None = None  # of the row that this cell begins


@dataclass(frozen=True)
class Heading:
    text: str
    better: str | None = None  # "less" or "more", where figures are better that way
    column: str = ""  # the machine and the preset of its figures, where the reader chooses one of several
    view: str = ""  # likewise the question that it answers


@dataclass(frozen=True)
class Table:
    """Each row begins with what it is about."""

    headings: list[Heading]
    rows: list[list[Cell]]
    title: str = ""
