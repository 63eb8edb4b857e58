"""Published benchmarks, repeated: their points are measured, and ``benchmarks.md`` shows them beside the figures of then.

A task of a kind that has ``protocols`` names them in its ``task.toml``. Each point is a run of a row's own notebook, the cheapest
first, as many as fit into the time given. A point that today's notebook and versions have is not measured again.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, product
from pathlib import Path
from typing import Any

from rosetta import files, markdown, records
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, unknown
from rosetta.figures import clock
from rosetta.files import Count, Name, Positive, Strict
from rosetta.identity import is_todays
from rosetta.kinds.kind import BATCH
from rosetta.measure import rows
from rosetta.measure.rows import FOLDER, STEPS, Measuring, usual_threads
from rosetta.measure.tables import PHASES, Group, days, milliseconds, points_of, threads_of, versions
from rosetta.paths import checkout, portable
from rosetta.plan import Plan
from rosetta.records import Point, Record
from rosetta.run import scripts
from rosetta.run.devices import Slot
from rosetta.run.execute import execute
from rosetta.tasks import Protocol, Task, places_of
from rosetta.where import Where, numbers

PAGE = "benchmarks.md"  # below the results folder
NAME, PHASE = "protocol", "PHASE"  # of a record's changes; of a point's place
AS_IN_SWEEPS = {"forward": "forward", "gradient": "backward", "step": "step"}  # the phases
REPEAT_S = 2.0  # a repeat whose estimate is longer takes fewer steps
LEAST_WARM_UP = 2  # steps: some frameworks compile in the first, and record it for replay in the second
LEAST_S = 1.0  # the least that a run may still need, so that it is begun
LATE = 0.1  # of the time given: a run that needs longer than that beyond it is stopped
OUT_OF_MEMORY = "out of memory"  # the status of a point
# What frameworks say where it does not suffice; other errors speak of memory, too
MEMORY = re.compile(
    r"out of memory|memoryerror|bad_alloc|memory runs out|not enough memory|memory isn't enough|\boom\b"
    r"|(fail\w*|unable|cannot|can't)( to)? alloc|alloc\w*( \w+)? failed",
    re.IGNORECASE,
)
# What an interpreter answers with: the versions of modules, as records have them
VERSIONS = (
    "import importlib, json, sys; from common.versions import versions; "
    "print('\\n' + json.dumps(versions(*map(importlib.import_module, sys.argv[1:]))))"
)
ABOUT = """\
The first table of a machine has milliseconds, or examples a second: the mean, and after ± the standard deviation of
several repeats. The tables below it have the same points in other units. An empty cell was not measured. Lines in
italics are published figures. Where their batch is another one, the cell says so: such a figure does not compare with
the rest of its column. What was measured here computes on noise."""

Column = tuple[str, int, int]  # network, batch size, number of threads
Cell = Callable[[Point], str]


class PublishedPoint(Strict):
    """One point and what was measured there.

    at: parameters as a protocol names them, and ``threads`` or ``devices``; what is lacking was not told.
    figures: row of the catalog, or a framework in the publication's words -> figure in the protocol's unit.
    """

    at: dict[str, str | Count]
    device: str
    figures: dict[str, Positive]


class Benchmark(Strict):
    """What a benchmark has published: a file of ``results/published`` that a task's protocols name."""

    source: str
    url: str | None = None  # where it still is
    year: Count
    conditions: str
    points: list[PublishedPoint]
    platforms: dict[str, dict[str, Positive | str]] = {}  # by the points' device: its links, for studies/scaling.py


def read_published(name: Name) -> Benchmark:
    """The points of a file, named without its ending."""
    return files.load(Benchmark, checkout.results / "published" / f"{name}.toml")


@dataclass(frozen=True)
class Spot:
    """A point to be measured: a plan of the row's notebook, where it runs, and its estimate in seconds."""

    plan: Plan
    at: dict[str, Any]
    slot: Slot
    estimate_s: float

    @property
    def row(self) -> str:
        return self.plan.row.full_name

    def label(self) -> str:
        return ", ".join(f"{name.lower()} {value}" for name, value in self.at.items())


def run(
    options: Where, name: str, threads: str | None, steps: int | None, repeats: int | None, minutes: float | None
) -> int:
    """Measure a protocol of every row's task. Exit code 0 unless a point failed or a row that was named cannot run here."""
    bench = Measuring(options, f"sweep --protocol {name}", "protocols")
    protocol = _of(bench, name)
    spots = [spot for row in bench.rows for spot in _spots(bench, row, protocol, threads, steps, repeats)]
    measured = {row.full_name: _measured(bench, row, name) for row in bench.rows}
    due = [spot for spot in spots if frozenset(spot.at.items()) not in measured[spot.row]]
    due.sort(key=lambda spot: spot.estimate_s)
    limit_s = 60 * minutes if minutes else None
    say, total_s = bench.console.say, sum(spot.estimate_s for spot in due)
    say(f"{protocol.title}: {len(spots)} points of {len(bench.rows)} rows, {len(spots) - len(due)} of them are there")
    say(f"{len(due)} points to measure, about {clock(total_s)}, the cheapest first")
    if limit_s and total_s > limit_s:
        fitting = sum(spent <= limit_s for spent in accumulate(spot.estimate_s for spot in due))
        say(f"{clock(limit_s)} suffice for about {fitting} of them; call it again, and it goes on", "yellow")
    failed = _measure(bench, name, due, limit_s)
    every = [record for _, record in records.read_all(bench.results)]
    say(portable(str(write(bench.catalog, every, bench.results))))
    return int(failed)


def _of(bench: Measuring, name: str) -> Protocol:
    """The protocol of that name; the rows that are left are of its task.

    Raises RosettaError where the rows' task has none of it.
    """
    for key in {row.task for row in bench.rows}:
        if protocol := bench.catalog.task(key).protocols.get(name):
            bench.rows = [row for row in bench.rows if row.task == key]
            return protocol.on(bench.slot.on_gpu)
    raise unknown("protocol", name, [other for task in bench.catalog.tasks.values() for other in task.protocols])


def _spots(
    bench: Measuring, row: Row, protocol: Protocol, threads: str | None, steps: int | None, repeats: int | None
) -> Iterator[Spot]:
    """All points of a row, but for networks that it lacks."""
    task = bench.catalog.task(row.task)
    usual = usual_threads() if protocol.threads == "each" else [len(bench.processors)]
    slots = [bench.with_threads(number) for number in (numbers("--threads", threads) if threads else usual)]
    counts = {"STEPS": steps or protocol.steps, "REPEATS": repeats or protocol.repeats}
    for slot, place in product(slots, protocol.places()):
        if place.get(task.kind.which) in row.facts.lacking(bench.slot.on_gpu):
            continue
        constants = task.constants() | place | counts | {"WARMUP": protocol.warmup}
        share = len(bench.processors) / slot.threads if slot.threads and not slot.on_gpu else 1
        step_s = share * task.step_s(row.facts, constants, bench.slot.on_gpu)
        fewer = max(1, min(constants["STEPS"], int(REPEAT_S / step_s)))
        constants |= {"STEPS": fewer, "WARMUP": min(protocol.warmup, max(fewer, LEAST_WARM_UP))}
        planned = bench.plan(row, place | {name: constants[name] for name in ("WARMUP", "STEPS", "REPEATS")})
        counted = constants["WARMUP"] + fewer * constants["REPEATS"]
        yield Spot(planned, {"threads": slot.threads, **place}, slot, row.facts.cost.start_s + counted * step_s)


def _sessions(bench: Measuring, row: Row, name: str) -> list[Record]:
    """Earlier sessions of a row with today's notebook on this machine, the newest first."""
    file = records.path(bench.record(bench.plan(row, {}), NAME, {NAME: name}), bench.results)
    stem = file.name.removesuffix(f".{bench.session}.json")
    sessions = [files.load(Record, each) for each in file.parent.glob(f"{stem}.*json")]
    today = [record for record in sessions if is_todays(record, row.notebook)]
    return sorted(today, key=lambda record: (record.started, record.session or ""), reverse=True)


def _measured(bench: Measuring, row: Row, name: str) -> set[frozenset]:
    """The places of points that today's notebook and versions have times of, or no memory for; what failed is tried again."""
    sessions = _sessions(bench, row, name)
    today = _versions(bench, row, sessions) if sessions else {}
    same = [session for session in sessions if session.versions == today]
    return {rows.place(point) for point in rows.newest_points(same) if point.status in ("ok", OUT_OF_MEMORY)}


def _versions(bench: Measuring, row: Row, sessions: list[Record]) -> dict[str, str]:
    """The versions of today of the modules that the newest session names, else of those that the row imports; none where the row's
    interpreter has no answer."""
    named = next(
        (session.versions.keys() - {"python", "numpy"} for session in sessions if session.versions), row.imports
    )
    try:
        with bench.scripts(bench.plan(row, {}), {"parameters": ""}) as (script,):
            command = [str(script.python), "-c", VERSIONS, *sorted(named)]
            answer = scripts.run("asking for versions", command, checkout.root, script.environment(bench.slot))
    except RosettaError:  # its points will say why
        return {}
    return json.loads(next(line for line in reversed(answer.splitlines()) if line.startswith("{")))


def _measure(bench: Measuring, name: str, due: list[Spot], limit_s: float | None) -> bool:
    """Measure points one after the other until the time is up; whether one failed.

    Estimates of a row are corrected by what its points took.
    """
    started, failed, left, ratios, kept = time.monotonic(), False, [], {}, {}
    for number, spot in enumerate(due, start=1):
        remaining = limit_s - (time.monotonic() - started) if limit_s else None
        if remaining is not None and max(spot.estimate_s * ratios.get(spot.row, 1.0), LEAST_S) > remaining:
            left.append(spot)
            continue
        if spot.row not in kept:
            kept[spot.row] = bench.record(spot.plan, NAME, {NAME: name})
        latest_s = None if remaining is None else remaining + LATE * limit_s
        point, error, took_s = _point(bench, spot, kept[spot.row], remaining, latest_s)
        if point.values:
            ratios[spot.row] = took_s / spot.estimate_s
        failed |= bool(error)
        said = f"{milliseconds(point)} ms" if point.values else error or point.status
        text = f"[{number}/{len(due)}] {spot.row}: {spot.label()}: {said}"
        bench.console.say(text, "" if point.values else "red")
    for spot in left:
        bench.console.say(f"left out, about {clock(spot.estimate_s)}: {spot.row}: {spot.label()}")
    return failed


def _point(
    bench: Measuring, spot: Spot, record: Record, remaining: float | None, latest_s: float | None
) -> tuple[Point, str | None, float]:
    """The point, why it has no times, and seconds of its run. Memory that does not suffice is a result, no failure.

    record: of the row's session, which keeps the point. remaining: seconds that were given; latest_s: after which the run is stopped.
    """
    planned = spot.plan.limited(spot.estimate_s)
    if latest_s is not None:
        planned = planned.model_copy(update={"timeout_s": min(planned.timeout_s, latest_s)})
    ended = execute(planned, spot.slot, bench.kernels, watch=lambda progress: None)
    ended.close()
    done, at = ended.record, spot.at | {STEPS: planned.constants["STEPS"]}
    if done.status == "ok":
        point, error = Point(at=at, values=[value for each in done.points for value in each.values]), None
    else:
        full = MEMORY.search(done.error or "")
        point = Point(at=at, status=OUT_OF_MEMORY if full else done.status)
        error = None if full else f"{done.status}: {done.error}"
        if done.status == "timeout" and remaining is not None and planned.timeout_s > remaining:
            return point, "stopped: the time that was given is up", 0.0
    if done.status != "skipped":
        if done.versions:
            record.device, record.versions, record.cuda = done.device, done.versions, done.cuda
        elif not record.versions:  # it failed before it told them
            record.versions = _versions(bench, spot.plan.row, _sessions(bench, spot.plan.row, record.changed[NAME]))
        record.points.append(point)
        records.write(record, bench.results)
    return point, error, done.metrics.wall_s or 0.0


@dataclass(frozen=True)
class Layout:
    """A table: its phase, its columns in order, and what makes a line of them. by_size: one network at several sizes."""

    phase: str
    columns: list[Column]
    by_size: bool

    def title(self, what: str) -> str:
        numbers = {threads for *_, threads in self.columns}
        threads = f", {threads_of(*numbers)}" if len(numbers) == 1 else ""
        return f"**{PHASES[AS_IN_SWEEPS[self.phase]].capitalize()}{threads}: {what}**"

    def headings(self) -> list[str]:
        several = len({threads for *_, threads in self.columns}) > 1
        return [
            f"{markdown.code(which)}, batch {batch}" + (f", {threads_of(threads)}" if several else "")
            for which, batch, threads in self.columns
        ]


def picture_of(results: Path, machine: str, task: Task, name: str, what: str) -> Path:
    """A picture of a protocol's points on a machine, where one was drawn."""
    return results / machine / FOLDER / f"{task.key}-{name}-{what}.svg"


def write(catalog: Catalog, every: Iterable[Record], results: Path) -> Path:
    """Write the page of the records, which lie below ``results``; returns its path."""
    page = results / PAGE
    files.write_atomically(page, text(catalog, every, results))
    return page


def text(catalog: Catalog, every: Iterable[Record], results: Path) -> str:
    """The page: a heading for each benchmark, and below it one for each machine."""
    parts = ["# Published benchmarks, repeated"]
    parts += ["Generated by `run_all.py sweep --protocol NAME` and `report`: do not edit.", ABOUT]
    repeated = grouped(catalog, every)
    for task in catalog.tasks.values():
        titles = {row.name: row.title for row in catalog.rows(task.key)}
        for name, protocol in task.protocols.items():
            sources = [read_published(source) for source in protocol.published]
            parts += [f"## {protocol.title}", markdown.wrapped(protocol.about)]
            for source in sources:
                named = f"[{source.source}]({source.url})" if source.url else source.source
                parts.append(markdown.wrapped(f"Of {source.year}: {named}; {source.conditions}."))
            groups = [group for (key, of, _), group in repeated.items() if (key, of) == (task.key, name)]
            parts += [] if groups else [f"Not measured yet: `run_all.py sweep --task {task.key} --protocol {name}`."]
            for group in groups:
                parts += [f"### {markdown.escape(group[0].newest.machine.name)}, {markdown.escape(protocol.title)}"]
                with points_of(f"{records.path(group[0].newest, results).parent}/"):
                    parts += _of_machine(task, name, group, sources, titles, results)
    return "\n\n".join(parts) + "\n"


def grouped(catalog: Catalog, every: Iterable[Record]) -> dict[tuple[str, str, str], Group]:
    """By task, protocol and machine: what was measured for protocols that there still are, in the catalog's order."""
    order = {row.full_name: number for number, row in enumerate(catalog.rows())}
    groups: dict[tuple[str, str, str], Group] = {}
    repeated = rows.measurements(record for record in every if record.preset == NAME)
    for measured in sorted(repeated, key=lambda each: order.get(each.newest.full_name, 0)):
        record = measured.newest
        if record.full_name in order and record.changed[NAME] in catalog.task(record.task).protocols:
            groups.setdefault((record.task, record.changed[NAME], record.machine.name), []).append(measured)
    return {key: groups[key] for key in sorted(groups)}


def layouts(protocol: Protocol, which: str, numbers: list[int], others: Iterable[int] = ()) -> list[Layout]:
    """The tables of a protocol: one of networks and one of each network that it takes at several sizes, for each phase.

    which: the parameter that names a network. numbers: of threads that were measured; others: that were published.
    """
    tables: dict[tuple, dict] = {}
    for group in protocol.points:
        by_size = isinstance(group[BATCH], list) and not isinstance(group[which], list)
        for place in places_of(group):
            phase = place[PHASE], by_size and place[which]
            tables.setdefault(phase, {})[place[which], place[BATCH]] = None
    made = []
    for (phase, by_size), columns in tables.items():
        one = len(columns) == 1
        for several in [sorted({*numbers, *others})] if one else [[number] for number in numbers]:
            made.append(Layout(phase, [(*column, number) for column in columns for number in several], bool(by_size)))
    return made


def _of_machine(
    task: Task, name: str, group: Group, sources: list[Benchmark], titles: dict[str, str], results: Path
) -> list[str]:
    protocol, which = task.protocols[name].on(bool(group[0].newest.machine.gpus)), task.kind.which
    counts = thread_counts(group)
    others = {point.at["threads"] for source in sources for point in source.points if "threads" in point.at}
    unit, floor, parts = protocol.unit, _floor(group, results), []
    for layout in layouts(protocol, which, counts, others):
        measured = _lines(layout, group, which, partial(_figure, unit))
        if not measured:
            continue
        most = layout.columns[-1][-1] >= counts[-1]
        # Once, though the devices of then have no such threads
        earlier = then(layout, sources, which, titles) if most else []
        parts += [layout.title(unit), _table(layout, measured + earlier)]
        if layout.by_size:
            parts += [layout.title("ms an example"), _table(layout, _lines(layout, group, which, _efficiency))]
        if most and (rates := _lines(layout, group, which, partial(_rate, task, floor))):
            parts += [layout.title("GFLOP/s"), _table(layout, rates)]
    parts += _against_forward(protocol, group, which, counts[-1])
    for what, about in (("time", "Milliseconds a step by batch size"), ("example", "Milliseconds an example")):
        picture = picture_of(results, group[0].newest.machine.name, task, name, what)
        parts += [f"![{about}]({markdown.address(picture, results)})"] if picture.is_file() else []
    words = f"{markdown.escape(group[0].newest.machine.about)}; {days(group)}."
    words += " GFLOP/s: a multiply-add counts twice, and a gradient as two forward passes."
    if floor:
        words += f" In brackets: the share of NumPy's matrix product, {floor / 1e9:.0f} GFLOP/s. More than 100% is faster than that."
    return [*parts, markdown.wrapped(words), versions(group)]


def thread_counts(group: Group) -> list[int]:
    """The numbers of threads that were measured; 0 where a framework chose."""
    return sorted({point.at["threads"] or 0 for measured in group for point in measured.points})


def _lines(layout: Layout, group: Group, which: str, cell: Cell) -> list[list[str]]:
    """A line a row that has a point there."""
    lines = []
    for measured in group:
        points = {column_of(point, which): point for point in measured.points if point.at[PHASE] == layout.phase}
        if points.keys() & set(layout.columns):
            figures = [cell(points[column]) if column in points else "" for column in layout.columns]
            lines.append([markdown.escape(measured.newest.title), *figures])
    return lines


def column_of(point: Point, which: str) -> Column:
    return point.at[which], point.at[BATCH], point.at["threads"] or 0


def _figure(unit: str, point: Point) -> str:
    if not point.values:
        return point.status
    return milliseconds(point) if unit == "ms" else f"{point.at[BATCH] / point.sample.mean:,.1f}"


def _efficiency(point: Point) -> str:
    """Add-For's mini-batch efficiency: the time of a batch by the number of its examples."""
    return f"{1000 * point.sample.mean / point.at[BATCH]:.2f}" if point.values else point.status


def _rate(task: Task, floor: float | None, point: Point) -> str:
    flop = point.values and task.flop(task.constants() | point.at)
    if not flop:
        return ""
    rate = flop / point.sample.mean
    return f"{rate / 1e9:.1f}" + (f" ({rate / floor:.0%})" if floor else "")


def _floor(group: Group, results: Path) -> float | None:
    """FLOP/s of the machine's matrix product. None where it was measured on another system, perhaps another processor of that name."""
    machines = {measured.newest.machine.os: measured.newest.machine for measured in group}
    (machine, *others) = machines.values()
    floor = None if others else rows.matrix_product(machine, results)
    return floor[1].sample.high if floor else None


def _against_forward(protocol: Protocol, group: Group, which: str, threads: int) -> list[str]:
    """How many times as long as its forward pass a network's forward and backward take."""
    places = {(place[which], place[BATCH]) for place in protocol.places() if place[PHASE] == "forward"}
    columns = [
        (place[which], place[BATCH], threads)
        for place in protocol.places()
        if place[PHASE] == "gradient" and (place[which], place[BATCH]) in places
    ]
    layout, body = Layout("gradient", columns, by_size=False), []
    for measured in group:
        timed = [point for point in measured.points if point.values]
        means = {(point.at[PHASE], column_of(point, which)): point.sample.mean for point in timed}
        pairs = [(means.get(("gradient", column)), means.get(("forward", column))) for column in columns]
        ratios = [f"{gradient / forward:.1f}" if gradient and forward else "" for gradient, forward in pairs]
        body += [[markdown.escape(measured.newest.title), *ratios]] if any(ratios) else []
    return [layout.title("times its forward pass"), _table(layout, body)] if body else []


def then(layout: Layout, sources: list[Benchmark], which: str, titles: dict[str, str]) -> list[list[str]]:
    """What was published, a line a framework and device: at the same point, or at another size that the cell names."""
    lines: dict[tuple, dict[Column, str]] = {}
    for source in sources:
        for point in source.points:
            column = _same(layout, point, which)
            for framework, figure in point.figures.items() if column else ():
                size = point.at.get(BATCH, column[1])
                about = "" if size == column[1] else f" (batch {size})"
                line = lines.setdefault((f"{titles.get(framework, framework)}, {point.device}", source.year), {})
                line.setdefault(column, f"{figure:,g}{about}")
    return [
        [f"*{markdown.escape(f'{title}, {year}')}*", *(figures.get(column, "") for column in layout.columns)]
        for (title, year), figures in lines.items()
    ]


def _same(layout: Layout, point: PublishedPoint, which: str) -> Column | None:
    """The column of a published point; of another size only where the table shows networks, not sizes."""
    at = point.at
    if at[PHASE] != layout.phase or at.get("devices", 1) != 1 or at.get("DATA", "synthetic") != "synthetic":
        return None
    columns = [
        column for column in layout.columns if column[0] == at[which] and at.get("threads", column[2]) == column[2]
    ]
    exact = [column for column in columns if at.get(BATCH, column[1]) == column[1]]
    return (exact or ([] if layout.by_size else columns) or [None])[-1]


def _table(layout: Layout, body: list[list[str]]) -> str:
    return markdown.table(["", *layout.headings()], body)
