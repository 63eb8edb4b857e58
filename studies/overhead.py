"""How many seconds does the harness add? A notebook's code as a plain script, by turns with the same notebook in ``run_all.py``.

Run ``uv run python -m studies.overhead pytorch --synthetic``. It prints medians of whole processes, after a warm-up. The answer is in
docs/performance.md, *What the harness adds*.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from tempfile import TemporaryDirectory

import click

from rosetta import data
from rosetta.cli import count, where
from rosetta.measure.rows import Measuring
from rosetta.paths import checkout
from rosetta.run import scripts
from rosetta.where import Where


@click.command()
@where("names synthetic python")
@count("--repeats", "How often.", default=5)
def main(where: Where, repeats: int) -> None:
    bench = Measuring(where, "this study", "trains")
    plans = [bench.plan(row, {}) for row in bench.rows]
    data.locate_all(plans, None)
    for planned in plans:
        with TemporaryDirectory(prefix="rosetta-") as folder:
            script = bench.script(planned, planned.row.code, folder)
            command = [sys.executable, "run_all.py", "run", planned.row.full_name, "--preset", planned.preset]
            command += ["--out", f"{folder}/out", *(["--synthetic"] if where.synthetic else [])]
            command += [f"--python={each}" for each in where.python]
            calls = [partial(script.run, bench.slot), partial(scripts.run, "run_all.py", command, checkout.root)]
            rounds = [[seconds(call) for call in calls] for _ in range(1 + repeats)]
        script_s, run_s = map(median, zip(*rounds[1:]))
        name = planned.row.full_name
        print(f"{name:<34}script {script_s:.2f}, run_all.py {run_s:.2f}, difference {run_s - script_s:.2f}", flush=True)


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
