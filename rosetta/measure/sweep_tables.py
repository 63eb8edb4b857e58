"""The tables and the picture of a sweep: where a step's time goes, by threads and by batch size."""

from itertools import groupby
from pathlib import Path

from rosetta import markdown
from rosetta.kinds.kind import BATCH
from rosetta.measure import cells, keep
from rosetta.measure.cells import PHASES, Group, measured_on, milliseconds, titled
from rosetta.records import Point, Record
from rosetta.tasks import Task


def picture_file(results: Path, machine: str, task: Task) -> Path:
    """The picture of a sweep, where one was drawn."""
    return results / machine / keep.FOLDER / f"{task.key}-sweep.svg"


def limits(results: Path, task: Task, group: Group) -> list[str]:
    """Where a step's time goes with all processors, beside what these do in a plain matrix product."""
    batch, machine = task.constants()[BATCH], group[0].machine
    floor, flop = keep.floor(machine, results), task.flop(task.constants())
    if not floor or not flop:
        return []
    (measured, product), most, body = floor, max(_threads(group, batch), default=0), []
    best, size = product.sample.high, product.at["size"]
    for record in group:
        means = {phase: point.sample.mean for phase, point in _phases(record, most, batch).items()}
        if not means:
            continue
        forward, backward, step = (means[phase] for phase in PHASES)
        rate, parts = flop / step, (forward, backward - forward, step - backward)
        shares = [f"{round(part / step, 2) + 0.0:.0%}" for part in parts]  # + 0.0: no minus before nothing
        body.append([titled(record), f"{1000 * step:.0f}", f"{rate / 1e9:.0f}", f"{rate / best:.0%}", *shares])
    heading = ["", "full step, ms", "GFLOP/s", "of the matrix product's", "forward", "gradients", "update"]
    words = (
        f"From the next table, with {cells.threads(most)}. NumPy's product of two matrices of {size} x {size}: "
        f"{best / 1e9:.0f} GFLOP/s, which makes the floor of a step {1000 * flop / best:.0f} ms "
        f"({markdown.escape(measured.machine.about)}; {measured.measured:%Y-%m-%d})."
    )
    return [markdown.table(heading, body), markdown.wrapped(words)]


def every_point(results: Path, task: Task, group: Group) -> list[str]:
    """Every point of a sweep."""
    body = []
    for record in group:
        for place, points in groupby(sorted(cells.timed(record.points), key=_place), key=_place):
            phases, at = {point.at["phase"]: point for point in points}, dict(place)
            step = phases[task.kind.phases[-1]]
            others = [markdown.escape(f"{name.lower()} {value}") for name, value in cells.others(at).items()]
            row = " ".join([titled(record), *others])
            times = [milliseconds(phases[phase]) for phase in task.kind.phases]
            rate, protocol = f"{at[BATCH] / step.sample.mean:.0f}", f"{len(step.values)} x {step.at['steps']}"
            body.append([row, str(at["threads"]), str(at[BATCH]), *times, rate, protocol])
    times = (f"{PHASES[phase]}, ms" for phase in task.kind.phases)
    heading = ["row", "threads", "batch", *times, "examples/s", "protocol"]
    words = "Mean ± standard deviation; *protocol*: repeats x steps. " + measured_on(group)
    picture = picture_file(results, group[0].machine.name, task)
    address = markdown.address(picture, results)
    shown = f"![Examples a second by batch size and number of threads]({address})"
    return [markdown.table(heading, body), words, *([shown] if picture.is_file() else [])]


def by_threads(task: Task, group: Group) -> list[str]:
    """Milliseconds of each phase at the task's own batch size, for every number of threads."""
    batch = task.constants()[BATCH]
    threads, known, body, counts = _threads(group, batch), task.kind.phases, [], set()
    if not threads:
        return []
    for record in group:
        of_threads = [_phases(record, number, batch) for number in threads]
        if not any(of_threads):
            continue
        figures = [milliseconds(phases[phase]) if phases else "" for phases in of_threads for phase in known]
        steps = [phases[known[-1]] for phases in of_threads if phases]
        complete = len(threads) > 1 and of_threads[0] and of_threads[-1]
        gain = f"{steps[0].sample.mean / steps[-1].sample.mean:.2f}" if complete else ""
        body.append([titled(record), *figures, gain])
        counts |= {(step.at["steps"], len(step.values)) for step in steps}
    heading = ["", *(f"{PHASES[phase]}, ms, {cells.threads(number)}" for number in threads for phase in known), "gain"]
    protocol = ", ".join(f"{repeats} times {steps} steps" for steps, repeats in sorted(counts))
    parts = [f"batch {batch}, {protocol}, mean ± standard deviation"]
    if len(threads) > 1:
        unit = "step" if task.kind.trains else "pass"
        parts.append(f"*gain*: of the {unit}, from {cells.threads(threads[0])} to {threads[-1]}")
    words = measured_on(group, *parts)
    return [markdown.table(heading, body), words]


def _place(point: Point) -> tuple:
    """Where a point of a sweep was taken, whatever its phase."""
    return tuple((name, value) for name, value in point.at.items() if name not in ("phase", keep.PROTOCOL))


def _phases(record: Record, threads: int, batch: int) -> dict[str, Point]:
    """The timed points of a sweep at one place of two axes alone."""
    place = {"threads": threads, BATCH: batch}
    return {point.at["phase"]: point for point in cells.timed(record.points) if dict(_place(point)) == place}


def _threads(group: Group, batch: int) -> list[int]:
    """The numbers of threads that were measured at this batch size."""
    points = [point for record in group for point in record.points]
    return sorted({point.at["threads"] for point in points if point.at[BATCH] == batch})
