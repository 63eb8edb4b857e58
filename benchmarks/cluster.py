"""How well a batch spreads over the workers of a Dask cluster: a stand-in notebook that sleeps for a known time.

    uv run benchmarks/cluster.py [--seconds 30] [--runs 32] [--workers 1 2 4 8]

Scheduler and workers are processes on this machine; sleeping runs need no processor of their own, but each starts an
interpreter and a kernel (some 2 processor seconds), and all of them may do so at once. For each number of workers: seconds
of the whole command, efficiency (time on one worker over number of workers times their time) and the overhead a run, that
is what each took of its worker's time beyond the sleep.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rosetta import records
from tests.dask_cluster import DaskCluster
from tests.standin import StandIn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    options = parser.parse_args()
    print(f"{options.runs} runs that sleep {options.seconds:g} s")
    print(f"{'workers':>7} {'time, s':>9} {'efficiency':>11} {'overhead a run, s':>18}")
    alone_s = None  # worker seconds of the first line, which should be that of one worker
    for workers in options.workers:
        took_s = measured(workers, options.runs, options.seconds)
        alone_s = alone_s or took_s * workers
        overhead_s = took_s * workers / options.runs - options.seconds
        print(f"{workers:>7} {took_s:>9.1f} {alone_s / (workers * took_s):>11.3f} {overhead_s:>18.2f}", flush=True)


def measured(workers: int, runs: int, seconds: float) -> float:
    """Seconds that the command takes for a batch on so many workers, which are ready before."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = StandIn(Path(folder) / "checkout")
        checkout.catalog(
            checkout.entry("good") + f"[frameworks.good.variants.sleeps]\nparameters = {{ SECONDS = {seconds} }}\n"
        )
        command = checkout.command(
            "run", "good[sleeps]", "--preset", "smoke", "--synthetic", "--seeds", str(runs), "--out", str(checkout.out)
        )
        with DaskCluster(Path(folder) / "dask") as dask:
            for _ in range(workers):
                dask.worker(checkout.root)
            dask.wait()
            started = time.perf_counter()
            done = subprocess.run(
                [*command, "--cluster", str(dask.file)],
                cwd=checkout.root,
                env=checkout.variables(),
                capture_output=True,
                text=True,
            )
            took_s = time.perf_counter() - started
        kept = [record for _, record in records.read_all(checkout.out)]
        if done.returncode or len(kept) != runs:
            raise SystemExit(f"{len(kept)} of {runs} records:\n{done.stdout}{done.stderr}")
        return took_s


if __name__ == "__main__":
    main()
