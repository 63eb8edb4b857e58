"""The arithmetic that a task declares is that of its reference."""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest

from rosetta import catalog
from rosetta.measure import commands
from rosetta.verify.probes import Reference

COUNTED = [task for task in catalog.load().tasks.values() if hasattr(task.params, "MULTIPLY_ADDS")]


@pytest.mark.parametrize("task", COUNTED, ids=lambda task: task.key)
def test_multiply_adds_are_the_references(task, monkeypatch):
    """All of them are matrix products there."""
    real, counts = np.matmul, []

    def counted(a, b):
        product = real(a, b)
        counts.append(math.prod(product.shape) * a.shape[-1])
        return product

    monkeypatch.setattr(np, "matmul", counted)
    loader = importlib.import_module(f"common.data.{task.data}")
    _, _, x, _ = loader.load(n_train=1, n_test=1, synthetic=True)
    network = Reference(task, next(iter(getattr(task.params, "FLAVOURS", [None])))).network
    network.probabilities(network.initial_weights(seed=0), x)
    assert sum(counts) == task.params.MULTIPLY_ADDS["forward"]
    assert task.flop({"BATCHSIZE": 64}) == 6 * 64 * sum(counts)


def test_speed_is_the_arithmetic_over_the_time(monkeypatch):
    ticks = iter((3.0, 3.5))
    monkeypatch.setattr(commands, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    assert commands.matrix_product(10) == 2 * 10**3 / 0.5
