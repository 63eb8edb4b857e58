"""Points on disk: of a row as a record whose preset is the measurement, of a machine as ``<machine>/measured/<what>.json``."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, Field

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
    measured: AwareDatetime
    points: list[Point]


def row(record: Record, results: Path) -> Path:
    """Write a row's measurement; points of earlier ones stay where this one has none of the same place."""
    return records.write(_joined(record, records.path(record, results)), results)


def machine(what: str, where: Machine, points: list[Point], results: Path) -> Path:
    """Write a machine's measurement, likewise."""
    now = datetime.now(UTC).replace(microsecond=0)
    new = Measured(what=what, machine=where, commit=commit(), measured=now, points=points)
    file = results / where.name / FOLDER / f"{what}.json"
    return files.write(file, _joined(new, file))


def machines(what: str, results: Path) -> list[Measured]:
    """A measurement of every machine, in the order of their names."""
    return [files.load(Measured, file) for file in sorted(results.glob(f"*/{FOLDER}/{what}.json"))]


def _joined(new: Record | Measured, file: Path) -> Record | Measured:
    """With the points of the file; a new one replaces those of the same place."""
    earlier, places = files.load(type(new), file, missing=new), [_place(point) for point in new.points]
    points = [point for point in earlier.points if _place(point) not in places] + new.points
    return new.model_copy(update={"points": points})


def _place(point: Point) -> tuple:
    return {name: value for name, value in point.at.items() if name != PROTOCOL}, point.unit
