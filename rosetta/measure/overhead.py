"""What the harness adds to a run: a notebook's code as a plain script, against the same notebook through ``run_all.py``."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rosetta.measure import cells, scripts
from rosetta.measure.options import RowOptions
from rosetta.measure.rows import Measuring
from rosetta.measure.turns import by_turns, timed
from rosetta.paths import ROOT
from rosetta.plan import Plan
from rosetta.records import Point

NAME, SCRIPT, RUNNER = "overhead", "script", "run_all.py"
# run_all.py without its lock, which the measurement holds
COMMAND = (
    "from contextlib import nullcontext; from rosetta import cli, lock; lock.only_runner = nullcontext; cli.main()"
)


def overhead(options: RowOptions, repeats: int) -> int:
    """Both run by turns in the row's own environment, on the same parameters and data, as whole processes."""
    bench = Measuring(options)

    def work(planned: Plan) -> Iterator[list[Point]]:
        with bench.scripts(planned, scripts.cells(planned.row.notebook)) as (script,):
            command = _command(planned, options, script.file.with_name("out"))
            calls = {
                SCRIPT: partial(timed, lambda: script.run(bench.slot)),
                RUNNER: partial(timed, lambda: scripts.run("run_all.py", command, ROOT)),
            }
            yield by_turns("program", calls, repeats, warm_up=1)  # file cache, compiled modules

    heading = cells.line(["script, s", "run_all.py, s", "difference, s"], 24)
    plans = [bench.plan(row, {}) for row in bench.rows]
    return bench.each(NAME, heading, plans, work, lambda points: cells.line(cells.overhead(points), 24))


def _command(planned: Plan, options: RowOptions, out: Path) -> list[str]:
    command = [sys.executable, "-c", COMMAND, "run", planned.row.full_name, "--preset", planned.preset]
    command += ["--out", str(out), *(["--synthetic"] if planned.synthetic else [])]
    command += [f"--python={each}" for each in options.python or []]
    return command + ([f"--gpus={options.gpus}"] if options.gpus else [])
