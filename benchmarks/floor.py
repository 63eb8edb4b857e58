"""The arithmetic of a training step, and how long this machine's processor takes for as much of it in NumPy's matrix product.

    uv run benchmarks/floor.py [--batch-size 64] [--size 2048] [--repeats 10]

Prints GFLOP a step, the best GFLOP/s of FP32 products of two square matrices of --size, and the quotient;
results/MACHINE/speed/floor.json keeps the speed.
"""

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rosetta.paths import RESULTS
from rosetta.run import devices
from rosetta.run.machine import processors
from rosetta.speed import kept
from rosetta.speed.floor import NAME, Floor, forward_flop, step_flop

IMAGES = 10 * 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    machine = devices.timed(gpus="none", threads=None)[0].machine
    speeds = [matmul(options.size) for _ in range(options.repeats)]
    now = datetime.now(UTC).replace(microsecond=0)
    found = Floor(machine=machine, measured=now, size=options.size, flop_s=speeds)
    kept.write(found, kept.path(options.out, machine.name, NAME))
    step = step_flop(options.batch_size)
    print(f"forward, an image         {forward_flop() / 1e6:.1f} MFLOP")
    print(f"step of {options.batch_size} images        {step / 1e9:.1f} GFLOP")
    print(f"{IMAGES:,} images            {step_flop(IMAGES) / 1e12:.0f} TFLOP")
    print(f"matrix product            {max(speeds) / 1e9:.0f} GFLOP/s with {len(processors())} processors")
    print(f"floor of a step           {1000 * step / max(speeds):.0f} ms")


def matmul(size: int) -> float:
    """FLOP/s of one product."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    started = time.perf_counter()
    a @ b
    return 2 * size**3 / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
