"""The tables of what was measured: for the blocks of docs/performance.md, and together as ``results/speed.md``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path

from rosetta import files, markdown, records
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError
from rosetta.figures import spread
from rosetta.kinds import KINDS
from rosetta.measure import cells, keep, scripts, sweep_tables
from rosetta.measure.cells import PARTS, Group, measured_on, titled
from rosetta.paths import RESULTS, ROOT, portable
from rosetta.records import Point, Record
from rosetta.tasks import Task

PAGE, WRITTEN = "speed.md", ROOT / "docs" / "performance.md"  # below the results folder; by hand, with tables
HEADINGS = {
    "points": "Threads and batch size",
    "fastest": "Against the fastest loop",
    "settings": "Environment variables",
    "startup": "Start-up",
    "overhead": "What the harness adds",
    "lessons": "Lessons",
    "loading": "Loading data",
    "cluster": "Workers of a cluster",
}

PROGRAMS = {"fastest": "fastest", "sweep": "phases"}  # by measurement: below programs/, a file each framework may have
OF_POINTS = {"limits": "sweep", "points": "sweep"}  # tables that show another measurement's points again

Make = Callable[[Task, Group], list[str]]  # a table and the words below it; nothing where nothing is known


def _setting(record: Record) -> tuple[str, str, str]:
    """What a table has in common."""
    return record.machine.name, record.task, str(sorted(record.changed.items()))


def _given(changed: dict) -> str:
    return " ".join(
        markdown.code(f"{name}={value}") if value != "" else f"without {markdown.code(name)}"
        for name, value in changed.items()
    )


def _epochs(group: Group) -> str:
    points = [point for record in group for point in cells.timed(record.points)]
    counts = sorted({(point.at["steps"], len(point.values)) for point in points})
    turns = KINDS[group[0].kind].turns
    epochs = ", ".join(f"{number} {turns} of {steps} steps" for steps, number in counts)
    return measured_on(group, f"{epochs} after a first that is not counted")


def _repeats(group: Group) -> str:
    repeats = sorted({len(point.values) for record in group for point in record.points})
    several = [f"the median of {repeat}" for repeat in repeats if repeat > 1]
    counted = " or ".join([*(["one run"] if 1 in repeats else []), *several]) + " each"
    return markdown.wrapped(f"{markdown.escape(group[0].machine.about)}; {counted}.")


def _lines(heading: list[str], lines: Callable[[list[Point]], list[list[str]]], words=measured_on) -> Make:
    """A table of the same columns whatever the task. heading: after the row's title. lines: of a record. words: below it."""

    def make(task: Task, group: Group) -> list[str]:
        body = [[titled(each), *line] for each in group for line in lines(each.points)]
        return [markdown.table(["", *heading], body), words(group)]

    return make


def _against(other: str) -> Make:
    def make(task: Task, group: Group) -> list[str]:
        pairs = [(record, *pair) for record in group for pair in cells.pairs(record.points).items()]
        body = [
            [", ".join(filter(None, (titled(of), markdown.escape(label)))), *cells.pair(points)]
            for of, label, points in pairs
        ]
        heading = ["", "notebook, ms a step", f"{other}, ms a step", f"notebook / {other}"]
        return [markdown.table(heading, body), _epochs(group)]

    return make


# By the name of the measurement
OF_ROWS = {
    "fastest": _against("fastest loop"),
    "settings": _against("changed"),
    "startup": _lines([f"{title}, s" for title in PARTS.values()], lambda points: [cells.start(points)], _repeats),
    "overhead": _lines(["script, s", "`run_all.py`, s", "difference, s"], lambda points: [cells.overhead(points)]),
    "lessons": _lines(
        ["lesson", ""], lambda points: [[*map(markdown.escape, cells.lesson(point))] for point in points]
    ),
}
OF_MACHINES: dict[str, tuple[list[str], Callable[[Point], list[str]]]] = {
    "startup": (
        ["`run_all.py`", "seconds"],
        lambda point: [markdown.escape(point.at["command"]), spread(point.sample, 2)],
    ),
    "loading": (["data", "seconds"], lambda point: [markdown.escape(point.at["data"]), spread(point.sample, 3)]),
    "cluster": (
        ["workers", "runs", "seconds a run", "time, s"],
        lambda point: [*(f"{number:g}" for number in point.at.values()), f"{point.sample.median:,.1f}"],
    ),
}


class Tables:
    """Markdown of all measurements below a results folder; ``records`` are those that lie there."""

    def __init__(self, catalog: Catalog, records: list[Record], results: Path):
        self.catalog, self.results = catalog, results
        order = {row.full_name: place for place, row in enumerate(catalog.rows())}
        self._records = sorted(
            (record for record in records if record.full_name in order),
            key=lambda record: (_setting(record), order[record.full_name], record.dataset.synthetic),
        )

    def blocks(self) -> markdown.Blocks:
        """By the name of the block."""
        made = {name: partial(self._table, name) for name in OF_ROWS | OF_MACHINES}
        makes = {
            "limits": partial(sweep_tables.limits, self.results),
            "sweep": sweep_tables.by_threads,
            "points": partial(sweep_tables.every_point, self.results),
        }
        return made | {name: partial(self._of_rows, name, make) for name, make in makes.items()}

    def write(self) -> list[Path]:
        """Write ``speed.md`` and, from the default results, the tables of the hand-written page; returns their paths."""
        page = self.results / PAGE
        files.write_atomically(page, self.text())
        return [page, markdown.write(WRITTEN, self.blocks())] if self.results == RESULTS else [page]

    def text(self) -> str:
        """``speed.md``."""
        made, parts = self.blocks(), ["# What was measured"]
        parts.append("Generated by `run_all.py measure`, `sweep` and `report`: do not edit.")
        for name, heading in HEADINGS.items():
            if text := made[name]():
                parts += [f"## {heading}", text]
        return "\n\n".join(parts) + "\n"

    def _table(self, what: str) -> str:
        """A table for each machine, and those of rows."""
        parts = []
        for measured in keep.machines(what, self.results):
            heading, line = OF_MACHINES[what]
            with points_of(str(self.results / measured.machine.name / keep.FOLDER / f"{what}.json")):
                parts.append(markdown.table(heading, [line(point) for point in measured.points]))
            if what not in OF_ROWS:  # whose tables say it
                parts.append(
                    markdown.paragraph(f"{markdown.escape(measured.machine.about)}; {measured.measured:%Y-%m-%d}.")
                )
        if what in OF_ROWS:
            parts.append(self._of_rows(what, OF_ROWS[what]))
        return "\n\n".join(filter(None, parts))

    def _of_rows(self, what: str, make: Make) -> str:
        """A table for each machine, task and setting."""
        chosen = [record for record in self._records if record.preset == OF_POINTS.get(what, what)]
        several, parts = len({_setting(record)[:2] for record in chosen}) > 1, []
        for (_, key, _), members in groupby(chosen, key=_setting):
            group, task = list(members), self.catalog.task(key)
            with points_of(f"{records.path(group[0], self.results).parent}/"):
                made = make(task, group)
            if made and several:
                parts.append(f"**{task.title}, {markdown.escape(group[0].machine.name)}**")
            if made and group[0].changed:
                parts.append(_given(group[0].changed) + ":")
            parts += [*made, *(self._unwritten(what, group) if made else [])]
        return "\n\n".join(parts)

    def _unwritten(self, what: str, group: Group) -> list[str]:
        """A sentence on the rows that were not measured because their framework has no program for it."""
        if what not in PROGRAMS or what == "sweep" and not KINDS[group[0].kind].trains:  # passes take no program
            return []
        measured = {record.full_name for record in group}
        rows = self.catalog.rows(group[0].task)
        has = {row.full_name: scripts.program(PROGRAMS[what], row).is_file() for row in rows}
        lacking = [row.title for row in rows if not (has[row.full_name] or row.full_name in measured)]
        having = [row.title for row in rows if has[row.full_name]]
        if not lacking:
            return []
        if 0 < len(having) < len(lacking):
            return [markdown.wrapped(f"Programs are written only for: {markdown.escape('; '.join(having))}.")]
        return [markdown.wrapped(f"No program is written for: {markdown.escape('; '.join(lacking))}.")]


@contextmanager
def points_of(where: str) -> Iterator[None]:
    """Raises RosettaError for points that are not those of their measurement: their places are free in form."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        lacking = f"lacks {error}" if isinstance(error, KeyError) else error
        text = f"{portable(where)} is not valid: points: {lacking}; delete it and measure anew"
        raise RosettaError(text) from None
