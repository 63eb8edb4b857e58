"""What ``measure fastest``, ``measure sweep`` and ``measure floor`` do.

``measure sweep`` follows the benchmarks of 2016 and 2017: warm-up excluded, many steps, repeated; forward, forward and
backward, the whole step.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice, product
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rosetta import catalog, data, records
from rosetta import notebook as notebooks
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, Unavailable, needs_extra
from rosetta.figures import clock
from rosetta.kinds.kind import BATCH
from rosetta.measure import protocols, rows, tables
from rosetta.measure.rows import Measuring, Process
from rosetta.measure.tables import PHASES, milliseconds
from rosetta.paths import portable
from rosetta.plan import Plan, checked
from rosetta.records import Point, Record
from rosetta.run.devices import Slot
from rosetta.run.machine import describe
from rosetta.run.scripts import Script
from rosetta.run.telemetry import OtherPrograms
from rosetta.where import Where, axes

STEPS, REPEATS = 100, 5  # of a sweep: timed at once, and how often
SLOW_BATCH = 64  # the largest batch of a row that takes seconds a step
WARM_UP = 3  # steps that are not timed
OWN_PASSES = 2  # of a notebook, which are not timed either

Both = Callable[[Plan, str], list[Script]]  # the scripts of a notebook and of another program, in a folder


def floor(size: int, repeats: int, results: Path) -> int:
    """The speed of NumPy's FP32 product of two square matrices, and what it makes of a step of every task."""
    machine = describe()
    with OtherPrograms() as programs:
        point = Point(at={"size": size}, values=[matrix_product(size) for _ in range(repeats)], unit="FLOP/s")
    if busy := programs.used().disturb:
        raise RosettaError(f"not measured, because {busy}")
    rows.write_machine("floor", machine, [point], results)
    print(f"matrix product: {point.sample.high / 1e9:.0f} GFLOP/s with {machine.cores} processors")
    for key, task in catalog.load().tasks.items():
        constants = task.constants()
        if flop := task.flop(constants):
            about = f"{flop / 1e9:.1f} GFLOP a step of {constants[BATCH]}"
            print(f"{key}: {about}, not below {1000 * flop / point.sample.high:.0f} ms")
    return 0


def matrix_product(size: int) -> float:
    """FLOP/s of one product."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    started = time.perf_counter()
    a @ b
    return 2 * size**3 / (time.perf_counter() - started)


def measure(
    bench: Measuring,
    what: str,
    columns: dict[str, int],
    plans: list[Plan],
    work: Callable[[Plan, Record], Iterator[list[Point]]],
    shown: Callable[[list[Point]], tuple[list[str], str]],
    changed: dict[str, str],
    draw: Callable[[Catalog, list[Record], Path], list[Path]] | None = None,
) -> int:
    """Measure the rows of the plans, keep each point at once, and write the tables of everything below the results folder. Exit code
    0 only if all could be measured; what is not there counts if it was named.

    columns: headings on the screen, each with its width. work: gives points of a plan, some at a time, and writes the versions into
    the record. shown: those points as cells of the columns, and words behind them. changed: what was set by hand. draw: pictures of all records.
    """
    data.locate_all(plans, bench.where.data_dir)
    if bench.where.data_dir:  # the scripts inherit it
        os.environ["ROSETTA_DATA"] = str(bench.where.data_dir.absolute())

    titles = [bench.catalog.label(planned.row) for planned in plans]
    broadest = max([22, *map(len, titles)])

    def say(title: str, cells: list[str], about: str = "") -> None:
        line = "".join(f" {cell:>{width - 1}}" for cell, width in zip(cells, columns.values()))
        bench.console.say(f"{title:<{broadest}}{line}  {about}".rstrip())

    say("row", list(columns))
    kept: dict[str, Record] = {}  # a row may have several plans
    failed = False
    for title, planned in zip(titles, plans):
        try:
            record = kept.setdefault(planned.row.full_name, bench.record(planned, what, changed))
            with OtherPrograms(bench.slot.processors) as programs:
                began = time.monotonic()
                for points in work(planned, record):
                    programs.sample()
                    if busy := programs.used(began).disturb:
                        raise RosettaError(f"not kept, because {busy}")
                    record.points += points
                    records.write(record, bench.results)
                    say(title, *shown(points))
                    began = time.monotonic()
        except RosettaError as error:
            missing = isinstance(error, Unavailable)
            bench.console.say(f"{title}: {error}", "yellow" if missing else "red")
            failed |= not missing or bool(bench.where.names)
    every = [record for _, record in records.read_all(bench.results)]
    drawn = draw(bench.catalog, every, bench.results) if draw else []
    for file in [*drawn, *tables.write(bench.catalog, every, bench.results)]:
        bench.console.say(portable(str(file)))
    return int(failed)


def fastest(where: Where, steps: int, epochs: int) -> int:
    """Every notebook by turns with the program of its framework that has the fastest idiomatic loop."""
    bench = Measuring(where, "measure fastest", "turns")

    def both(planned: Plan, folder: str) -> list[Script]:
        code = planned.row.code
        file = notebooks.program("fastest", planned.row.task, planned.row.framework)
        change = notebooks.changes(file, planned.kind.names)
        codes = {"notebook": code, "fastest": notebooks.changed(code, *change)}
        return [bench.script(planned, code, folder, name) for name, code in codes.items()]

    return against(bench, "fastest", bench.compared(steps, epochs), epochs, both, {})


def against(bench: Measuring, what: str, plans: list[Plan], turns: int, both: Both, changed: dict[str, str]) -> int:
    """Measure every plan's notebook by turns with another program, keep the times and write the tables; exit code as of ``measure``.

    what: the other program, as records name it. plans: as ``Measuring.compared`` makes them, for so many turns. changed: what was set
    by hand.
    """

    def work(planned: Plan, record: Record) -> Iterator[list[Point]]:
        """The first turn, which may still compile and warm up, does not count."""
        size, kind, points = planned.constants, planned.kind, []
        with TemporaryDirectory(prefix="rosetta-") as folder:
            done = alternate(both(planned, folder), kind.turns, bench.slot, turns, bench.modules)
        for program, (first, _, *counted) in zip(("notebook", what), done):
            record.versions = first["versions"]
            names = [kind.which, BATCH] if kind.which else [BATCH]
            at = {"program": program, **{name: size[name] for name in names}, "steps": kind.steps(size)}
            points.append(Point(at=at, values=[turn["seconds"] / at["steps"] for turn in counted]))
            evidence = next(name for name in counted[0] if name != "seconds")  # that it computed
            points.append(Point(at=at, values=[turn[evidence] for turn in counted], unit=evidence))
        yield points

    def shown(points: list[Point]) -> tuple[list[str], str]:
        ((label, times),) = tables.pairs(points)
        return times, label

    columns = dict.fromkeys(["notebook, ms a step", "other, ms a step", "notebook / other"], 26)
    return measure(bench, what, columns, plans, work, shown, changed)


def alternate(
    both: list[Script], todo: str, slot: Slot, turns: int, modules: list[str]
) -> tuple[list[dict], list[dict]]:
    """What both scripts tell: their versions, then each of their turns. They begin a round by turns, so that neither is always the
    first.

    todo: the function of ``inside`` that gives them turns. modules: whose versions are asked for.
    """
    done: tuple[list[dict], list[dict]] = ([], [])
    at_work = []
    with ExitStack() as stack:
        for script, messages in zip(both, done):
            at_work.append(stack.enter_context(Process(script, slot, todo, {"modules": modules})).turns())
            # It is about to begin, and is stopped before the other one starts
            messages.append(next(at_work[-1]))
        for number in range(turns):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                done[which].append(next(at_work[which]))
    return done


@dataclass(frozen=True)
class Grid:
    """The points of a row: every phase is timed ``repeats`` times, ``steps`` steps at once, for each batch size at each place."""

    places: list[dict]  # other parameters of each process; one measures all batch sizes
    batch_sizes: list[int]
    steps: int
    repeats: int
    estimate_s: float  # with one number of threads


def grid_of(bench: Measuring, row: Row, asked: dict[str, list], steps: int, repeats: int) -> Grid:
    """The task's axes, or those that were asked for. Where a step takes seconds, a tenth of the steps and small batches alone.

    Raises RosettaError for a parameter that the task does not have.
    """
    task = bench.catalog.task(row.task)
    along = task.sweep | asked
    for name, values in along.items():
        for value in values:
            checked({name: value}, task)
    sizes = along.pop(BATCH, [task.constants()[BATCH]])
    if bench.slow(row, {}):
        sizes = [size for size in sizes if size <= SLOW_BATCH] or [min(sizes)]
        steps = ceil(steps / 10)
    places = [dict(zip(along, values)) for values in product(*along.values())]
    # By its cost on 2 cores; the phases together are two steps
    starts, examples = 1, 2 * sum(sizes) * (steps * repeats + WARM_UP)
    if not task.kind.trains:
        starts, examples = len(sizes), sum(sizes) * steps * (OWN_PASSES + repeats)
    estimate_s = len(places) * (starts * row.facts.cost.start_s + examples * row.facts.cost.item_ms / 1000)
    return Grid(places, sizes, steps, repeats, estimate_s)


def sweep(
    where: Where,
    threads: str | None,
    axis: list[str] | None,
    steps: int | None,
    repeats: int | None,
    plot: bool,
    protocol: str | None,
    minutes: float | None,
) -> int:
    """Measure rows; show and keep every point as soon as it is there. Exit code as of all measurements of rows."""
    if protocol:
        if axis or plot:
            raise RosettaError("--protocol says its points itself: leave out --axis and --plot")
        return protocols.run(where, protocol, threads, steps, repeats, minutes)
    if minutes:
        raise RosettaError("--minutes is for --protocol NAME, whose points can be left out")
    if plot:
        with needs_extra("measure sweep --plot"):
            from rosetta.measure import pictures
    bench = Measuring(where, "sweep", "phases")
    slots, asked, grids, plans = bench.slots(threads, each=True), axes(axis or []), {}, []
    for row in bench.rows:
        grids[row.full_name] = grid = grid_of(bench, row, asked, steps or STEPS, repeats or REPEATS)
        plans.append(bench.short(row, {BATCH: max(grid.batch_sizes)}, steps=1, turns=1))
    if not bench.slot.on_gpu:
        bench.console.say(f"about {clock(len(slots) * sum(grid.estimate_s for grid in grids.values()))}")

    def work(planned: Plan, record: Record) -> Iterator[list[Point]]:
        grid = grids[planned.row.full_name]
        time_row = time_phases if planned.kind.trains else time_passes
        for slot, place in product(slots, grid.places):
            yield from time_row(bench, bench.plan(planned.row, planned.changed | place), record, slot, grid, place)

    def shown(points: list[Point]) -> tuple[list[str], str]:
        at = points[0].at
        times = map(milliseconds, tables.timed(points))
        return [str(at["threads"]), str(at[BATCH]), *times], ", ".join(tables.others(at))

    columns = {"threads": 8, "batch": 7} | {f"{title}, ms": 24 for title in PHASES.values()}
    return measure(bench, "sweep", columns, plans, work, shown, {}, pictures.draw_sweeps if plot else None)


def time_phases(
    bench: Measuring, planned: Plan, record: Record, slot: Slot, grid: Grid, place: dict
) -> Iterator[list[Point]]:
    """The points of one process, a row with so many threads: those of one batch size after the other.

    Raises RosettaError where the framework's phases fail, Unavailable where they are not written or cannot run here.
    """
    if "DEVICES" in planned.constants:
        raise Unavailable("not written: its step is that of several devices, each of which has its own")
    roles = planned.kind.names
    _, phases = notebooks.changes(notebooks.program("phases", planned.row.task, planned.row.framework), roles)
    before = roles[: roles.index("optimizer") + 1]
    code = {role: source for role, source in planned.row.code.items() if role in before}
    asked = asdict(grid) | {"phases": list(PHASES), "warm_up": WARM_UP, "modules": bench.modules}
    with TemporaryDirectory(prefix="rosetta-") as folder:
        script = bench.script(planned, code | {"phases": phases["optimizer"]}, folder)
        with Process(script, slot, "phases", asked) as process:
            messages = process.messages()
            record.versions = next(messages)["versions"]
            for message in messages:
                points, size = [], message["batch_size"]
                for phase in PHASES:
                    at = {"threads": slot.threads, **place, BATCH: size, "phase": phase, "steps": grid.steps}
                    points.append(Point(at=at, values=message["seconds"][phase]))
                    loss = [message["loss"][phase]]  # evidence that it computed
                    points.append(Point(at=at, values=loss, unit="loss"))
                yield points


def time_passes(
    bench: Measuring, planned: Plan, record: Record, slot: Slot, grid: Grid, place: dict
) -> Iterator[list[Point]]:
    """The points of a row with so many threads, a process for each batch size: networks may be compiled for theirs."""
    code = planned.row.code
    for size in grid.batch_sizes:
        of_size = place | {BATCH: size}
        sized = bench.short(planned.row, of_size, grid.steps, turns=1)
        with TemporaryDirectory(prefix="rosetta-") as folder:
            script = bench.script(sized, code, folder)
            with Process(script, slot, planned.kind.turns, {"modules": bench.modules}) as process:
                first, *passes = islice(process.turns(), 1 + grid.repeats)
        record.versions = first["versions"]
        at = {"threads": slot.threads, **of_size, "phase": "forward", "steps": grid.steps}
        yield [
            Point(at=at, values=[each["seconds"] / grid.steps for each in passes]),
            Point(at=at, values=[passes[-1]["mean output"]], unit="mean output"),  # evidence that it computed
        ]
