"""What the harness costs: a notebook's code as a plain script, against the same notebook through run_all.py.

    uv run benchmarks/overhead.py [ROW ...] [--repeats N] [--preset smoke]

Both sides run alternately in the row's own environment, on the same parameters and data, as whole processes.
Prints seconds, median (min - max), and the difference of the medians: process start, kernel start, papermill, table.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rosetta import catalog, plan
from rosetta.paths import ROOT
from rosetta.run.kernels import Kernels
from rosetta.speed import scripts
from rosetta.speed.figures import spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", default=["pytorch", "mxnet_gluon", "tensorflow1"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--preset", default="smoke")
    options = parser.parse_intermixed_args()
    known = catalog.load()
    task = next(iter(known.tasks))
    print(f"{'row':<20} {'script, s':>22} {'run_all.py, s':>22} {'difference, s':>14}")
    for planned in plan.make(known, known.select(task, options.rows), options.preset, {}, gpu=False):
        with tempfile.TemporaryDirectory() as folder:
            code = scripts.cells(planned.row.notebook)
            alone = scripts.write(planned, code, Path(folder) / "script.py", Kernels()).run
            through = _runner(planned, options.preset, Path(folder))
            alone(), through()  # warm-up: file cache, Theano's compiled modules
            pairs = [(_timed(alone), _timed(through)) for _ in range(options.repeats)]
        script_s, runner_s = zip(*pairs)
        difference = statistics.median(runner_s) - statistics.median(script_s)
        print(
            f"{planned.row.name:<20} {spread(script_s, 2):>22} {spread(runner_s, 2):>22} {difference:>14.2f}",
            flush=True,
        )


def _runner(planned: plan.Plan, preset: str, folder: Path):
    command = [sys.executable, "run_all.py", "run", planned.row.name, "--preset", preset, "--out", str(folder / "out")]
    return lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def _timed(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
