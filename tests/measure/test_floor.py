"""The arithmetic that a task declares is that of its reference."""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest

from common.data import cifar10
from rosetta import catalog, data, files
from rosetta.measure import machine
from rosetta.measure.keep import Measured
from rosetta.verify.proof import Reference

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
    monkeypatch.setattr(machine, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    assert machine._matmul(10) == 2 * 10**3 / 0.5


def test_loading_reads_each_data_set_after_a_warm_up(monkeypatch, tmp_path, capsys):
    loaded, known = [], {name: SimpleNamespace(data=name) for name in ("cifar10", "")}
    monkeypatch.setattr(machine.catalog, "load", lambda: SimpleNamespace(tasks={"other": known["cifar10"]} | known))
    monkeypatch.setattr(data, "locate", lambda name, folder: folder / name)
    monkeypatch.setattr(cifar10, "load", lambda data_dir: loaded.append(data_dir))
    assert machine.loading(2, tmp_path / "data", tmp_path) == 0
    assert loaded == [tmp_path / "data" / "cifar10"] * 3 and capsys.readouterr().out.startswith("cifar10      0.0")
    (file,) = tmp_path.glob("*/measured/loading.json")
    (point,) = files.load(Measured, file).points
    assert point.at == {"data": "cifar10"} and len(point.values) == 2
