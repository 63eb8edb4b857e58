"""What a run takes besides training: start-up, imports, building and compiling, and what the harness adds to a row's own code."""

import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rosetta import records
from rosetta.errors import RosettaError, Unavailable
from rosetta.figures import spread
from rosetta.measure import cells, keep, scripts
from rosetta.measure.rows import Measuring
from rosetta.measure.turns import by_turns, timed
from rosetta.paths import RESULTS, ROOT
from rosetta.plan import Plan
from rosetta.records import Point
from rosetta.run.execute import execute
from rosetta.tasks import PRESETS
from rosetta.where import Where

STARTUP, OVERHEAD = "startup", "overhead"
# run_all.py without its lock, which the measurement holds
UNLOCKED = (
    "from contextlib import nullcontext; from rosetta import cli, lock; lock.only_runner = nullcontext; cli.main()"
)


def startup(options: Where, repeats: int) -> int:
    """The commands, then the rows: each runs epochs of a single step through the runner, with its environment ready."""
    bench = Measuring(options, f"measure {STARTUP}")
    points = _commands(repeats, bench.results)
    for point in points:
        bench.console.say(f"{point.at['command']:<26} {spread(point.sample, 2)} s")
    keep.machine(STARTUP, bench.slot.machine, points, bench.results)

    def work(planned: Plan) -> Iterator[list[Point]]:
        starts = [_parts(bench, planned) for _ in range(repeats)]
        yield [Point(at={"part": part}, values=[parts[part] for parts in starts]) for part in starts[0]]

    plans = [bench.short(row, steps=1, turns=3) for row in bench.rows]
    heading = cells.line(cells.PARTS.values(), 16)
    return bench.each(STARTUP, heading, plans, work, lambda points: cells.line(cells.start(points), 16))


def _commands(repeats: int, results: Path) -> list[Point]:
    """Seconds of each command as a whole process, after a warm-up; 1,000 records are made up from those that there are."""
    with tempfile.TemporaryDirectory() as name:
        _make_up(results, Path(name), 1000)
        commands = {"--help": ["--help"], "list": ["list"], "report of 1,000 records": ["report", "--out", name]}
        calls = {
            title: partial(timed, partial(scripts.run, title, [sys.executable, "run_all.py", *arguments], ROOT))
            for title, arguments in commands.items()
        }
        return by_turns("command", calls, repeats, warm_up=1)


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
        record = known[count % len(known)].model_copy(deep=True)
        record.machine.name = f"machine-{count // len(known)}"
        records.write(record, to)


def overhead(options: Where, repeats: int) -> int:
    """A notebook's code as a plain script, and the same notebook through ``run_all.py``.

    Both run by turns in the row's own environment, on the same parameters and data, as whole processes.
    """
    bench = Measuring(options, f"measure {OVERHEAD}")

    def work(planned: Plan) -> Iterator[list[Point]]:
        with bench.scripts(planned, scripts.cells(planned.row.notebook)) as (script,):
            command = _run(planned, options, script.file.with_name("out"))
            calls = {
                "script": partial(timed, lambda: script.run(bench.slot)),
                "run_all.py": partial(timed, lambda: scripts.run("run_all.py", command, ROOT)),
            }
            yield by_turns("program", calls, repeats, warm_up=1)  # file cache, compiled modules

    heading = cells.line(["script, s", "run_all.py, s", "difference, s"], 24)
    plans = [bench.plan(row, {}) for row in bench.rows]
    return bench.each(OVERHEAD, heading, plans, work, lambda points: cells.line(cells.overhead(points), 24))


def _run(planned: Plan, options: Where, out: Path) -> list[str]:
    """The command that runs the notebook of a plan."""
    command = [sys.executable, "-c", UNLOCKED, "run", planned.row.full_name, "--preset", planned.preset]
    command += ["--out", str(out), *(["--synthetic"] if planned.synthetic else [])]
    command += [f"--python={each}" for each in options.python]
    command += [f"--build={each}" for each in options.build]
    return command + ([f"--gpus={options.gpus}"] if options.gpus else [])
