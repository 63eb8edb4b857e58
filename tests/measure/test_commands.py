"""Every measurement on a notebook of a few lines: what it shows and keeps; and the arithmetic that a task declares."""

import importlib
import math
import platform
from types import SimpleNamespace

import numpy as np
import pytest

from rosetta import catalog, files
from rosetta.measure import commands
from rosetta.measure.rows import MachineSession
from rosetta.verify.proof import Reference
from tests.measure.toy import Toy
from tests.standin import one_line


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield Toy(tmp_path_factory.mktemp("toy") / "checkout", patch)


def good(done) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_fastest(toy):
    shown = good(toy.measure("measure", "fastest", "--steps", "5", "--epochs", "3"))
    assert "bare: not written: there is no programs/fastest/bare.py" in shown
    (record,) = toy.sessions("fastest-synthetic")
    assert [(point.at["program"], point.unit, len(point.values)) for point in record.points] == [
        ("notebook", "s", 2),
        ("notebook", "loss", 2),
        ("fastest", "s", 2),
        ("fastest", "loss", 2),
    ]
    assert record.points[1].values == record.points[3].values and record.points[0].at["steps"] == 5
    assert record.preset == "fastest" and record.params["N_TRAIN"] == 20 and record.status == "ok"
    assert record.versions == {"python": platform.python_version(), "numpy": np.__version__}
    assert "| toy SYNTHETIC |" in (toy.out / "speed.md").read_text()
    assert toy.measure("measure", "fastest", "bare").returncode == 1


def test_sweep_again_is_a_session_of_its_own(toy):
    good(toy.measure("sweep", "toy", "--threads", "1", "--steps", "3", "--repeats", "2"))
    (first,) = toy.sessions("sweep-synthetic")
    at = {"threads": 1, "BATCHSIZE": 2, "phase": "forward", "steps": 3}
    assert len(first.points) == 2 * 3 * 2 and first.points[0].at == at and first.versions["numpy"] == np.__version__
    good(toy.measure("sweep", "toy", "--threads", "1", "--axis", "BATCHSIZE=4,8", "--steps", "2", "--repeats", "1"))
    again, second = toy.sessions("sweep-synthetic")
    assert again == first and {point.at["BATCHSIZE"] for point in second.points} == {4, 8}
    page = (toy.out / "speed.md").read_text()
    assert all(f"| toy SYNTHETIC | 1 | {size} |" in page for size in (2, 4, 8)), (
        "sessions are joined when they are read"
    )
    assert f"Versions: numpy {np.__version__}, python {platform.python_version()}." in page


def test_sweep_refuses_what_is_no_axis_or_number(toy):
    unnamed = toy.measure("sweep", "--axis", "BATCH=4")
    assert unnamed.returncode == 2 and "unknown parameter in slope: BATCH" in one_line(unnamed.stderr)
    for option in ("1,x", "0"):
        wrong = toy.measure("sweep", "--threads", option)
        assert wrong.returncode == 2 and "--threads takes whole numbers above 0" in one_line(wrong.stderr)


def test_floor(toy):
    shown = good(toy.call("measure", "floor", "--size", "64", "--repeats", "2"))
    assert "slope: 0.0 GFLOP a step of 4" in shown
    (file,) = toy.out.glob("box/measured/floor.*.json")
    kept = files.load(MachineSession, file)
    assert kept.points[0].unit == "FLOP/s" and len(kept.points[0].values) == 2 and "numpy" in kept.versions


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
