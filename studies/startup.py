"""What happens before a run's first step, and how long does it take? And how long do the commands themselves take to start?

Run ``uv run python -m studies.startup pytorch``. It prints medians in seconds; a row runs epochs of a single step through the
runner, with its environment ready. The answer is in docs/performance.md, *Start-up*; its records are
``results/amd-epyc-2-cores/cifar10_cnn/startup`` and ``results/amd-epyc-2-cores/measured/startup.json``.
"""

import subprocess
import sys
import time
from statistics import median

import click

from rosetta import data, lock
from rosetta.cli import count, where
from rosetta.kinds import TrainMetrics
from rosetta.measure.rows import Measuring
from rosetta.paths import checkout
from rosetta.run.execute import execute
from rosetta.where import Where

COMMANDS = (["--help"], ["list"])


@click.command()
@where("names synthetic python")
@count("--repeats", "How often.", default=3)
def main(where: Where, repeats: int) -> None:
    sys.exit(lock.alone("studies.startup", lambda: measure(where, repeats)))


def measure(where: Where, repeats: int) -> int:
    for command in COMMANDS:
        took = [seconds(command) for _ in range(1 + repeats)]
        print(f"{' '.join(command):<22}{median(took[1:]):.2f}")
    bench = Measuring(where, "this study", "trains")
    plans = [bench.short(row, {}, steps=1, turns=3) for row in bench.rows]
    data.locate_all(plans, None)
    for planned in plans:
        starts = []
        for _ in range(repeats):
            run = execute(planned, bench.slot, bench.kernels, watch=lambda progress: None)
            run.close()
            if run.record.status == "ok":
                starts.append(parts(run.record.metrics))
        medians = {part: median(start[part] for start in starts) for part in starts[0]} if starts else {}
        told = ", ".join(f"{part} {value:.2f}" for part, value in medians.items())
        print(f"{planned.row.full_name:<34}{told or run.record.error}", flush=True)
    return 0


def parts(metrics: TrainMetrics) -> dict[str, float]:
    """Seconds of what happens until a run's second step is done; its epochs are single steps."""
    return {
        "start": metrics.start_s,
        "import": metrics.setup_s,
        "data": metrics.data_s,
        "build": metrics.build_s,
        "first step": metrics.epoch_s[0],
        "second step": metrics.epoch_s[1],
    }


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "run_all.py", *command], cwd=checkout.root, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
