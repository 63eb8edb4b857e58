"""The arithmetic of a training step, and how long this machine's processor takes for as much of it in NumPy's matrix product.

    uv run benchmarks/floor.py [--batch-size 64] [--size 2048] [--repeats 10]

The floor that no framework gets below without computing less (Winograd's convolutions do). Prints GFLOP a step, the best GFLOP/s of
FP32 products of two square matrices of --size, and the quotient.
"""

import argparse
import os
import time

import numpy as np

# Weights of each layer, and how many places of its output each of them is used for
CONVOLUTIONS = ((50 * 3 * 9, 32 * 32), (50 * 50 * 9, 32 * 32), (100 * 50 * 9, 16 * 16), (100 * 100 * 9, 16 * 16))
DENSE = ((6400 * 512, 1), (512 * 10, 1))
PASSES = 3  # forward, and in backward the gradient of the inputs and that of the weights
IMAGES = 10 * 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    forward = sum(
        2 * weights * places for weights, places in CONVOLUTIONS + DENSE
    )  # a multiplication and an addition each
    step = PASSES * forward * options.batch_size
    best = max(matmul(options.size) for _ in range(options.repeats))
    print(f"forward, an image         {forward / 1e6:.1f} MFLOP")
    print(f"step of {options.batch_size} images        {step / 1e9:.1f} GFLOP")
    print(f"{IMAGES:,} images            {PASSES * forward * IMAGES / 1e12:.0f} TFLOP")
    print(f"matrix product            {best / 1e9:.0f} GFLOP/s with {len(os.sched_getaffinity(0))} processors")
    print(f"floor of a step           {1000 * step / best:.0f} ms")


def matmul(size: int) -> float:
    """FLOP/s of one product."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    started = time.perf_counter()
    a @ b
    return 2 * size**3 / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
