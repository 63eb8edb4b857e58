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
    """Write a row's measurement; points of the same notebook stay where this one has none of the same place."""
    file = records.path(record, results)
    earlier = files.load(Record, file, missing=record)
    same = earlier.notebook.sha256 == record.notebook.sha256  # the record says of which notebook its points are
    return records.write(_joined(record, earlier) if same else record, results)


def machine(what: str, where: Machine, points: list[Point], results: Path) -> Path:
    """Write a machine's measurement; earlier points stay where this one has none of the same place."""
    now = datetime.now(UTC).replace(microsecond=0)
    new = Measured(what=what, machine=where, commit=commit(), measured=now, points=points)
    file = results / where.name / FOLDER / f"{what}.json"
    return files.write(file, _joined(new, files.load(Measured, file, missing=new)))


def machines(what: str, results: Path) -> list[Measured]:
    """A measurement of every machine, in the order of their names."""
    return [files.load(Measured, file) for file in sorted(results.glob(f"*/{FOLDER}/{what}.json"))]


def floor(of: Machine, results: Path) -> tuple[Measured, Point] | None:
    """The fastest matrix product of a machine, FLOP/s, and when it was measured; of the same system alone, because another one may
    be another processor of that name."""
    for each in machines("floor", results):
        if (each.machine.name, each.machine.os) == (of.name, of.os):
            return each, max(each.points, key=lambda point: point.sample.high)
    return None


def _joined(new: Record | Measured, earlier: Record | Measured) -> Record | Measured:
    """With the earlier points; a new one replaces those of the same place."""
    places = [_place(point) for point in new.points]
    points = [point for point in earlier.points if _place(point) not in places] + new.points
    return new.model_copy(update={"points": points})


def _place(point: Point) -> tuple:
    return {name: value for name, value in point.at.items() if name != PROTOCOL}, point.unit
