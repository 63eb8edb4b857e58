"""How long the phases of a training step take, for numbers of threads and along the task's axes.

The protocol of the benchmarks of 2016 and 2017: warm-up excluded, many steps, repeated; forward, forward and backward, the whole step.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import ceil
from pathlib import Path

from rosetta.extras import needs_extra
from rosetta.figures import clock
from rosetta.kinds.train import BATCH
from rosetta.measure import scripts
from rosetta.measure.cells import PHASES, milliseconds
from rosetta.measure.process import Process
from rosetta.measure.rows import Measuring, Part, RowOptions
from rosetta.plan import Plan, check
from rosetta.records import Point
from rosetta.run import devices, machine
from rosetta.run.devices import Slot

NAME, WHAT = "sweep", "phases"
SLOW_BATCH = 64  # the largest batch of a row that takes seconds a step
WARM_UP = 3  # steps that are not timed


@dataclass(frozen=True)
class Protocol:
    """Every phase is timed ``repeats`` times, ``steps`` steps at once, for each batch size; ``axes`` are other parameters."""

    batch_sizes: list[int]
    axes: dict[str, list]
    steps: int = 100
    repeats: int = 5

    def fewer(self) -> "Protocol":
        """A tenth of the steps and small batches alone, for a row whose steps take seconds."""
        small = [size for size in self.batch_sizes if size <= SLOW_BATCH] or [min(self.batch_sizes)]
        return replace(self, batch_sizes=small, steps=ceil(self.steps / 10))

    def places(self) -> list[dict]:
        """The parameters of each process; one measures all batch sizes."""
        return [dict(zip(self.axes, values)) for values in product(*self.axes.values())]

    def estimate_s(self, planned: Plan) -> float:
        """Seconds of a row with one number of threads, by its cost on 2 cores: the phases together are two steps."""
        examples, cost = sum(self.batch_sizes) * (self.steps * self.repeats + WARM_UP), planned.row.facts.cost
        return len(self.places()) * (cost.start_s + 2 * examples * cost.item_ms / 1000)


def usual_threads() -> list[int]:
    """1, 2, 4 ... and as many as there are processors."""
    there = len(machine.processors())
    return [2**power for power in range(there.bit_length()) if 2**power < there] + [there]


def sweep(
    options: RowOptions, threads: list[int] | None, axis: dict[str, list], steps: int, repeats: int, plot: bool
) -> int:
    """Measure rows; show and keep every point as soon as it is there. Exit code as of all measurements of rows."""
    if plot:
        with needs_extra("sweep --plot"):
            from rosetta.measure import plot as drawing
    bench = Measuring(options)
    slots = [devices.timed(options.gpus, number)[0] for number in threads or usual_threads()]
    protocols, plans = {}, []
    for row in bench.rows:
        task = bench.catalog.task(row.task)
        along = task.sweep | axis
        for name, values in along.items():
            for value in values:
                check({name: value}, task)
        sizes = along.pop(BATCH, [task.constants()[BATCH]])
        protocol = Protocol(sizes, along, steps, repeats)
        protocols[row.full_name] = protocol = protocol.fewer() if bench.slow(row) else protocol
        constants = {BATCH: max(protocol.batch_sizes)}
        plans.append(bench.plan(row, constants | task.kind.short(constants, steps=1, epochs=1)))
    if not bench.slot.on_gpu:
        total_s = len(slots) * sum(protocols[planned.row.full_name].estimate_s(planned) for planned in plans)
        bench.console.print(f"about {clock(total_s)}")

    def work(planned: Plan) -> Iterator[Part]:
        protocol = protocols[planned.row.full_name]
        for slot in slots:
            for place in protocol.places():
                yield from parts(bench, bench.plan(planned.row, planned.changed | place), slot, protocol, place)

    heading = f"{'threads':>8}{'batch':>7}" + "".join(f"{title + ', ms':>24}" for title in PHASES.values())
    return bench.each(NAME, heading, plans, work, draw=drawing.write if plot else None)


def parts(bench: Measuring, planned: Plan, slot: Slot, protocol: Protocol, place: dict) -> Iterator[Part]:
    """The points of one process: a row with so many threads, all batch sizes.

    Raises RosettaError where the framework's phases fail, Unavailable where they are not written or cannot run here.
    """
    roles = planned.kind.names
    phases = scripts.changes(scripts.program(WHAT, planned.row), roles).after["optimizer"]
    before = roles[: roles.index("optimizer") + 1]
    code = {role: source for role, source in scripts.cells(planned.row.notebook).items() if role in before}
    asked = {
        "batch_sizes": protocol.batch_sizes,
        "phases": list(PHASES),
        "steps": protocol.steps,
        "repeats": protocol.repeats,
        "warm_up": WARM_UP,
    }
    with tempfile.TemporaryDirectory(prefix="rosetta-") as name:
        script = scripts.write(planned, code | {"phases": phases}, Path(name, "phases.py"), bench.kernels)
        with Process(script, slot, "phases", asked) as process:
            for message in process.messages():
                yield part(slot.threads, protocol.steps, place, message)


def part(threads: int, steps: int, place: dict, message: dict) -> Part:
    """What ``inside`` tells of one batch size, as points: seconds a step of each phase, one a repeat, and its last loss."""
    points, shown = [], []
    for phase in PHASES:
        at = {"threads": threads, **place, BATCH: message["batch_size"], "phase": phase, "steps": steps}
        points.append(Point(at=at, values=message["seconds"][phase]))
        points.append(Point(at=at, values=[message["loss"][phase]], unit="loss"))  # evidence that it computed
        shown.append(f"{milliseconds(points[-2]):>24}")
    about = " ".join(f"{name}={value}" for name, value in place.items())
    return Part(points, f"{threads:>8}{message['batch_size']:>7}{''.join(shown)}  {about}".rstrip())
