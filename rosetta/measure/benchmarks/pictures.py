"""Pictures of the networks that a protocol takes at several batch sizes. Needs the optional extra ``site``."""

from collections.abc import Iterable
from pathlib import Path

from rosetta import files
from rosetta.catalog import Catalog
from rosetta.measure import plot
from rosetta.measure.benchmarks import page
from rosetta.records import Point, Record

PHASES = {"forward": "forward", "gradient": "backward", "step": "step"}  # as a sweep names them
# What a picture shows, as it is named: of a batch size and the seconds of a batch
SHOWN = {
    "time": ("milliseconds a batch", lambda size, seconds: 1000 * seconds),
    "example": ("milliseconds an example", lambda size, seconds: 1000 * seconds / size),
}


def draw(catalog: Catalog, records: Iterable[Record], results: Path) -> list[Path]:
    """Draw those of every machine; returns what was written."""
    written = []
    for (key, name, machine), group in page.grouped(catalog, records).items():
        task = catalog.task(key)
        numbers = sorted({point.at["threads"] or 0 for record in group for point in record.points})
        protocol = task.protocols[name].on(bool(group[0].machine.gpus))
        shown = [layout for layout in page.layouts(protocol, task.kind.which, numbers) if layout.by_size]
        columns = {(layout.phase, column) for layout in shown for column in layout.columns}
        rows = {record.title: _points(record, columns, task.kind.which) for record in group}
        rows = {title: points for title, points in rows.items() if points}
        for what, (label, value) in SHOWN.items() if rows else ():
            file = page.picture_file(results, machine, task, name, what)
            files.write_atomically(file, plot.draw(rows, label, value))
            written.append(file)
    return written


def _points(record: Record, columns: set, which: str) -> list[Point]:
    found = [point for point in record.points if point.values]
    return [
        point.model_copy(update={"at": point.at | {"phase": PHASES[point.at[page.PHASE]]}})
        for point in found
        if (point.at[page.PHASE], page.place_of(point, which)) in columns
    ]
