"""How long the phases of a training step take, or a batch of a pass, for numbers of threads and along the task's axes.

The protocol of the benchmarks of 2016 and 2017: warm-up excluded, many steps, repeated; forward, forward and backward, the whole step.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice, product
from math import ceil

from rosetta.catalog import Row
from rosetta.errors import RosettaError, needs_extra
from rosetta.figures import clock
from rosetta.kinds.kind import BATCH, Kind
from rosetta.measure import cells, scripts
from rosetta.measure.benchmarks import protocols
from rosetta.measure.cells import PHASES, milliseconds
from rosetta.measure.process import Process
from rosetta.measure.rows import Measuring, usual_threads
from rosetta.plan import Plan, checked
from rosetta.records import Point
from rosetta.run.devices import Slot
from rosetta.where import Where, axes, numbers

NAME, WHAT = "sweep", "phases"
STEPS, REPEATS = 100, 5  # timed at once, and how often
SLOW_BATCH = 64  # the largest batch of a row that takes seconds a step
WARM_UP = 3  # steps that are not timed
OWN_PASSES = 2  # of a notebook, which are not timed either


@dataclass(frozen=True)
class Grid:
    """Every phase is timed ``repeats`` times, ``steps`` steps at once, for each batch size; ``axes`` are other parameters."""

    batch_sizes: list[int]
    axes: dict[str, list]
    steps: int = STEPS
    repeats: int = REPEATS

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
    steps, repeats = steps or STEPS, repeats or REPEATS
    if plot:
        with needs_extra("sweep --plot"):
            from rosetta.measure import plot as drawing
    asked, given = numbers("--threads", threads) if threads else usual_threads(), axes(axis or [])
    bench = Measuring(options, NAME, "phases")
    slots = [bench.with_threads(number) for number in asked]
    grids, plans = {}, []
    for row in bench.rows:
        task = bench.catalog.task(row.task)
        along = task.sweep | given
        for name, values in along.items():
            for value in values:
                checked({name: value}, task)
        sizes = along.pop(BATCH, [task.constants()[BATCH]])
        grid = Grid(sizes, along, steps, repeats)
        grids[row.full_name] = grid = grid.fewer() if bench.slow(row) else grid
        constants = {BATCH: max(grid.batch_sizes)}
        plans.append(bench.plan(row, constants | task.kind.short(constants, steps=1, turns=1)))
    if not bench.slot.on_gpu:
        total_s = len(slots) * sum(grids[row.full_name].estimate_s(row, bench.catalog.kind(row)) for row in bench.rows)
        bench.console.say(f"about {clock(total_s)}")

    def work(planned: Plan) -> Iterator[list[Point]]:
        grid = grids[planned.row.full_name]
        points_of = parts if planned.kind.trains else passes
        for slot, place in product(slots, grid.places()):
            yield from points_of(bench, bench.plan(planned.row, planned.changed | place), slot, grid, place)

    heading = f"{'threads':>8}{'batch':>7}" + cells.line((f"{title}, ms" for title in PHASES.values()), 24)
    return bench.each(NAME, heading, plans, work, _line, draw=drawing.write if plot else None)


def parts(bench: Measuring, planned: Plan, slot: Slot, grid: Grid, place: dict) -> Iterator[list[Point]]:
    """The points of one process, a row with so many threads: those of one batch size after the other.

    Raises RosettaError where the framework's phases fail, Unavailable where they are not written or cannot run here.
    """
    roles = planned.kind.names
    phases = scripts.changes(scripts.program(WHAT, planned.row), roles).after["optimizer"]
    before = roles[: roles.index("optimizer") + 1]
    code = {role: source for role, source in scripts.cells(planned.row.notebook).items() if role in before}
    asked = asdict(grid) | {"phases": list(PHASES), "warm_up": WARM_UP}
    scripted = bench.scripts(planned, code | {"phases": phases})
    with scripted as (script,), Process(script, slot, "phases", asked) as process:
        for message in process.messages():
            yield points(slot.threads, grid.steps, place, message)


def passes(bench: Measuring, planned: Plan, slot: Slot, grid: Grid, place: dict) -> Iterator[list[Point]]:
    """The points of a row with so many threads, a process for each batch size: networks may be compiled for theirs."""
    code = scripts.cells(planned.row.notebook)
    for size in grid.batch_sizes:
        of_size = place | {BATCH: size}
        sized = bench.plan(planned.row, of_size | planned.kind.short(of_size, grid.steps, turns=1))
        with bench.scripts(sized, code) as (script,), Process(script, slot, planned.kind.turns, {}) as process:
            _, *told = islice(process.turns(), 1 + grid.repeats)
        at = {"threads": slot.threads, **of_size, "phase": "forward", "steps": grid.steps}
        yield [
            Point(at=at, values=[turn["seconds"] / grid.steps for turn in told]),
            Point(at=at, values=[told[-1]["mean output"]], unit="mean output"),  # evidence that it computed
        ]


def points(threads: int, steps: int, place: dict, message: dict) -> list[Point]:
    """What ``inside`` tells of one batch size: seconds a step of each phase, one a repeat, and its last loss."""
    made = []
    for phase in PHASES:
        at = {"threads": threads, **place, BATCH: message["batch_size"], "phase": phase, "steps": steps}
        made.append(Point(at=at, values=message["seconds"][phase]))
        made.append(Point(at=at, values=[message["loss"][phase]], unit="loss"))  # evidence that it computed
    return made


def _line(points: list[Point]) -> str:
    at = points[0].at
    about = " ".join(f"{name}={value}" for name, value in cells.others(at).items())
    phases = cells.line(map(milliseconds, cells.timed(points)), 24)
    return f"{at['threads']:>8}{at[BATCH]:>7}{phases}  {about}".rstrip()
