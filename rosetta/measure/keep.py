"""Points on disk: of a row as a record whose preset is the measurement, of a machine as ``<machine>/measured/<what>.json``."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from rosetta import files, records
from rosetta.files import Strict
from rosetta.records import Commit, Machine, Point, Record
from rosetta.run.execute import commit

FOLDER = "measured"  # below a machine's folder
PROTOCOL = "steps"  # how a point was taken, not where: measured with others it is the same point


class Measured(Strict):
    """One measurement of a machine that belongs to no row."""

    version: Literal[1] = Field(1, alias="schema")
    what: str
    machine: Machine
    commit: Commit = Commit()
    measured: datetime
    points: list[Point]


def row(record: Record, results: Path) -> Path:
    """Write a row's measurement; points of earlier ones stay where this one has none of the same place."""
    earlier = files.load(Record, records.path(record, results), missing=record)
    return records.write(record.model_copy(update={"points": joined(earlier.points, record.points)}), results)


def machine(what: str, where: Machine, points: list[Point], results: Path) -> Path:
    """Write a machine's measurement, likewise."""
    new = Measured(
        what=what, machine=where, commit=commit(), measured=datetime.now(UTC).replace(microsecond=0), points=points
    )
    file = results / where.name / FOLDER / f"{what}.json"
    earlier = files.load(Measured, file, missing=new)
    return files.write(file, new.model_copy(update={"points": joined(earlier.points, points)}))


def machines(what: str, results: Path) -> list[Measured]:
    """A measurement of every machine, in the order of their names."""
    return [files.load(Measured, file) for file in sorted(results.glob(f"*/{FOLDER}/{what}.json"))]


def joined(earlier: list[Point], new: list[Point]) -> list[Point]:
    """All points; a new one replaces those of the same place."""
    places = [_place(point) for point in new]
    return [point for point in earlier if _place(point) not in places] + new


def _place(point: Point) -> tuple:
    return {name: value for name, value in point.at.items() if name != PROTOCOL}, point.unit
