"""The tables of what was measured: for the blocks of docs/performance.md, and together as ``results/speed.md``."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rosetta import files, markdown, records
from rosetta.catalog import Catalog
from rosetta.figures import Sample, spread
from rosetta.kinds import KINDS
from rosetta.kinds.kind import BATCH
from rosetta.measure import rows
from rosetta.measure.rows import STEPS, Group, Measurement
from rosetta.notebook import program
from rosetta.paths import checkout
from rosetta.records import Point, Record
from rosetta.tasks import Task

PAGE, WRITTEN = "speed.md", "performance.md"  # below the results folder; by hand, with tables
PHASES = {"forward": "forward", "backward": "forward + backward", "step": "full step"}
SYNTHETIC = " SYNTHETIC"  # behind what was measured on such data

Make = Callable[[Task, Group, Path], list[str]]  # a table and the words below it; nothing where nothing is known


def timed(points: Iterable[Point]) -> list[Point]:
    """The points that are seconds, and could be taken."""
    return [point for point in points if point.unit == "s" and point.values]


def milliseconds(point: Point) -> str:
    """Mean and standard deviation; of a single repeat its time alone."""
    mean = f"{1000 * point.sample.mean:.1f}"
    return mean if len(point.values) == 1 else f"{mean} ± {1000 * point.sample.deviation:.1f}"


def others(at: dict) -> list[str]:
    """The parameters of a point besides threads and batch size, each in words."""
    usual = ("threads", BATCH, "phase", STEPS, "program")
    return [f"{name.lower()} {value}" for name, value in at.items() if name not in usual]


def titled(measured: Measurement) -> str:
    """The title of its row, with a word where the data is synthetic."""
    return markdown.escape(measured.newest.title) + (SYNTHETIC if measured.newest.dataset.synthetic else "")


def threads_of(number: int) -> str:
    return f"{number} thread{'' if number == 1 else 's'}"


def measured_on(group: Group, *protocol: str) -> str:
    """Machine, protocol and days, below a table."""
    days = records.days(session for measured in group for session in measured.sessions)
    return "; ".join([markdown.escape(group[0].newest.machine.about), *protocol, days]) + "."


def picture(about: str, group: Group, name: str, results: Path) -> list[str]:
    """The picture of a group, below a table, where one was drawn."""
    file = rows.picture_file(group, name, results)
    return [f"![{about}]({markdown.address(file, results)})"] if file.is_file() else []


def versions(group: Group) -> str:
    """The versions of the frameworks, below a table; and which rows name none, as records did not before 2026-11-26."""
    named, without = {}, []
    for measured in group:
        frameworks = {name: each for name, each in measured.newest.versions.items() if name not in ("python", "numpy")}
        named |= dict.fromkeys(f"{name} {each}" for name, each in (frameworks or measured.newest.versions).items())
        without += [] if measured.newest.versions else [measured.newest.title]
    if len(without) == len(group):
        return "These records name no versions of frameworks."
    words = f"Versions: {markdown.escape(', '.join(sorted(named)))}."
    return markdown.wrapped(words + (f" Not recorded of {markdown.escape('; '.join(without))}." if without else ""))


def pairs(points: list[Point]) -> Iterator[tuple[str, list[str]]]:
    """Of points of two programs: what else they were measured with, in words, "" where that is nothing; and milliseconds a step of the
    notebook and of the other program, and how many times as long the first takes."""
    by_label: dict[str, list[Point]] = {}
    for point in timed(points):
        label = ", ".join(others(point.at))
        by_label.setdefault(label and f"{label}, batch {point.at[BATCH]}", []).append(point)
    for label, (notebook, other) in by_label.items():
        ratios = Sample(tuple(a / b for a, b in zip(notebook.values, other.values)))
        yield label, [spread(notebook.sample, 1, 1000), spread(other.sample, 1, 1000), spread(ratios, 2)]


def _against(other: str, task: Task, group: Group, results: Path) -> list[str]:
    """Notebooks by turns with another program."""
    body, counts = [], set()
    for measured in group:
        counts |= {(point.at[STEPS], len(point.values)) for point in timed(measured.points)}
        for label, times in pairs(measured.points):
            body.append([", ".join(filter(None, (titled(measured), markdown.escape(label)))), *times])
    turns = ", ".join(
        f"{number} {task.kind.turns} of {steps} step{'s' * (steps > 1)}" for steps, number in sorted(counts)
    )
    heading = ["", "notebook, ms a step", f"{other}, ms a step", f"notebook / {other}"]
    words = measured_on(group, f"{turns} after a first that is not counted")
    return [markdown.table(heading, body), markdown.wrapped(words)]


def _limits(task: Task, group: Group, results: Path) -> list[str]:
    """Where a step's time goes with all processors, beside what these do in a plain matrix product."""
    floor, flop = rows.matrix_product(group, results), task.flop(task.constants())
    if not floor or not flop:
        return []
    session, size, best = floor
    of_rows = {titled(measured): _by_threads(measured, task) for measured in group}
    most, body = max((number for points in of_rows.values() for number in points), default=0), []
    for title, points in of_rows.items():
        if most not in points:
            continue
        forward, backward, step = (points[most][phase].sample.mean for phase in PHASES)
        rate, parts = flop / step, (forward, backward - forward, step - backward)
        shares = [f"{round(part / step, 2) + 0.0:.0%}" for part in parts]  # + 0.0: no minus before nothing
        body.append([title, f"{1000 * step:.0f}", f"{rate / 1e9:.0f}", f"{rate / best:.0%}", *shares])
    heading = ["", "full step, ms", "GFLOP/s", "of the matrix product's", "forward", "gradients", "update"]
    words = (
        f"From the next table, with {threads_of(most)}. NumPy's product of two matrices of {size} x {size}: "
        f"{best / 1e9:.0f} GFLOP/s, which makes the floor of a step {1000 * flop / best:.0f} ms "
        f"({markdown.escape(session.machine.about)}; {session.measured:%Y-%m-%d})."
    )
    return [markdown.table(heading, body), markdown.wrapped(words)]


def _every_point(task: Task, group: Group, results: Path) -> list[str]:
    """Every point of a sweep."""
    body = []
    for measured in group:
        for where, phases in sorted(_places(measured).items(), key=lambda place: place[0]):
            at, step = dict(where), phases[task.kind.phases[-1]]
            row = " ".join([titled(measured), *map(markdown.escape, others(at))])
            times = [milliseconds(phases[phase]) for phase in task.kind.phases]
            rate, protocol = f"{at[BATCH] / step.sample.mean:.0f}", f"{len(step.values)} x {step.at[STEPS]}"
            body.append([row, str(at["threads"]), str(at[BATCH]), *times, rate, protocol])
    times = (f"{PHASES[phase]}, ms" for phase in task.kind.phases)
    heading = ["row", "threads", "batch", *times, "examples/s", "protocol"]
    words = "Mean ± standard deviation; *protocol*: repeats x steps. " + markdown.wrapped(measured_on(group))
    shown = picture("Examples a second by batch size and number of threads", group, "sweep", results)
    return [markdown.table(heading, body), words, *shown]


def _of_threads(task: Task, group: Group, results: Path) -> list[str]:
    """Milliseconds of each phase at the task's own batch size, for every number of threads."""
    of_rows = {titled(measured): _by_threads(measured, task) for measured in group}
    threads, names = sorted({number for points in of_rows.values() for number in points}), task.kind.phases
    body, counts = [], set()
    for title, points in of_rows.items():
        if not points:
            continue
        places = [(number, phase) for number in threads for phase in names]
        figures = [milliseconds(points[number][phase]) if number in points else "" for number, phase in places]
        steps = {number: phases[names[-1]] for number, phases in points.items()}
        complete = len(threads) > 1 and {threads[0], threads[-1]} <= steps.keys()
        gain = f"{steps[threads[0]].sample.mean / steps[threads[-1]].sample.mean:.2f}" if complete else ""
        body.append([title, *figures, gain])
        counts |= {(step.at[STEPS], len(step.values)) for step in steps.values()}
    if not body:
        return []
    heading = ["", *(f"{PHASES[phase]}, ms, {threads_of(number)}" for number in threads for phase in names), "gain"]
    protocol = ", ".join(f"{repeats} times {steps} step{'s' * (steps > 1)}" for steps, repeats in sorted(counts))
    parts = [f"batch {task.constants()[BATCH]}, {protocol}, mean ± standard deviation"]
    if len(threads) > 1:
        unit = "step" if task.kind.trains else "pass"
        parts.append(f"*gain*: of the {unit}, from {threads_of(threads[0])} to {threads[-1]}")
    return [markdown.table(heading, body), markdown.wrapped(measured_on(group, *parts))]


def _places(measured: Measurement) -> dict[tuple[tuple[str, Any], ...], dict[str, Point]]:
    """The timed points of a sweep: parameters -> phase -> point."""
    made: dict[tuple, dict[str, Point]] = {}
    for point in timed(measured.points):
        where = tuple((name, value) for name, value in point.at.items() if name not in ("phase", STEPS))
        made.setdefault(where, {})[point.at["phase"]] = point
    return made


def _by_threads(measured: Measurement, task: Task) -> dict[int, dict[str, Point]]:
    """The same at the task's own parameters: number of threads -> phase -> point."""
    places = ((dict(where), phases) for where, phases in _places(measured).items())
    own = task.constants()[BATCH]
    return {at["threads"]: phases for at, phases in places if at[BATCH] == own and not others(at)}


# By the name of the block: what was measured, as its records call it, and what makes the table
TABLES: dict[str, tuple[str, Make]] = {
    "points": ("sweep", _every_point),
    "fastest": ("fastest", partial(_against, "fastest loop")),
    "peers": ("peers", partial(_against, "theirs")),
    "settings": ("settings", partial(_against, "changed")),
    "limits": ("sweep", _limits),
    "sweep": ("sweep", _of_threads),
}
# Of ``speed.md``
HEADINGS = {
    "points": "Threads and batch size",
    "fastest": "Against the fastest loop",
    "peers": "Against the programs of 2017 and 2018",
    "settings": "Environment variables",
}
PROGRAMS = {"fastest": "fastest", "sweep": "phases"}  # below programs/, a file each framework may have


def by_name(catalog: Catalog, every: list[Record], results: Path) -> markdown.Blocks:
    """What makes each table. every: the records below ``results``."""
    return {name: partial(_table, name, catalog, every, results) for name in TABLES}


def text(catalog: Catalog, every: list[Record], results: Path) -> str:
    """The page ``speed.md``."""
    tables, parts = by_name(catalog, every, results), ["# What was measured"]
    parts.append("Generated by `run_all.py measure` and `report`: do not edit.")
    for name, heading in HEADINGS.items():
        if table := tables[name]():
            parts += [f"## {heading}", table]
    return "\n\n".join(parts) + "\n"


def write(catalog: Catalog, every: list[Record], results: Path) -> list[Path]:
    """Write ``speed.md`` and, from the default results, the tables of the hand-written page; returns their paths."""
    page = results / PAGE
    files.write_atomically(page, text(catalog, every, results))
    if results != checkout.results:
        return [page]
    return [page, markdown.write(checkout.docs / WRITTEN, by_name(catalog, every, results))]


def _table(name: str, catalog: Catalog, every: list[Record], results: Path) -> str:
    """A table for each machine, task and setting."""
    what, make = TABLES[name]
    groups, parts = rows.groups(catalog, every, what), []
    several = len({(group[0].newest.machine.name, group[0].newest.task) for group in groups}) > 1
    for group in groups:
        newest = group[0].newest
        task = catalog.task(newest.task)
        with rows.valid_points(records.path(newest, results).parent):
            made = make(task, group, results)
        if not made:
            continue
        if several:
            parts.append(f"**{task.title}, {markdown.escape(newest.machine.name)}**")
        if newest.changed:
            variables = [
                markdown.code(f"{variable}={value}") if value != "" else f"without {markdown.code(variable)}"
                for variable, value in newest.changed.items()
            ]
            parts.append(" ".join(variables) + ":")
        parts += made
        if name != "limits":  # which says that it is of the next table
            parts.append(versions(group))
        if name in PROGRAMS:
            parts += _without_program(PROGRAMS[name], catalog, group)
    return "\n\n".join(parts)


def _without_program(what: str, catalog: Catalog, group: Group) -> list[str]:
    """A sentence on the rows that were not measured because their framework has no program for it."""
    newest = group[0].newest
    if what == "phases" and not KINDS[newest.kind].trains:  # passes take no program
        return []
    measured = {each.newest.full_name for each in group}
    having, lacking = [], []
    for row in catalog.rows(newest.task):
        if program(what, row.task, row.framework).is_file():
            having.append(row.title)
        elif row.full_name not in measured:
            lacking.append(row.title)
    if not lacking:
        return []
    if 0 < len(having) < len(lacking):
        return [markdown.wrapped(f"Programs are written only for: {markdown.escape('; '.join(having))}.")]
    return [markdown.wrapped(f"No program is written for: {markdown.escape('; '.join(lacking))}.")]
