"""Every measurement on a notebook of a few lines: what it shows, keeps, and keeps of what was there."""

import pytest

from rosetta import files
from rosetta.measure.keep import Measured
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
    record = toy.record("fastest-synthetic")
    assert [(point.at["program"], point.unit, len(point.values)) for point in record.points] == [
        ("notebook", "s", 2),
        ("notebook", "loss", 2),
        ("fastest", "s", 2),
        ("fastest", "loss", 2),
    ]
    assert record.points[1].values == record.points[3].values and record.points[0].at["steps"] == 5
    assert record.preset == "fastest" and record.params["N_TRAIN"] == 20 and record.status == "ok"
    assert "| toy SYNTHETIC |" in (toy.out / "speed.md").read_text()
    assert toy.measure("measure", "fastest", "bare").returncode == 1


def test_settings(toy):
    good(toy.measure("measure", "settings", "toy", "--set", "A=1", "--set", "HOME=", "--steps", "2", "--epochs", "2"))
    assert toy.record("settings,a=1,home=-synthetic").changed == {"A": "1", "HOME": ""}
    wrong = toy.measure("measure", "settings", "--set", "A")
    assert wrong.returncode == 2 and "--set takes NAME=VALUE, not A" in one_line(wrong.stderr)


def test_sweep_again_replaces_points_of_the_same_place(toy):
    good(toy.measure("sweep", "toy", "--threads", "1", "--steps", "3", "--repeats", "2"))
    first = toy.record("sweep-synthetic").points
    assert len(first) == 2 * 3 * 2 and first[0].at == {"threads": 1, "BATCHSIZE": 2, "phase": "forward", "steps": 3}
    good(toy.measure("sweep", "toy", "--threads", "1", "--axis", "BATCHSIZE=4,8", "--steps", "2", "--repeats", "1"))
    points = toy.record("sweep-synthetic").points
    assert sorted({(point.at["BATCHSIZE"], point.at["steps"]) for point in points}) == [(2, 3), (4, 2), (8, 2)]
    assert [point for point in points if point.at["BATCHSIZE"] == 2] == first[:6]
    unnamed = toy.measure("sweep", "--axis", "BATCH=4")
    assert unnamed.returncode == 2 and "unknown parameter in slope: BATCH" in one_line(unnamed.stderr)
    for option in ("1,x", "0"):
        wrong = toy.measure("sweep", "--threads", option)
        assert wrong.returncode == 2 and "--threads takes whole numbers above 0" in one_line(wrong.stderr)


@pytest.mark.long
def test_startup(toy):
    good(toy.measure("run", "toy", "--preset", "smoke"))  # a record to make up others from
    shown = good(toy.measure("measure", "startup", "toy", "--repeats", "2"))
    assert "report of 1,000 records" in shown
    points = {point.at["part"]: point.values for point in toy.record("startup-synthetic").points}
    assert list(points) == ["start", "import", "data", "build", "first step", "second step"]
    assert all(len(values) == 2 for values in points.values())


@pytest.mark.long
def test_overhead(toy):
    shown = good(toy.measure("measure", "overhead", "toy", "--repeats", "1", "--synthetic"))
    script, runner = toy.record("overhead-synthetic").points
    assert script.values[0] > 0 and runner.values[0] > 0 and "toy" in shown
    assert not (toy.out / "box" / "slope" / "smoke-synthetic").exists(), "runs of a measurement are no results"


def test_lessons(toy):
    good(toy.measure("measure", "lessons", "--seeds", "2"))
    points = {(point.at["lesson"], point.unit): point.values for point in toy.record("lessons-synthetic").points}
    assert points["no steps", "accuracy"] == [0.0, 0.0] and points["as it is", "accuracy"][0] > 0
    assert len(points["sums", "s"]) == len(points["as it is", "s"]) == 3
    wrong = toy.measure("measure", "lessons", "bare")
    assert wrong.returncode == 2 and "slope/toy" in one_line(wrong.stderr)


def test_floor_and_loading(toy):
    shown = good(toy.call("measure", "floor", "--size", "64", "--repeats", "2"))
    assert "slope: 0.0 GFLOP a step of 4" in shown
    kept = files.load(Measured, toy.out / "box" / "measured" / "floor.json")
    assert kept.points[0].unit == "FLOP/s" and len(kept.points[0].values) == 2
    assert "no task has data to load" in one_line(toy.call("measure", "loading").stderr)


@pytest.mark.long
def test_cluster(toy):
    shown = good(toy.call("measure", "cluster", "--workers", "2", "--runs", "2", "--seconds", "0.1"))
    assert "efficiency" in shown
    (point,) = files.load(Measured, toy.out / "box" / "measured" / "cluster.json").points
    assert point.at == {"workers": 2, "runs": 2, "seconds": 0.1}
