"""Published benchmarks, repeated: their points are measured, and ``benchmarks.md`` shows them beside the figures of then.

A task of a kind that has ``protocols`` names them in its ``task.toml``. Each point is a run of a row's own notebook, the cheapest
first, as many as fit into the time given. A point that today's notebook and versions have is not measured again.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, product
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rosetta import files, markdown, records
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, unknown
from rosetta.figures import clock
from rosetta.files import Count, Name, Positive, Strict
from rosetta.identity import is_todays
from rosetta.kinds.kind import BATCH
from rosetta.measure import rows
from rosetta.measure.rows import STEPS, Group, Measurement, Measuring
from rosetta.measure.tables import PHASES, measured_on, milliseconds, picture, threads_of, versions
from rosetta.paths import checkout, portable
from rosetta.plan import Plan
from rosetta.records import Point, Record
from rosetta.run import scripts
from rosetta.run.devices import Slot
from rosetta.run.execute import execute
from rosetta.tasks import Protocol, Task, places_of
from rosetta.where import Where

PAGE = "benchmarks.md"  # below the results folder
NAME = "protocol"  # of a record's changes
NETWORK, PHASE = "NETWORK", "PHASE"  # of a point's place
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


def run(
    where: Where, name: str, threads: str | None, steps: int | None, repeats: int | None, minutes: float | None
) -> int:
    """Measure a protocol with the rows of its task. Exit code 0 unless a point failed or a row that was named cannot run here."""
    bench = Measuring(where, f"sweep --protocol {name}", "protocols")
    tasks = [task for task in bench.catalog.tasks.values() if any(row.task == task.key for row in bench.rows)]
    task = next((task for task in tasks if name in task.protocols), None)
    if task is None:
        raise unknown("protocol", name, [other for task in bench.catalog.tasks.values() for other in task.protocols])
    bench.rows = [row for row in bench.rows if row.task == task.key]
    protocol = task.protocols[name].on(bench.slot.on_gpu)
    slots, earlier = bench.slots(threads, each=protocol.threads == "each"), _earlier(bench, name)
    counts = {"STEPS": steps or protocol.steps, "REPEATS": repeats or protocol.repeats, "WARMUP": protocol.warmup}
    measured = set()
    for row in bench.rows:
        before = earlier.get(row.full_name)
        if before and before.newest.versions == _versions(bench, row, before):
            # What failed is tried again
            there = (point for point in before.points if point.status in ("ok", OUT_OF_MEMORY))
            measured |= {(row.full_name, rows.place(point)) for point in there}
    spots = [spot for row in bench.rows for spot in _spots(bench, row, protocol, slots, counts)]
    spots.sort(key=lambda spot: spot.estimate_s)
    due = [spot for spot in spots if (spot.plan.row.full_name, frozenset(spot.at.items())) not in measured]
    limit_s, total_s = 60 * minutes if minutes else inf, sum(spot.estimate_s for spot in due)
    say = bench.console.say
    say(f"{protocol.title}: {len(spots)} points of {len(bench.rows)} rows, {len(spots) - len(due)} of them are there")
    say(f"{len(due)} points to measure, about {clock(total_s)}, the cheapest first")
    if total_s > limit_s:
        fitting = sum(spent <= limit_s for spent in accumulate(spot.estimate_s for spot in due))
        say(f"{clock(limit_s)} suffice for about {fitting} of them; call it again, and it goes on", "yellow")
    failed = _measure(bench, name, due, limit_s, earlier)
    every = [record for _, record in records.read_all(bench.results)]
    say(portable(str(write(bench.catalog, every, bench.results))))
    return int(failed)


def _spots(bench: Measuring, row: Row, protocol: Protocol, slots: list[Slot], counts: dict[str, int]) -> Iterator[Spot]:
    """All points of a row, but for networks that it lacks. counts: steps, repeats and warm-up of a point, if it is fast enough."""
    task = bench.catalog.task(row.task)
    for slot, place in product(slots, protocol.places()):
        if place[NETWORK] in row.facts.lacking(bench.slot.on_gpu):
            continue
        share = len(bench.processors) / slot.threads if slot.threads and not slot.on_gpu else 1
        step_s = share * task.step_s(row.facts, task.constants() | place | counts, bench.slot.on_gpu)
        fewer = max(1, min(counts["STEPS"], int(REPEAT_S / step_s)))
        fitting = counts | {"STEPS": fewer, "WARMUP": min(protocol.warmup, max(fewer, LEAST_WARM_UP))}
        all_steps = fitting["WARMUP"] + fewer * fitting["REPEATS"]
        estimate_s = row.facts.cost.start_s + all_steps * step_s
        yield Spot(bench.plan(row, place | fitting), {"threads": slot.threads, **place}, slot, estimate_s)


def _earlier(bench: Measuring, name: str) -> dict[str, Measurement]:
    """What was measured of rows, by their full names, with today's notebook, on this machine and such data."""
    of_rows, made = {row.full_name: row for row in bench.rows}, {}
    every = [record for _, record in records.read_all(bench.results)]
    for measured in chain.from_iterable(rows.groups(bench.catalog, every, NAME)):
        newest, row = measured.newest, of_rows.get(measured.newest.full_name)
        if row and newest.machine.name == bench.slot.machine.name and newest.changed == {NAME: name}:
            synthetic = bench.where.synthetic or bench.catalog.task(row.task).data is None
            if newest.dataset.synthetic == synthetic and is_todays(newest, row):
                made[row.full_name] = measured
    return made


def _versions(bench: Measuring, row: Row, earlier: Measurement | None) -> dict[str, str]:
    """Today's versions of the modules that the earlier measurement names, else of those that the row imports; none where the row's
    interpreter has no answer."""
    named = (earlier.newest.versions if earlier else {}).keys() - {"python", "numpy"}
    try:
        with TemporaryDirectory(prefix="rosetta-") as folder:
            script = bench.script(bench.plan(row, {}), {"parameters": ""}, folder)
            command = [str(script.python), "-c", VERSIONS, *sorted(named or row.imports)]
            answer = scripts.run("asking for versions", command, checkout.root, script.environment(bench.slot))
    except RosettaError:  # its points will say why
        return {}
    return json.loads(next(line for line in reversed(answer.splitlines()) if line.startswith("{")))


def _measure(bench: Measuring, name: str, due: list[Spot], limit_s: float, earlier: dict[str, Measurement]) -> bool:
    """Measure points one after the other until the time is up; whether one failed.

    Estimates of a row are corrected by what its points took.
    """
    began, failed, left, ratios, kept = time.monotonic(), False, [], {}, {}
    for number, spot in enumerate(due, start=1):
        row = spot.plan.row
        remaining_s = limit_s - (time.monotonic() - began)
        if max(spot.estimate_s * ratios.get(row.full_name, 1.0), LEAST_S) > remaining_s:
            left.append(spot)
            continue
        planned = spot.plan.limited(spot.estimate_s)
        planned = planned.model_copy(update={"timeout_s": min(planned.timeout_s, remaining_s + LATE * limit_s)})
        ended = execute(planned, spot.slot, bench.kernels, watch=lambda progress: None)
        ended.close()
        done = ended.record
        status = OUT_OF_MEMORY if MEMORY.search(done.error or "") else done.status
        values = [value for each in done.points for value in each.values] if status == "ok" else []
        point = Point(at=spot.at | {STEPS: planned.constants["STEPS"]}, values=values, status=status)
        stopped = done.status == "timeout" and time.monotonic() - began > limit_s
        if not stopped and done.status != "skipped" and not done.disturbed:
            record = kept.setdefault(row.full_name, bench.record(spot.plan, NAME, {NAME: name}))
            if done.versions:
                record.device, record.versions, record.cuda = done.device, done.versions, done.cuda
            elif not record.versions:  # it failed before it told them
                record.versions = _versions(bench, row, earlier.get(row.full_name))
            record.points.append(point)
            records.write(record, bench.results)
        said, bad = status, True
        if done.disturbed:
            said = f"not kept, because {done.disturbed}"
        elif values:
            ratios[row.full_name] = done.metrics.wall_s / spot.estimate_s
            said, bad = f"{milliseconds(point)} ms", False
        elif status == OUT_OF_MEMORY:  # which is a result
            bad = False
        else:
            said = "stopped: the time that was given is up" if stopped else f"{status}: {done.error}"
        failed |= bad
        about = ", ".join(f"{name.lower()} {value}" for name, value in spot.at.items())
        style = "red" if bad or not values else ""
        bench.console.say(f"[{number}/{len(due)}] {row.full_name}: {about}: {said}", style)
    if left:
        seconds = sum(spot.estimate_s for spot in left)
        rows_left = ", ".join(dict.fromkeys(spot.plan.row.name for spot in left))
        bench.console.say(f"left out: {len(left)} points, about {clock(seconds)}, of {rows_left}")
    return failed


@dataclass(frozen=True)
class Layout:
    """A table: its phase, its columns in order, and what makes a line of them. by_size: one network at several sizes."""

    phase: str
    columns: list[Column]
    by_size: bool

    def table(self, what: str, body: list[list[str]]) -> list[str]:
        """The table below its title, which says what it shows; nothing where there is no line."""
        counts = {threads for *_, threads in self.columns}
        headings = [f"{markdown.code(which)}, batch {batch}" for which, batch, _ in self.columns]
        title = PHASES[AS_IN_SWEEPS[self.phase]].capitalize()
        if len(counts) == 1:
            title += f", {threads_of(*counts)}"
        else:
            headings = [f"{text}, {threads_of(column[-1])}" for text, column in zip(headings, self.columns)]
        return [f"**{title}: {what}**", markdown.table(["", *headings], body)] if body else []


def write(catalog: Catalog, every: list[Record], results: Path) -> Path:
    """Write the page of the records, which lie below ``results``; returns its path."""
    page = results / PAGE
    files.write_atomically(page, text(catalog, every, results))
    return page


def text(catalog: Catalog, every: list[Record], results: Path) -> str:
    """The page: a heading for each benchmark, and below it one for each machine."""
    parts = ["# Published benchmarks, repeated"]
    parts += ["Generated by `run_all.py measure sweep --protocol NAME` and `report`: do not edit.", ABOUT]
    measured = groups(catalog, every)
    for task in catalog.tasks.values():
        titles = {row.name: row.title for row in catalog.rows(task.key)}
        for name, protocol in task.protocols.items():
            sources = [read_published(source) for source in protocol.published]
            parts += [f"## {protocol.title}", markdown.wrapped(protocol.about)]
            for source in sources:
                named = f"[{source.source}]({source.url})" if source.url else source.source
                scaled = source.platforms and (results / "scaling.md").is_file()  # by studies/scaling.py
                several = " Its rates of several devices: [Several devices](scaling.md)." if scaled else ""
                parts.append(markdown.wrapped(f"Of {source.year}: {named}; {source.conditions}.{several}"))
            of_protocol = [group for of, key, group in measured if (of.key, key) == (task.key, name)]
            if not of_protocol:
                parts.append(f"Not measured yet: `run_all.py measure sweep --task {task.key} --protocol {name}`.")
            for group in of_protocol:
                newest = group[0].newest
                parts.append(f"### {markdown.escape(newest.machine.name)}, {markdown.escape(protocol.title)}")
                with rows.valid_points(records.path(newest, results).parent):
                    parts += _of_machine(task, name, group, sources, titles, results)
    return "\n\n".join(parts) + "\n"


def groups(catalog: Catalog, every: list[Record]) -> list[tuple[Task, str, Group]]:
    """What was measured for protocols that there still are: the task, the protocol's name, and the group of a machine."""
    made = []
    for group in rows.groups(catalog, every, NAME):
        task, name = catalog.task(group[0].newest.task), group[0].newest.changed.get(NAME)
        if name in task.protocols:
            made.append((task, name, group))
    return sorted(made, key=lambda each: (each[0].key, each[1]))


def layouts(protocol: Protocol, numbers: list[int], others: Iterable[int] = ()) -> list[Layout]:
    """The tables of a protocol: one of networks and one of each network that it takes at several sizes, for each phase.

    numbers: of threads that were measured; others: that were published.
    """
    tables: dict[tuple, dict] = {}
    for group in protocol.points:
        by_size = isinstance(group[BATCH], list) and not isinstance(group[NETWORK], list)
        for place in places_of(group):
            phase = place[PHASE], by_size and place[NETWORK]
            tables.setdefault(phase, {})[place[NETWORK], place[BATCH]] = None
    made = []
    for (phase, by_size), columns in tables.items():
        for several in [sorted({*numbers, *others})] if len(columns) == 1 else [[number] for number in numbers]:
            made.append(Layout(phase, [(*column, number) for column in columns for number in several], bool(by_size)))
    return made


def _of_machine(
    task: Task, name: str, group: Group, sources: list[Benchmark], titles: dict[str, str], results: Path
) -> list[str]:
    """The tables of a machine, each with the published figures of its columns."""
    protocol, product = task.protocols[name].on(bool(group[0].newest.machine.gpus)), rows.matrix_product(group, results)
    counts, floor, parts = thread_counts(group), product and product[-1], []

    def lines(layout: Layout, unit: str) -> list[list[str]]:
        """A line a row that has a point there."""
        made = []
        for measured in group:
            points = {column_of(point): point for point in measured.points if point.at[PHASE] == layout.phase}
            figures = [_cell(task, floor, unit, points.get(column)) for column in layout.columns]
            if points.keys() & set(layout.columns):
                made.append([markdown.escape(measured.newest.title), *figures])
        return made

    published = {point.at["threads"] for source in sources for point in source.points if "threads" in point.at}
    for layout in layouts(protocol, counts, published):
        most, measured = layout.columns[-1][-1] >= counts[-1], lines(layout, protocol.unit)
        # Once, though the devices of then have no such threads
        earlier = then(layout, sources, titles) if measured and most else []
        parts += layout.table(protocol.unit, measured + earlier)
        if layout.by_size:
            parts += layout.table("ms an example", lines(layout, "ms an example"))
        if most:
            parts += layout.table("GFLOP/s", lines(layout, "GFLOP/s"))
    parts += _against_forward(protocol, group, counts[-1])
    for what, about in (("time", "Milliseconds a step by batch size"), ("example", "Milliseconds an example")):
        parts += picture(about, group, f"{name}-{what}", results)
    words = f"{measured_on(group)} GFLOP/s: a multiply-add counts twice, and a gradient as two forward passes."
    if floor:
        words += f" In brackets: the share of NumPy's matrix product, {floor / 1e9:.0f} GFLOP/s. More than 100% is faster than that."
    return [*parts, markdown.wrapped(words), versions(group)]


def thread_counts(group: Group) -> list[int]:
    """The numbers of threads that were measured; 0 where a framework chose."""
    return sorted({column_of(point)[-1] for measured in group for point in measured.points})


def column_of(point: Point) -> Column:
    return point.at[NETWORK], point.at[BATCH], point.at["threads"] or 0


def _cell(task: Task, floor: float | None, unit: str, point: Point | None) -> str:
    """A point in a unit of the page, "" of none. floor: FLOP/s of the machine's matrix product, whose share a rate has in brackets."""
    if point is None:
        return ""
    if unit == "GFLOP/s":
        flop = task.flop(task.constants() | point.at) if point.values else None
        rate = flop / point.sample.mean if flop else None
        share = f" ({rate / floor:.0%})" if rate and floor else ""
        return f"{rate / 1e9:.1f}{share}" if rate else ""
    if not point.values:
        return point.status
    if unit == "ms":
        return milliseconds(point)
    if unit == "ms an example":  # Add-For's mini-batch efficiency
        return f"{1000 * point.sample.mean / point.at[BATCH]:.2f}"
    return f"{point.at[BATCH] / point.sample.mean:,.1f}"


def _against_forward(protocol: Protocol, group: Group, threads: int) -> list[str]:
    """How many times as long as its forward pass a network's forward and backward take."""
    phases: dict[Column, set[str]] = {}
    for place in protocol.places():
        phases.setdefault((place[NETWORK], place[BATCH], threads), set()).add(place[PHASE])
    columns, body = [column for column, there in phases.items() if there >= {"forward", "gradient"}], []
    for measured in group:
        means = {(point.at[PHASE], *column_of(point)): point.sample.mean for point in measured.points if point.values}
        pairs = [(means.get(("gradient", *column)), means.get(("forward", *column))) for column in columns]
        ratios = [f"{gradient / forward:.1f}" if gradient and forward else "" for gradient, forward in pairs]
        body += [[markdown.escape(measured.newest.title), *ratios]] if any(ratios) else []
    return Layout("gradient", columns, by_size=False).table("times its forward pass", body)


def then(layout: Layout, sources: list[Benchmark], titles: dict[str, str]) -> list[list[str]]:
    """What was published, a line a framework and device: at the same point, or at another size that the cell names."""
    lines: dict[tuple, dict[Column, str]] = {}
    for source in sources:
        for point in source.points:
            column = _same(layout, point)
            for framework, figure in point.figures.items() if column else ():
                size = point.at.get(BATCH, column[1])
                about = "" if size == column[1] else f" (batch {size})"
                line = lines.setdefault((f"{titles.get(framework, framework)}, {point.device}", source.year), {})
                line.setdefault(column, f"{figure:,g}{about}")
    return [
        [f"*{markdown.escape(f'{title}, {year}')}*", *(figures.get(column, "") for column in layout.columns)]
        for (title, year), figures in lines.items()
    ]


def _same(layout: Layout, point: PublishedPoint) -> Column | None:
    """The column of a published point; of another size only where the table shows networks, not sizes."""
    at = point.at
    if at[PHASE] != layout.phase or at.get("devices", 1) != 1 or at.get("DATA", "synthetic") != "synthetic":
        return None
    threads = at.get("threads")
    columns = [column for column in layout.columns if column[0] == at[NETWORK] and threads in (None, column[2])]
    exact = [column for column in columns if at.get(BATCH, column[1]) == column[1]]
    return (exact or ([] if layout.by_size else columns) or [None])[-1]
