"""Points of a published protocol: each is a run of a row's own notebook, the cheapest first, as many as fit into the time given.

A task of a kind that has ``protocols`` names them in its ``task.toml``. What was measured is a record whose preset is ``protocol``; a
point that is there already, measured with the notebook of today, is not measured again.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, product
from typing import Any

from rosetta import files, records
from rosetta.catalog import Row
from rosetta.errors import unknown
from rosetta.figures import clock
from rosetta.identity import content
from rosetta.measure import keep
from rosetta.measure.benchmarks import page, scaling
from rosetta.measure.benchmarks.page import NAME
from rosetta.measure.cells import milliseconds
from rosetta.measure.rows import Measuring, usual_threads
from rosetta.paths import portable
from rosetta.plan import Plan
from rosetta.records import Point, Record
from rosetta.run.devices import Slot
from rosetta.run.execute import blank, execute
from rosetta.tasks import Protocol
from rosetta.where import Where, numbers

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


@dataclass(frozen=True)
class Spot:
    """A point to be measured: a plan of the row's notebook, where it runs, and its estimate in seconds."""

    plan: Plan
    at: dict[str, Any]
    slot: Slot
    estimate_s: float

    def label(self) -> str:
        return ", ".join(f"{name.lower()} {value}" for name, value in self.at.items())


def run(
    options: Where, name: str, threads: str | None, steps: int | None, repeats: int | None, minutes: float | None
) -> int:
    """Measure a protocol of every row's task. Exit code 0 unless a point failed or a row that was named cannot run here."""
    bench = Measuring(options, f"sweep --protocol {name}", "protocols")
    protocol = _of(bench, name)
    spots = [spot for row in bench.rows for spot in _spots(bench, row, protocol, threads, steps, repeats)]
    there = {row.full_name: _there(bench, row, name) for row in bench.rows}
    due = [spot for spot in spots if _place(spot.at) not in there[spot.plan.row.full_name]]
    due.sort(key=lambda spot: spot.estimate_s)
    limit_s = minutes and 60 * minutes
    _announce(bench, protocol, spots, due, limit_s)
    return _Session(bench, name, limit_s).measure(due)


def _of(bench: Measuring, name: str) -> Protocol:
    """The protocol of that name; the rows that are left are of its task.

    Raises RosettaError where the rows' task has none of it.
    """
    for key in {row.task for row in bench.rows}:
        if protocol := bench.catalog.task(key).protocols.get(name):
            bench.rows = [row for row in bench.rows if row.task == key]
            return protocol.on(bench.slot.on_gpu)
    raise unknown("protocol", name, [known for task in bench.catalog.tasks.values() for known in task.protocols])


def _spots(
    bench: Measuring, row: Row, protocol: Protocol, threads: str | None, steps: int | None, repeats: int | None
) -> Iterator[Spot]:
    """All points of a row, but for networks that it lacks."""
    task = bench.catalog.task(row.task)
    usual = usual_threads() if protocol.threads == "each" else [len(bench.processors)]
    asked = numbers("--threads", threads) if threads else usual
    slots = [bench.with_threads(number) for number in asked]
    given = {"STEPS": steps or protocol.steps, "REPEATS": repeats or protocol.repeats}
    for slot, place in product(slots, protocol.places()):
        if place.get(task.kind.which) in row.facts.lacking(bench.slot.on_gpu):
            continue
        constants = task.constants() | place | given | {"WARMUP": protocol.warmup}
        share = len(bench.processors) / slot.threads if slot.threads and not slot.on_gpu else 1
        step_s = share * task.step_s(row.facts, constants, bench.slot.on_gpu)
        fewer = max(1, min(constants["STEPS"], int(REPEAT_S / step_s)))
        constants |= {"STEPS": fewer, "WARMUP": min(protocol.warmup, max(fewer, LEAST_WARM_UP))}
        planned = bench.plan(row, place | {name: constants[name] for name in ("WARMUP", "STEPS", "REPEATS")})
        counted = constants["WARMUP"] + fewer * constants["REPEATS"]
        yield Spot(planned, {"threads": slot.threads, **place}, slot, row.facts.cost.start_s + counted * step_s)


def _there(bench: Measuring, row: Row, name: str) -> list:
    """The places of points that today's notebook has times of, or no memory for; what failed is tried again."""
    planned = bench.plan(row, {})
    file = records.path(_record(bench, planned, bench.slot, name), bench.results)
    if not file.is_file():
        return []
    earlier = files.load(Record, file)
    if earlier.notebook.sha256 != content(row.notebook):
        return []
    return [_place(point.at) for point in earlier.points if point.status in ("ok", OUT_OF_MEMORY)]


def _place(at: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in at.items() if name != keep.PROTOCOL}


def _record(bench: Measuring, planned: Plan, slot: Slot, name: str) -> Record:
    record = blank(planned, slot, bench.kernels)
    record.preset, record.changed, record.status = NAME, {NAME: name}, "ok"
    record.dataset.synthetic = True
    return record


def _announce(bench: Measuring, protocol: Protocol, spots: list[Spot], due: list[Spot], limit_s: float | None) -> None:
    say, total_s = bench.console.say, sum(spot.estimate_s for spot in due)
    say(f"{protocol.title}: {len(spots)} points of {len(bench.rows)} rows, {len(spots) - len(due)} of them are there")
    say(f"{len(due)} points to measure, about {clock(total_s)}, the cheapest first")
    if limit_s and total_s > limit_s:
        fitting = sum(spent <= limit_s for spent in accumulate(spot.estimate_s for spot in due))
        say(f"{clock(limit_s)} suffice for about {fitting} of them; call it again, and it goes on", "yellow")


@dataclass
class _Session:
    """Measures points one after the other until the time is up. Estimates of a row are corrected by what its points took."""

    bench: Measuring
    name: str
    limit_s: float | None

    def measure(self, due: list[Spot]) -> int:
        started, failed, left, ratios = time.monotonic(), 0, [], {}
        for number, spot in enumerate(due, start=1):
            row = spot.plan.row.full_name
            remaining = self.limit_s - (time.monotonic() - started) if self.limit_s else None
            expected = spot.estimate_s * ratios.get(row, 1.0)
            if remaining is not None and max(expected, LEAST_S) > remaining:
                left.append(spot)
                continue
            point, error, took_s = self._point(spot, remaining)
            if point.values:
                ratios[row] = took_s / spot.estimate_s
            failed += bool(error)
            found = f"{milliseconds(point)} ms" if point.values else error
            head = f"[{number}/{len(due)}] {row}: {spot.label()}: "
            self.bench.console.say(head + (found or point.status), "" if point.values else "red")
        for spot in left:
            self.bench.console.say(
                f"left out, about {clock(spot.estimate_s)}: {spot.plan.row.full_name}: {spot.label()}"
            )
        kept = [record for _, record in records.read_all(self.bench.results)]
        for module in (page, scaling):
            self.bench.console.say(portable(str(module.write(self.bench.catalog, kept, self.bench.results))))
        return int(failed > 0)

    def _point(self, spot: Spot, remaining: float | None) -> tuple[Point, str | None, float]:
        """The point, which is kept, why it has no times, and seconds of its run. Memory that does not suffice is a result, no failure."""
        planned = spot.plan.limited(spot.estimate_s)
        if remaining is not None:
            longest_s = min(planned.timeout_s, remaining + LATE * self.limit_s)
            planned = planned.model_copy(update={"timeout_s": longest_s})
        stopped = False
        ended = execute(planned, spot.slot, self.bench.kernels, watch=lambda progress: None)
        try:
            record, at = ended.record, spot.at | {keep.PROTOCOL: planned.constants["STEPS"]}
        finally:
            ended.close()
        if record.status == "ok":
            values = [value for point in record.points for value in point.values]
            point, error = Point(at=at, values=values), None
        else:
            full = MEMORY.search(record.error or "")
            point = Point(at=at, status=OUT_OF_MEMORY if full else record.status)
            error = None if full else f"{record.status}: {record.error}"
            if stopped := record.status == "timeout" and remaining is not None and planned.timeout_s > remaining:
                error = "stopped: the time that was given is up"
        if record.status != "skipped" and not stopped:
            kept = _record(self.bench, planned, spot.slot, self.name)
            kept.device, kept.versions, kept.cuda = record.device, record.versions, record.cuda
            keep.row(kept.model_copy(update={"points": [point]}), self.bench.results)
        return point, error, record.metrics.wall_s or 0.0
