"""Measurements of a machine that belong to no row: the floor of a training step, and loading data."""

import importlib
import time
from functools import partial
from pathlib import Path

import numpy as np

from rosetta import catalog, data
from rosetta.errors import RosettaError
from rosetta.figures import spread
from rosetta.kinds.kind import BATCH
from rosetta.measure import keep
from rosetta.measure.turns import by_turns, timed
from rosetta.records import Point
from rosetta.run.machine import describe
from rosetta.where import results_folder


def floor(size: int, repeats: int, out: Path | None) -> int:
    """The speed of NumPy's FP32 product of two square matrices, and what it makes of a step of every task."""
    machine = describe()
    point = Point(at={"size": size}, values=[_matmul(size) for _ in range(repeats)], unit="FLOP/s")
    keep.machine("floor", machine, [point], results_folder(out))
    print(f"matrix product: {point.sample.high / 1e9:.0f} GFLOP/s with {machine.cores} processors")
    for key, task in catalog.load().tasks.items():
        flop = task.flop(task.constants())
        if flop:
            about = f"{flop / 1e9:.1f} GFLOP a step of {task.constants()[BATCH]}"
            print(f"{key}: {about}, not below {1000 * flop / point.sample.high:.0f} ms")
    return 0


def _matmul(size: int) -> float:
    """FLOP/s of one product."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    started = time.perf_counter()
    a @ b
    return 2 * size**3 / (time.perf_counter() - started)


def loading(repeats: int, data_dir: Path | None, out: Path | None) -> int:
    """Seconds in which each data set is read from a warm file cache."""
    points = []
    for name in dict.fromkeys(task.data for task in catalog.load().tasks.values() if task.data):
        load = partial(importlib.import_module(f"common.data.{name}").load, data_dir=data.locate(name, data_dir))
        points += by_turns("data", {name: partial(timed, load)}, repeats, warm_up=1)
        print(f"{name:<12} {spread(points[-1].sample, 3)} s")
    if not points:
        raise RosettaError("no task has data to load")
    keep.machine("loading", describe(), points, results_folder(out))
    return 0
