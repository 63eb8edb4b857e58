"""What ``measure fastest``, ``measure floor`` and ``sweep`` do.

``sweep`` follows the benchmarks of 2016 and 2017: warm-up excluded, many steps, repeated; forward, forward and backward, the whole
step.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import islice, product
from math import ceil
from pathlib import Path

import numpy as np

from rosetta import catalog, records
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, needs_extra
from rosetta.figures import clock
from rosetta.kinds.kind import BATCH, Kind
from rosetta.measure import protocols, rows, tables
from rosetta.measure.rows import Measuring, Process, usual_threads
from rosetta.measure.tables import PHASES, line, milliseconds
from rosetta.notebook import by_role
from rosetta.paths import portable
from rosetta.plan import Plan, checked
from rosetta.records import Point, Record
from rosetta.run import scripts
from rosetta.run.devices import Slot
from rosetta.run.machine import describe
from rosetta.run.scripts import Script
from rosetta.where import Where, axes, numbers, results_folder

STEPS, REPEATS = 100, 5  # of a sweep: timed at once, and how often
SLOW_BATCH = 64  # the largest batch of a row that takes seconds a step
WARM_UP = 3  # steps that are not timed
OWN_PASSES = 2  # of a notebook, which are not timed either

Draw = Callable[[Catalog, list[Record], Path], list[Path]]


def floor(size: int, repeats: int, out: Path | None) -> int:
    """The speed of NumPy's FP32 product of two square matrices, and what it makes of a step of every task."""
    machine = describe()
    point = Point(at={"size": size}, values=[matrix_product(size) for _ in range(repeats)], unit="FLOP/s")
    rows.write_machine("floor", machine, [point], results_folder(out))
    print(f"matrix product: {point.sample.high / 1e9:.0f} GFLOP/s with {machine.cores} processors")
    for key, task in catalog.load().tasks.items():
        flop = task.flop(task.constants())
        if flop:
            about = f"{flop / 1e9:.1f} GFLOP a step of {task.constants()[BATCH]}"
            print(f"{key}: {about}, not below {1000 * flop / point.sample.high:.0f} ms")
    return 0


def matrix_product(size: int) -> float:
    """FLOP/s of one product."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    started = time.perf_counter()
    a @ b
    return 2 * size**3 / (time.perf_counter() - started)


def write_tables(bench: Measuring, draw: Draw | None = None) -> None:
    """Write the tables of everything below the results folder. draw: pictures, first."""
    every = [record for _, record in records.read_all(bench.results)]
    pictures = draw(bench.catalog, every, bench.results) if draw else []
    for file in [*pictures, *tables.write(bench.catalog, every, bench.results)]:
        bench.console.say(portable(str(file)))


def fastest(options: Where, steps: int, epochs: int) -> int:
    """Every notebook by turns with the program of its framework that has the fastest idiomatic loop."""
    bench = Measuring(options, "measure fastest", "turns")

    def work(planned: Plan, record: Record) -> Iterator[list[Point]]:
        code = by_role(planned.row.notebook)
        change = scripts.changes(scripts.program("fastest", planned.row), planned.kind.names)
        with bench.scripts(planned, code, scripts.changed(code, change)) as both:
            yield by_turns(bench, planned, record, dict(zip(("notebook", "fastest"), both)), epochs)

    code = bench.each("fastest", PAIR_HEADING, pairs_of_plans(bench, steps, epochs), work, pair_line)
    write_tables(bench)
    return code


PAIR_HEADING = line(["notebook, ms a step", "other, ms a step", "notebook / other"], 26)


def pair_line(points: list[Point]) -> str:
    ((label, group),) = tables.pairs(points).items()
    return f"{line(tables.pair(group), 26)}  {label}".rstrip()


def pairs_of_plans(bench: Measuring, steps: int, turns: int) -> list[Plan]:
    """Short runs of every row, with each set of parameters that its task names for a comparison of loops."""
    return [
        bench.short(row, steps, turns, place)
        for row in bench.rows
        for place in bench.catalog.task(row.task).compared
        if place.get(bench.catalog.kind(row).which) not in row.facts.lacking(bench.slot.on_gpu)
    ]


def by_turns(bench: Measuring, planned: Plan, record: Record, programs: dict[str, Script], turns: int) -> list[Point]:
    """The points of two scripts; the first turn, which may still compile and warm up, does not count."""
    size, which, points = planned.constants, planned.kind.which, []
    both = alternate(tuple(programs.values()), planned.kind.turns, bench.slot, turns, bench.modules)
    steps = planned.kind.steps(size)
    for program, (first, _, *counted) in zip(programs, both):
        record.versions = first["versions"]
        at = {"program": program, **({which: size[which]} if which else {}), BATCH: size[BATCH], "steps": steps}
        points.append(Point(at=at, values=[turn["seconds"] / steps for turn in counted]))
        evidence = next(name for name in counted[0] if name != "seconds")  # that it computed
        points.append(Point(at=at, values=[turn[evidence] for turn in counted], unit=evidence))
    return points


def alternate(
    both: tuple[Script, ...], todo: str, slot: Slot, turns: int, modules: list[str]
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
    """Every phase is timed ``repeats`` times, ``steps`` steps at once, for each batch size; ``axes`` are other parameters."""

    batch_sizes: list[int]
    axes: dict[str, list]
    steps: int
    repeats: int

    def fewer(self) -> "Grid":
        """A tenth of the steps and small batches alone, for a row whose steps take seconds."""
        small = [size for size in self.batch_sizes if size <= SLOW_BATCH] or [min(self.batch_sizes)]
        return replace(self, batch_sizes=small, steps=ceil(self.steps / 10))

    def places(self) -> list[dict]:
        """The parameters of each process; one measures all batch sizes."""
        return [dict(zip(self.axes, values)) for values in product(*self.axes.values())]

    def estimate_s(self, row: Row, kind: Kind) -> float:
        """Seconds of a row with one number of threads, by its cost on 2 cores: the phases together are two steps."""
        cost, examples, starts = row.facts.cost, 2 * sum(self.batch_sizes) * (self.steps * self.repeats + WARM_UP), 1
        if not kind.trains:
            examples, starts = sum(self.batch_sizes) * self.steps * (OWN_PASSES + self.repeats), len(self.batch_sizes)
        return len(self.places()) * (starts * cost.start_s + examples * cost.item_ms / 1000)


def sweep(
    options: Where,
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
        return protocols.run(options, protocol, threads, steps, repeats, minutes)
    if minutes:
        raise RosettaError("--minutes is for --protocol NAME, whose points can be left out")
    if plot:
        with needs_extra("sweep --plot"):
            from rosetta.measure import pictures
    counts, asked_axes = numbers("--threads", threads) if threads else usual_threads(), axes(axis or [])
    bench = Measuring(options, "sweep", "phases")
    slots = [bench.with_threads(number) for number in counts]
    grids, plans = {}, []
    for row in bench.rows:
        task = bench.catalog.task(row.task)
        along = task.sweep | asked_axes
        for name, values in along.items():
            for value in values:
                checked({name: value}, task)
        sizes = along.pop(BATCH, [task.constants()[BATCH]])
        grid = Grid(sizes, along, steps or STEPS, repeats or REPEATS)
        grids[row.full_name] = grid = grid.fewer() if bench.slow(row) else grid
        constants = {BATCH: max(grid.batch_sizes)}
        plans.append(bench.plan(row, constants | task.kind.short(constants, steps=1, turns=1)))
    if not bench.slot.on_gpu:
        total_s = len(slots) * sum(grids[row.full_name].estimate_s(row, bench.catalog.kind(row)) for row in bench.rows)
        bench.console.say(f"about {clock(total_s)}")

    def work(planned: Plan, record: Record) -> Iterator[list[Point]]:
        grid = grids[planned.row.full_name]
        measure = time_phases if planned.kind.trains else time_passes
        for slot, place in product(slots, grid.places()):
            yield from measure(bench, bench.plan(planned.row, planned.changed | place), record, slot, grid, place)

    heading = f"{'threads':>8}{'batch':>7}" + line((f"{title}, ms" for title in PHASES.values()), 24)
    code = bench.each("sweep", heading, plans, work, _sweep_line)
    write_tables(bench, pictures.draw_sweeps if plot else None)
    return code


def time_phases(
    bench: Measuring, planned: Plan, record: Record, slot: Slot, grid: Grid, place: dict
) -> Iterator[list[Point]]:
    """The points of one process, a row with so many threads: those of one batch size after the other.

    Raises RosettaError where the framework's phases fail, Unavailable where they are not written or cannot run here.
    """
    roles = planned.kind.names
    phases = scripts.changes(scripts.program("phases", planned.row), roles).after["optimizer"]
    before = roles[: roles.index("optimizer") + 1]
    code = {role: source for role, source in by_role(planned.row.notebook).items() if role in before}
    asked = asdict(grid) | {"phases": list(PHASES), "warm_up": WARM_UP, "modules": bench.modules}
    scripted = bench.scripts(planned, code | {"phases": phases})
    with scripted as (script,), Process(script, slot, "phases", asked) as process:
        messages = process.messages()
        record.versions = next(messages)["versions"]
        for message in messages:
            yield points_of_phases(slot.threads, grid.steps, place, message)


def time_passes(
    bench: Measuring, planned: Plan, record: Record, slot: Slot, grid: Grid, place: dict
) -> Iterator[list[Point]]:
    """The points of a row with so many threads, a process for each batch size: networks may be compiled for theirs."""
    code = by_role(planned.row.notebook)
    for size in grid.batch_sizes:
        of_size = place | {BATCH: size}
        sized = bench.plan(planned.row, of_size | planned.kind.short(of_size, grid.steps, turns=1))
        asked = {"modules": bench.modules}
        with bench.scripts(sized, code) as (script,), Process(script, slot, planned.kind.turns, asked) as process:
            first, *passes = islice(process.turns(), 1 + grid.repeats)
        record.versions = first["versions"]
        at = {"threads": slot.threads, **of_size, "phase": "forward", "steps": grid.steps}
        yield [
            Point(at=at, values=[each["seconds"] / grid.steps for each in passes]),
            Point(at=at, values=[passes[-1]["mean output"]], unit="mean output"),  # evidence that it computed
        ]


def points_of_phases(threads: int, steps: int, place: dict, message: dict) -> list[Point]:
    """What ``inside`` tells of one batch size: seconds a step of each phase, one a repeat, and its last loss."""
    made = []
    for phase in PHASES:
        at = {"threads": threads, **place, BATCH: message["batch_size"], "phase": phase, "steps": steps}
        made.append(Point(at=at, values=message["seconds"][phase]))
        made.append(Point(at=at, values=[message["loss"][phase]], unit="loss"))  # evidence that it computed
    return made


def _sweep_line(points: list[Point]) -> str:
    at = points[0].at
    about = " ".join(f"{name}={value}" for name, value in tables.other_parameters(at).items())
    phases = line(map(milliseconds, tables.timed(points)), 24)
    return f"{at['threads']:>8}{at[BATCH]:>7}{phases}  {about}".rstrip()
