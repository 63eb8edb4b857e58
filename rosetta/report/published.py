"""Figures that others have measured: the reference columns of a table."""

from pathlib import Path

from rosetta import files
from rosetta.files import Count, Positive, Strict
from rosetta.paths import RESULTS


class Published(Strict):
    """A file of ``results/published``, with its source. Figures are in the unit of the kind's main time."""

    source: str
    url: str
    year: Count
    conditions: str
    unit: str
    columns: dict[str, dict[str, Positive]]  # column title -> row name -> figure


def read(name: str, folder: Path = RESULTS / "published") -> Published:
    """The published figures of a file, named without its ending."""
    return files.load(Published, folder / f"{name}.toml")
