"""Measurements that start commands: which they start, how often, and what they make of the times. The commands are played."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from rosetta import files, records
from rosetta.measure import cluster, scripts, startup
from rosetta.measure.keep import Measured
from tests.measure.test_commands import good
from tests.measure.toy import Toy


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return Toy(tmp_path / "checkout", monkeypatch)


@pytest.fixture
def started(monkeypatch):
    """The commands that a measurement has started, without Python, up to their first folder; none is really started."""
    commands = []

    def run(title, command, folder, *_):
        commands.append((title, *(part.rpartition("/")[2] for part in command[1:])))
        if title.startswith("report"):
            assert len(records.read_all(Path(command[-1]))) == 10
        return ""

    monkeypatch.setattr(scripts, "run", run)
    return commands


def test_startup(toy, started, monkeypatch):
    make_up = startup._make_up
    monkeypatch.setattr(startup, "_make_up", lambda results, to, number: make_up(results, to, number // 100))
    good(toy.measure("run", "toy", "--preset", "smoke"))  # a record to make up others from
    shown = good(toy.measure("measure", "startup", "toy", "--repeats", "2"))
    assert [title for title, *_ in started] == ["--help", "list", "report of 1,000 records"] * 3, (
        "the first is a warm-up"
    )
    assert started[:2] == [("--help", "run_all.py", "--help"), ("list", "run_all.py", "list")]
    assert started[2][1:4] == ("run_all.py", "report", "--out")
    kept = files.load(Measured, toy.out / "box" / "measured" / "startup.json")
    assert [(point.at, len(point.values)) for point in kept.points] == [
        ({"command": title}, 2) for title, *_ in started[:3]
    ]
    assert "--help                     0.00 " in shown
    points = {point.at["part"]: point.values for point in toy.record("startup-synthetic").points}
    assert list(points) == ["start", "import", "data", "build", "first step", "second step"]
    assert all(len(values) == 2 for values in points.values())


def test_overhead(toy, started):
    shown = good(toy.measure("measure", "overhead", "toy", "--repeats", "2", "--synthetic", "--gpus", "none"))
    assert [title for title, *_ in started] == ["its script", "run_all.py"] * 3, "the first is a warm-up"
    _, flag, code, *options, python, gpus = started[1]
    assert flag == "-c" and "lock.only_runner" in code and gpus == "--gpus=none"
    assert options == ["run", "toy", "--preset", "smoke", "--out", "out", "--synthetic"]
    assert python.startswith("python")
    points = toy.record("overhead-synthetic").points
    assert [(point.at["program"], len(point.values)) for point in points] == [("script", 2), ("run_all.py", 2)]
    assert "toy" in shown


def test_cluster(record, toy, monkeypatch):
    clusters, results = [], []

    @contextmanager
    def begun(checkout: Path, workers: int):
        (notebook,) = checkout.glob("notebooks/sleep/*.ipynb")
        assert "time.sleep(0.5)" in notebook.read_text() and (checkout / "run_all.py").is_file()
        assert (checkout / "rosetta" / "cli.py").is_file() and (checkout / "catalog.toml").read_text()
        clusters.append(workers)
        yield "tcp://127.0.0.1:9"

    def batch(title, command, folder, variables):
        assert variables["CUDA_VISIBLE_DEVICES"] == ""
        out = Path(command[command.index("--out") + 1])
        assert command[-1] == "tcp://127.0.0.1:9" and command[command.index("--seeds") + 1] == "2"
        for seed in range(results.pop(0)):
            records.write(record.model_copy(update={"status": "ok", "seed": seed}), out)

    monkeypatch.setattr(cluster, "_started", begun)
    monkeypatch.setattr(scripts, "run", batch)
    monkeypatch.setattr(cluster, "timed", lambda call: (call(), {1: 2.0, 4: 1.0}[clusters[-1]])[1])
    results += [2, 2]
    shown = good(toy.call("measure", "cluster", "--workers", "1,4", "--runs", "2", "--seconds", "0.5"))
    assert shown.splitlines()[-2:] == [
        "      1       2.0       1.000               0.50",
        "      4       1.0       0.500               1.50",
    ]
    kept = files.load(Measured, toy.out / "box" / "measured" / "cluster.json")
    at = {"runs": 2, "seconds": 0.5}
    assert [(point.at, point.values) for point in kept.points] == [
        ({"workers": 1} | at, [2.0]),
        ({"workers": 4} | at, [1.0]),
    ]
    results += [1]
    wrong = toy.call("measure", "cluster", "--workers", "1", "--runs", "2", "--seconds", "0.5")
    assert wrong.returncode == 2 and "1 of 2 runs finished" in wrong.stderr
