"""Every measurement, on toy tasks of a few lines: what it shows and keeps; and the arithmetic that a task declares."""

import importlib
import math
import platform
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from rosetta import catalog, files
from rosetta.measure import commands, inside
from rosetta.measure.rows import MachineSession
from rosetta.records import Record
from rosetta.verify.proof import Reference
from rosetta.where import Where
from studies import settings, startup
from tests import toys
from tests.inside import Inside
from tests.standin import one_line
from tests.test_toys import PHASES

FASTEST = """
# %% train
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    losses = [len(y) * step(x, y) for x, y in batches(x_train, y_train, BATCHSIZE, SEED, epoch)]
    log.epoch(sum(losses) / len(x_train))
"""
VERSIONS = {"python": platform.python_version(), "numpy": np.__version__}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        toy = Inside(tmp_path_factory.mktemp("toys") / "checkout", patch)
        toy.catalog(toy.entry("other"))
        toys.write(toy.root)
        # The processes that it starts find this checkout's common/
        patch.setattr(inside, "__file__", str(toy.root / "rosetta" / "measure" / "inside.py"))
        for what, program in (("fastest", FASTEST), ("phases", PHASES)):
            file = toy.root / "programs" / what / "toy_train" / "numpy.py"
            file.parent.mkdir(parents=True)
            file.write_text(program)
        yield toy


def measure(toy, *arguments: str, code: int = 0) -> str:
    done = toy.call(*arguments, "--out", str(toy.out), own_python="floor" not in arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def sessions(toy, column: str, task: str = "toy_train") -> list[Record]:
    """The oldest first."""
    return [files.load(Record, file) for file in sorted(toy.out.glob(f"*/{task}/{column}/numpy*.json"))]


def test_fastest(toy):
    names = "toy_train/numpy", "toy_infer/numpy"
    shown = measure(toy, "measure", "fastest", *names, "--steps", "5", "--epochs", "3", "--synthetic", code=1)
    assert "toy_infer/numpy: not written: there is no programs/fastest/numpy.py" in shown
    (record,) = sessions(toy, "fastest-synthetic")
    points = [(point.at["program"], point.unit, len(point.values)) for point in record.points]
    assert points == [(program, unit, 2) for program in ("notebook", "fastest") for unit in ("s", "loss")]
    assert record.points[1].values == record.points[3].values and record.points[0].at["steps"] == 5
    assert (record.preset, record.params["N_TRAIN"], record.status, record.versions) == ("fastest", 80, "ok", VERSIONS)
    assert "| NumPy SYNTHETIC |" in (toy.out / "speed.md").read_text()
    unnamed = measure(toy, "measure", "fastest", "--task", "toy_infer")
    assert "not written" in unnamed, "what was not named may lack a program"


def test_sweep_again_is_a_session_of_its_own(toy):
    again = "measure", "sweep", "toy_train/numpy", "--synthetic", "--threads", "1"
    measure(toy, *again, "--axis", "BATCHSIZE=2", "--steps", "3", "--repeats", "2")
    (first,) = sessions(toy, "sweep-synthetic")
    at = {"threads": 1, "BATCHSIZE": 2, "phase": "forward", "steps": 3}
    assert len(first.points) == 3 * 2 and first.points[0].at == at and first.versions == VERSIONS
    measure(toy, *again, "--axis", "BATCHSIZE=4,8", "--axis", "LR=0.1,0.2", "--steps", "2", "--repeats", "1")
    before, second = sessions(toy, "sweep-synthetic")
    assert before == first
    places = {(point.at["BATCHSIZE"], point.at["LR"]) for point in second.points}
    assert places == {(size, rate) for size in (4, 8) for rate in (0.1, 0.2)}
    page = (toy.out / "speed.md").read_text()
    for row in ("NumPy SYNTHETIC | 1 | 2", "NumPy SYNTHETIC lr 0.2 | 1 | 8"):
        assert f"| {row} |" in page, "sessions are joined when they are read"
    assert f"Versions: numpy {np.__version__}, python {platform.python_version()}." in page


def test_sweep_of_passes(toy):
    measure(
        toy, "measure", "sweep", "toy_infer/numpy", "--synthetic", "--threads", "1", "--steps", "2", "--repeats", "3"
    )
    (record,) = sessions(toy, "sweep-synthetic", "toy_infer")
    seconds, outputs, *_ = record.points
    assert seconds.at["phase"] == outputs.at["phase"] == "forward"
    assert (seconds.unit, len(seconds.values), outputs.unit) == ("s", 3, "mean output")


def test_studies_that_measure_rows(toy, capsys, monkeypatch):
    where = Where(names=("toy_train/numpy",), synthetic=True, out=toy.out, python=(f"all={sys.executable}",))
    given = [*where.names, "--synthetic", "--out", str(where.out), "--python", *where.python]
    with pytest.raises(SystemExit, match="0"):
        settings.main.main([*given, "--set", "A=1", "--steps", "2", "--epochs", "2"])
    (record,) = sessions(toy, "settings,a=1-synthetic")
    assert [point.at["program"] for point in record.points] == ["notebook"] * 2 + ["settings"] * 2
    monkeypatch.setattr(startup, "COMMANDS", [])
    assert startup.measure(where, repeats=1) == 0 and ", second step 0.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--axis", "BATCH=4", "unknown parameter in toy_"),
        ("--threads", "1,x", "--threads takes whole numbers above 0"),
        ("--threads", "0", "--threads takes whole numbers above 0"),
    ],
)
def test_sweep_refuses_what_is_no_axis_or_number(toy, option, text, message):
    done = toy.call("measure", "sweep", option, text)
    assert done.returncode == 2 and message in one_line(done.stderr)


def test_floor(toy):
    shown = measure(toy, "measure", "floor", "--size", "64", "--repeats", "2")
    assert "matrix product: " in shown and "GFLOP/s with " in shown
    (file,) = toy.out.glob("test-machine/measured/floor.*.json")
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
