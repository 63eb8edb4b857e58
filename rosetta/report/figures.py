"""Figures as pages and screen write them: the value with its unit, and the spread where there are several."""

from collections.abc import Callable
from dataclasses import dataclass

from rosetta.report.samples import Sample


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
        notes = []
        if len(sample) > 1:
            notes.append(f"{self.number(sample.low)} - {self.number(sample.high)}")
        if len(sample) > 1 or of not in (None, len(sample)):
            notes.append(f"n = {len(sample)}" + (f" of {of}" if of not in (None, len(sample)) else ""))
        return self.one(sample.median) + (f" ({', '.join(notes)})" if notes else "")


def _rough(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


PERCENT = Unit(lambda fraction: f"{100 * fraction:.2f}", " %")
SECONDS = Unit(_rough, " s")
KILOJOULES = Unit(lambda joules: _rough(joules / 1000), " kJ")
GIBIBYTES = Unit(lambda size: f"{size / 2**30:.1f}", " GiB")
WHOLE = Unit(lambda value: f"{value:,.0f}")
ROUGH = Unit(_rough)
