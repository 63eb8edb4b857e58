"""What the harness costs: a notebook's code as a plain script, against the same notebook through run_all.py.

    uv run benchmarks/overhead.py [ROW ...] [--repeats N] [--preset smoke]

Both sides run alternately in the row's own environment, on the same parameters and data, as whole processes.
Prints seconds, median (min - max), and the difference of the medians: process start, kernel start, papermill, table.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import nbformat

from rosetta import catalog, plan
from rosetta.kernels import Kernels
from rosetta.paths import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", default=["pytorch", "mxnet_gluon", "tensorflow1"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--preset", default="smoke")
    options = parser.parse_args()
    known = catalog.load()
    task = next(iter(known.tasks))
    print(f"{'row':<20} {'script, s':>22} {'run_all.py, s':>22} {'difference, s':>14}")
    for planned in plan.make(known, known.select(task, options.rows), options.preset, {}, gpu=False):
        with tempfile.TemporaryDirectory() as folder:
            script, runner = _script(planned, Path(folder)), _runner(planned, options.preset, Path(folder))
            script(), runner()  # warm-up: file cache, Theano's compiled modules
            pairs = [(_timed(script), _timed(runner)) for _ in range(options.repeats)]
        alone, through = zip(*pairs)
        difference = statistics.median(through) - statistics.median(alone)
        print(f"{planned.row.name:<20} {_spread(alone):>22} {_spread(through):>22} {difference:>14.2f}", flush=True)


def _script(planned: plan.Plan, folder: Path):
    """Runs the code cells, with the parameters put where papermill puts them."""
    kernel = Kernels().get(planned.row.environment, planned.row.imports, folder / "install.log")
    cells = [
        cell.source for cell in nbformat.read(planned.row.notebook, as_version=4).cells if cell.cell_type == "code"
    ]
    given = "\n".join(f"{name} = {value!r}" for name, value in planned.parameters.items())
    file = folder / "script.py"
    file.write_text("\n\n".join([cells[0], given, *cells[1:]]), encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | kernel.variables
    return lambda: subprocess.run(
        [str(kernel.python), str(file)], cwd=planned.row.notebook.parent, env=env, check=True, capture_output=True
    )


def _runner(planned: plan.Plan, preset: str, folder: Path):
    command = [sys.executable, "run_all.py", "run", planned.row.name, "--preset", preset, "--out", str(folder / "out")]
    return lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def _timed(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _spread(seconds: tuple[float, ...]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} - {max(seconds):.2f})"


if __name__ == "__main__":
    main()
