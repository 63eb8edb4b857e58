"""What a benchmark has published, point by point: files below ``results/published`` that a task's protocols name."""

from pathlib import Path

from rosetta import files
from rosetta.files import Count, Name, Positive, Strict
from rosetta.paths import RESULTS


class PublishedPoint(Strict):
    """One point and what was measured there.

    at: parameters as a protocol names them, and ``threads`` or ``devices``; what is lacking was not told.
    figures: row of the catalog, or a framework in the publication's words -> figure in the protocol's unit.
    """

    at: dict[str, str | Count]
    device: str
    figures: dict[str, Positive]


class Platform(Strict):
    """The links of a platform, for the model of several devices; 1e9 bytes a second each way."""

    gb_per_s: Positive  # of each device
    instance: Count | None = None  # devices of an instance, where there are several instances
    between_gb_per_s: Positive | None = None  # of each instance
    about: str  # where the rates are from, Markdown


class Benchmark(Strict):
    """A file of ``results/published`` for a protocol."""

    source: str
    url: str | None = None  # where it still is
    year: Count
    conditions: str
    points: list[PublishedPoint]
    platforms: dict[str, Platform] = {}  # by the points' device


def read(name: Name, folder: Path = RESULTS / "published") -> Benchmark:
    """The points of a file, named without its ending."""
    return files.load(Benchmark, folder / f"{name}.toml")
