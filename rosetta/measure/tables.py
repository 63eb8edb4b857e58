"""The tables of what was measured: for the blocks of docs/performance.md, and together as ``results/speed.md``."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path

from rosetta import files, markdown, records
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError
from rosetta.figures import Sample, spread
from rosetta.kinds import KINDS
from rosetta.kinds.kind import BATCH
from rosetta.measure import rows
from rosetta.measure.rows import FOLDER, STEPS, Measurement
from rosetta.paths import checkout, portable
from rosetta.records import Point, Record
from rosetta.run import scripts
from rosetta.tasks import Task

PAGE, WRITTEN = "speed.md", "performance.md"  # below the results folder; by hand, with tables
PHASES = {"forward": "forward", "backward": "forward + backward", "step": "full step"}
SYNTHETIC = " SYNTHETIC"  # behind what was measured on such data

Group = list[Measurement]  # of one machine, task and setting, in the catalog's order
Make = Callable[[Task, Group, Path], list[str]]  # a table and the words below it; nothing where nothing is known


def timed(points: Iterable[Point]) -> list[Point]:
    """The points that are seconds, and could be taken."""
    return [point for point in points if point.unit == "s" and point.values]


def line(cells: Iterable[str], width: int) -> str:
    """A line on the screen, flush right."""
    return "".join(f"{cell:>{width}}" for cell in cells)


def milliseconds(point: Point) -> str:
    """Mean and standard deviation; of a single repeat its time alone."""
    mean = f"{1000 * point.sample.mean:.1f}"
    return mean if len(point.values) == 1 else f"{mean} ± {1000 * point.sample.deviation:.1f}"


def other_parameters(at: dict) -> dict:
    """The parameters of a point besides threads and batch size."""
    return {name: value for name, value in at.items() if name not in ("threads", BATCH, "phase", STEPS, "program")}


def titled(measured: Measurement) -> str:
    """The title of its row, with a word where the data is synthetic."""
    return markdown.escape(measured.newest.title) + (SYNTHETIC if measured.newest.dataset.synthetic else "")


def threads_of(number: int) -> str:
    return f"{number} thread{'' if number == 1 else 's'}"


def days(group: Group) -> str:
    return records.days(session for measured in group for session in measured.sessions)


def measured_on(group: Group, *protocol: str) -> str:
    """Machine, protocol and days, below a table."""
    return markdown.wrapped("; ".join([markdown.escape(group[0].newest.machine.about), *protocol, days(group)]) + ".")


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


def pairs(points: list[Point]) -> dict[str, list[Point]]:
    """Points of two programs by what else they were measured with, in words; "" where that is nothing."""
    by_label: dict[str, list[Point]] = {}
    for point in points:
        label = ", ".join(f"{name.lower()} {value}" for name, value in other_parameters(point.at).items())
        by_label.setdefault(label and f"{label}, batch {point.at[BATCH]}", []).append(point)
    return by_label


def pair(points: list[Point]) -> list[str]:
    """Milliseconds a step of a notebook and of another program, and how many times as long the first takes."""
    notebook, other = timed(points)
    ratios = Sample(tuple(a / b for a, b in zip(notebook.values, other.values)))
    return [spread(notebook.sample, 1, 1000), spread(other.sample, 1, 1000), spread(ratios, 2)]


def _against(other: str) -> Make:
    """The table of notebooks by turns with another program."""

    def make(task: Task, group: Group, results: Path) -> list[str]:
        body = [
            [", ".join(filter(None, (titled(measured), markdown.escape(label)))), *pair(points)]
            for measured in group
            for label, points in pairs(measured.points).items()
        ]
        points = [point for measured in group for point in timed(measured.points)]
        counts = sorted({(point.at[STEPS], len(point.values)) for point in points})
        epochs = ", ".join(f"{number} {task.kind.turns} of {steps} steps" for steps, number in counts)
        heading = ["", "notebook, ms a step", f"{other}, ms a step", f"notebook / {other}"]
        words = measured_on(group, f"{epochs} after a first that is not counted")
        return [markdown.table(heading, body), words]

    return make


def _limits(task: Task, group: Group, results: Path) -> list[str]:
    """Where a step's time goes with all processors, beside what these do in a plain matrix product."""
    batch, machine = task.constants()[BATCH], group[0].newest.machine
    floor, flop = rows.matrix_product(machine, results), task.flop(task.constants())
    if not floor or not flop:
        return []
    (session, product), most, body = floor, max(_thread_counts(group, batch), default=0), []
    best, size = product.sample.high, product.at["size"]
    for measured in group:
        means = {phase: point.sample.mean for phase, point in _phases(measured, most, batch).items()}
        if not means:
            continue
        forward, backward, step = (means[phase] for phase in PHASES)
        rate, parts = flop / step, (forward, backward - forward, step - backward)
        shares = [f"{round(part / step, 2) + 0.0:.0%}" for part in parts]  # + 0.0: no minus before nothing
        body.append([titled(measured), f"{1000 * step:.0f}", f"{rate / 1e9:.0f}", f"{rate / best:.0%}", *shares])
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
        for where, points in groupby(sorted(timed(measured.points), key=_where), key=_where):
            phases, at = {point.at["phase"]: point for point in points}, dict(where)
            step = phases[task.kind.phases[-1]]
            others = [markdown.escape(f"{name.lower()} {value}") for name, value in other_parameters(at).items()]
            row = " ".join([titled(measured), *others])
            times = [milliseconds(phases[phase]) for phase in task.kind.phases]
            rate, protocol = f"{at[BATCH] / step.sample.mean:.0f}", f"{len(step.values)} x {step.at[STEPS]}"
            body.append([row, str(at["threads"]), str(at[BATCH]), *times, rate, protocol])
    times = (f"{PHASES[phase]}, ms" for phase in task.kind.phases)
    heading = ["row", "threads", "batch", *times, "examples/s", "protocol"]
    words = "Mean ± standard deviation; *protocol*: repeats x steps. " + measured_on(group)
    picture = sweep_picture(results, group[0].newest.machine.name, task)
    shown = f"![Examples a second by batch size and number of threads]({markdown.address(picture, results)})"
    return [markdown.table(heading, body), words, *([shown] if picture.is_file() else [])]


def _by_threads(task: Task, group: Group, results: Path) -> list[str]:
    """Milliseconds of each phase at the task's own batch size, for every number of threads."""
    batch, names = task.constants()[BATCH], task.kind.phases
    threads, body, counts = _thread_counts(group, batch), [], set()
    if not threads:
        return []
    for measured in group:
        of_threads = [_phases(measured, number, batch) for number in threads]
        if not any(of_threads):
            continue
        figures = [milliseconds(phases[phase]) if phases else "" for phases in of_threads for phase in names]
        steps = [phases[names[-1]] for phases in of_threads if phases]
        complete = len(threads) > 1 and of_threads[0] and of_threads[-1]
        gain = f"{steps[0].sample.mean / steps[-1].sample.mean:.2f}" if complete else ""
        body.append([titled(measured), *figures, gain])
        counts |= {(step.at[STEPS], len(step.values)) for step in steps}
    heading = ["", *(f"{PHASES[phase]}, ms, {threads_of(number)}" for number in threads for phase in names), "gain"]
    protocol = ", ".join(f"{repeats} times {steps} steps" for steps, repeats in sorted(counts))
    parts = [f"batch {batch}, {protocol}, mean ± standard deviation"]
    if len(threads) > 1:
        unit = "step" if task.kind.trains else "pass"
        parts.append(f"*gain*: of the {unit}, from {threads_of(threads[0])} to {threads[-1]}")
    return [markdown.table(heading, body), measured_on(group, *parts)]


def sweep_picture(results: Path, machine: str, task: Task) -> Path:
    """The picture of a sweep, where one was drawn."""
    return results / machine / FOLDER / f"{task.key}-sweep.svg"


def _where(point: Point) -> tuple:
    """Where a point of a sweep was taken, whatever its phase."""
    return tuple((name, value) for name, value in point.at.items() if name not in ("phase", STEPS))


def _phases(measured: Measurement, threads: int, batch: int) -> dict[str, Point]:
    """The timed points of a sweep at one place of two axes alone."""
    where = {"threads": threads, BATCH: batch}
    return {point.at["phase"]: point for point in timed(measured.points) if dict(_where(point)) == where}


def _thread_counts(group: Group, batch: int) -> list[int]:
    """The numbers of threads that were measured at this batch size."""
    points = [point for measured in group for point in measured.points]
    return sorted({point.at["threads"] for point in points if point.at[BATCH] == batch})


# By the name of the block: what was measured, as its records call it, and what makes the table
TABLES: dict[str, tuple[str, Make]] = {
    "points": ("sweep", _every_point),
    "fastest": ("fastest", _against("fastest loop")),
    "settings": ("settings", _against("changed")),
    "limits": ("sweep", _limits),
    "sweep": ("sweep", _by_threads),
}
# Of ``speed.md``
HEADINGS = {
    "points": "Threads and batch size",
    "fastest": "Against the fastest loop",
    "settings": "Environment variables",
}
PROGRAMS = {"fastest": "fastest", "sweep": "phases"}  # below programs/, a file each framework may have


def by_name(catalog: Catalog, every: Iterable[Record], results: Path) -> markdown.Blocks:
    """What makes each table. every: the records below ``results``."""
    order = {row.full_name: number for number, row in enumerate(catalog.rows())}
    measured = [each for each in rows.measurements(every) if each.newest.full_name in order]
    measured.sort(key=lambda each: (_setting(each), order[each.newest.full_name], each.newest.dataset.synthetic))
    return {name: partial(_table, name, catalog, measured, results) for name in TABLES}


def text(catalog: Catalog, every: Iterable[Record], results: Path) -> str:
    """The page ``speed.md``."""
    tables, parts = by_name(catalog, every, results), ["# What was measured"]
    parts.append("Generated by `run_all.py measure`, `sweep` and `report`: do not edit.")
    for name, heading in HEADINGS.items():
        if table := tables[name]():
            parts += [f"## {heading}", table]
    return "\n\n".join(parts) + "\n"


def write(catalog: Catalog, every: Iterable[Record], results: Path) -> list[Path]:
    """Write ``speed.md`` and, from the default results, the tables of the hand-written page; returns their paths."""
    page, every = results / PAGE, list(every)
    files.write_atomically(page, text(catalog, every, results))
    return (
        [page, markdown.write(checkout.docs / WRITTEN, by_name(catalog, every, results))]
        if results == checkout.results
        else [page]
    )


def _setting(measured: Measurement) -> tuple[str, str, str]:
    """What a table has in common."""
    return measured.newest.machine.name, measured.newest.task, str(sorted(measured.newest.changed.items()))


def _table(name: str, catalog: Catalog, measured: list[Measurement], results: Path) -> str:
    """A table for each machine, task and setting."""
    what, make = TABLES[name]
    chosen = [each for each in measured if each.newest.preset == what]
    several, parts = len({_setting(each)[:2] for each in chosen}) > 1, []
    for (machine, key, _), members in groupby(chosen, key=_setting):
        group, task = list(members), catalog.task(key)
        with points_of(f"{records.path(group[0].newest, results).parent}/"):
            made = make(task, group, results)
        if not made:
            continue
        if several:
            parts.append(f"**{task.title}, {markdown.escape(machine)}**")
        if changed := group[0].newest.changed:
            variables = [
                markdown.code(f"{variable}={value}") if value != "" else f"without {markdown.code(variable)}"
                for variable, value in changed.items()
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
    if what == "phases" and not KINDS[group[0].newest.kind].trains:  # passes take no program
        return []
    measured = {each.newest.full_name for each in group}
    of_task = catalog.rows(group[0].newest.task)
    has = {row.full_name: scripts.program(what, row).is_file() for row in of_task}
    lacking = [row.title for row in of_task if not (has[row.full_name] or row.full_name in measured)]
    having = [row.title for row in of_task if has[row.full_name]]
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
