"""What the harness adds to a run: a notebook's code as a plain script, against the same notebook through ``run_all.py``."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rosetta.errors import RosettaError
from rosetta.measure import cells, scripts
from rosetta.measure.rows import Measuring, Part, RowOptions
from rosetta.measure.startup import timed
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

    def work(planned: Plan) -> Iterator[Part]:
        with tempfile.TemporaryDirectory(prefix="rosetta-") as name:
            code = scripts.cells(planned.row.notebook)
            script = scripts.write(planned, code, Path(name, "script.py"), bench.kernels)
            calls = {SCRIPT: lambda: script.run(bench.slot), RUNNER: lambda: _run(planned, options, Path(name, "out"))}
            for call in calls.values():  # warm-up: file cache, compiled modules
                call()
            seconds = [[timed(call) for call in calls.values()] for _ in range(repeats)]
        points = [Point(at={"program": each}, values=values) for each, values in zip(calls, zip(*seconds))]
        yield Part(points, "".join(f"{cell:>24}" for cell in cells.overhead(points)))

    heading = f"{'script, s':>24}{'run_all.py, s':>24}{'difference, s':>24}"
    return bench.each(NAME, heading, [bench.plan(row, {}) for row in bench.rows], work)


def _run(planned: Plan, options: RowOptions, out: Path) -> None:
    command = [sys.executable, "-c", COMMAND, "run", planned.row.full_name, "--preset", planned.preset]
    command += ["--out", str(out), *(["--synthetic"] if planned.synthetic else [])]
    command += [f"--python={each}" for each in options.python or []]
    command += [f"--gpus={options.gpus}"] if options.gpus else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RosettaError(f"run_all.py failed: {scripts.last_words(done.stderr or done.stdout, done.returncode)}")
