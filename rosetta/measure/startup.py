"""What happens before the first training step: the commands' own start-up, and imports, building and compiling of every row."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rosetta import records
from rosetta.errors import RosettaError, Unavailable
from rosetta.figures import spread
from rosetta.measure import cells, keep
from rosetta.measure.machine import timed
from rosetta.measure.rows import Measuring, Part, RowOptions
from rosetta.paths import RESULTS, ROOT
from rosetta.plan import Plan
from rosetta.records import Point, Record
from rosetta.run.execute import execute
from rosetta.tasks import PRESETS

NAME = "startup"
COMMANDS = {"--help": ["--help"], "list": ["list"], "report of 1,000 records": ["report", "--out"]}


def startup(options: RowOptions, repeats: int) -> int:
    """The commands, then the rows: each runs epochs of a single step through the runner, with its environment ready."""
    bench = Measuring(options)
    points = commands(repeats, bench.results)
    for point in points:
        bench.console.print(f"{point.at['command']:<26} {spread(point.sample, 2)} s", markup=False)
    keep.machine(NAME, bench.slot.machine, points, bench.results)

    def work(planned: Plan) -> Iterator[Part]:
        parts = [_parts(bench, planned) for _ in range(repeats)]
        points = [Point(at={"part": part}, values=[each[part] for each in parts]) for part in parts[0]]
        yield Part(points, "".join(f"{cell:>16}" for cell in cells.start(points)))

    heading = "".join(f"{title:>16}" for title in cells.PARTS.values())
    return bench.each(NAME, heading, [bench.short(row, steps=1, epochs=3) for row in bench.rows], work)


def commands(repeats: int, results: Path) -> list[Point]:
    """Seconds of each command as a whole process, after a warm-up; 1,000 records are made up from those that there are."""
    with tempfile.TemporaryDirectory() as name:
        _make_up(results, Path(name), 1000)
        points = []
        for title, arguments in COMMANDS.items():
            command = [sys.executable, "run_all.py", *arguments, *([name] if arguments[-1] == "--out" else [])]
            call = partial(subprocess.run, command, cwd=ROOT, check=True, capture_output=True)
            seconds = [timed(call) for _ in range(repeats + 1)]
            points.append(Point(at={"command": title}, values=seconds[1:]))
        return points


def _parts(bench: Measuring, planned: Plan) -> dict[str, float]:
    run = execute(planned, bench.slot, bench.kernels, watch=lambda progress: None)
    run.close()
    if run.record.status != "ok":
        error = Unavailable if run.record.status == "skipped" else RosettaError
        raise error(f"{run.record.status}: {run.record.error}")
    return planned.kind.parts(run.record.metrics)


def _make_up(results: Path, to: Path, number: int) -> None:
    """Copies of committed records, as if from as many machines as it takes."""
    there = records.read_all(results) or records.read_all(RESULTS)
    known = [record for _, record in there if record.preset in PRESETS]
    if not known:
        raise RosettaError("there are no records to report: run a row first")
    for count in range(number):
        record: Record = known[count % len(known)].model_copy(deep=True)
        record.machine.name = f"machine-{count // len(known)}"
        records.write(record, to)
