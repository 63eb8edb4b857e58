"""The tables of what ``sweep --protocol`` has measured: one for each network and phase, a line a row, a column a size and number of threads."""

from rosetta import markdown
from rosetta.kinds.kind import BATCH
from rosetta.measure.cells import PHASES, milliseconds
from rosetta.records import Point, Record
from rosetta.tasks import Task

NAME, PHASE = "protocol", "PHASE"  # of a record's changes; of a point's place


# The phases of this kind, as tables call them
PHASES_OF = {"forward": PHASES["forward"], "gradient": PHASES["backward"], "step": PHASES["step"]}


def make(task: Task, group: list[Record]) -> list[str]:
    """Markdown of one protocol on one machine; nothing where the task does not have it any more."""
    protocol = task.protocols.get(group[0].changed[NAME])
    if not protocol:
        return []
    parts = [markdown.wrapped(f"{protocol.title}. {protocol.about} Milliseconds a step, mean ± standard deviation.")]
    points = {record.full_name: record.points for record in group}
    wanted = dict.fromkeys((place[task.kind.which], place[PHASE]) for place in protocol.places())
    for which, phase in wanted:
        here = {row: [point for point in found if _of(task, point) == (which, phase)] for row, found in points.items()}
        columns = sorted({(point.at[BATCH], point.at["threads"] or 0) for found in here.values() for point in found})
        body = [
            [markdown.escape(record.title), *(_cell(here[record.full_name], *column) for column in columns)]
            for record in group
            if here[record.full_name]
        ]
        if body:
            headings = [f"batch {batch}, {threads} thread{'' if threads == 1 else 's'}" for batch, threads in columns]
            parts.append(markdown.table([f"{markdown.code(which)}, {PHASES_OF[phase]}", *headings], body))
    return parts


def _of(task: Task, point: Point) -> tuple:
    return point.at[task.kind.which], point.at[PHASE]


def _cell(points: list[Point], batch: int, threads: int) -> str:
    for point in points:
        if (point.at[BATCH], point.at["threads"] or 0) == (batch, threads):
            return milliseconds(point) if point.values else point.status
    return ""
