"""Two scripts by turns, with scripts that need no framework."""

import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from rosetta.errors import RosettaError
from rosetta.measure import commands, tables
from rosetta.measure.scripts import Process, Script
from rosetta.records import Point
from rosetta.run import devices

TRAINING = """
    import sys, threading, time
    from common.record import EpochLog

    def note(word):
        with open({file!r}, "a") as stream:
            stream.write({name!r} + " " + word + "\\n")

    def busy():
        while True:
            time.sleep(0.005)
            note("busy")

    threading.Thread(target=busy, daemon=True).start()
    log = EpochLog(3)
    for epoch in range(3):
        note("begins")
        time.sleep({seconds})
        note("ends")
        log.epoch(1.0 / (epoch + 1))
"""


@pytest.fixture
def slot() -> devices.Slot:
    return devices.timed(gpus="none", threads=1)[0]


def script(folder: Path, name: str, code: str, **values) -> Script:
    file = folder / f"{name}.py"
    file.write_text(textwrap.dedent(code).format(name=name, file=str(folder / "notes"), **values))
    return Script(file, Path(sys.executable), {"PYTHONDONTWRITEBYTECODE": "1"}, folder)


def test_a_time_without_a_result_is_none(tmp_path, slot):
    of_nothing = script(
        tmp_path, "nothing", "from rosetta.measure import inside; inside.tell({{'seconds': 1, 'loss': float('nan')}})"
    )
    refused = pytest.raises(RosettaError, match="it has computed NaN, so its time means nothing")
    with Process(of_nothing, slot, "epochs", {}) as process, refused:
        list(process.messages())


def test_one_trains_while_the_other_stands_still(tmp_path, slot):
    both = script(tmp_path, "a", TRAINING, seconds=0.05), script(tmp_path, "b", TRAINING, seconds=1.0)
    (_, *first), (_, *second) = commands.alternate(both, "epochs", slot, 3, [])
    assert [epoch["loss"] for epoch in first] == [epoch["loss"] for epoch in second] == [1.0, 0.5, pytest.approx(1 / 3)]
    assert all(0.05 <= epoch["seconds"] < 0.9 for epoch in first), "what the other takes is not counted"
    assert all(epoch["seconds"] >= 1.0 for epoch in second)
    notes = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    turns = [name for name, word in notes if word == "begins"]
    assert turns == ["a", "b", "b", "a", "a", "b"]
    inside = None
    for name, word in notes:
        if word == "begins":
            inside = name
        elif word == "ends":
            inside = None
        else:  # a thread of the other's is stopped as well
            assert inside in (None, name)


def test_what_fails_is_told_and_nothing_is_left(tmp_path, slot):
    both = script(tmp_path, "a", TRAINING, seconds=0.01), script(tmp_path, "b", "raise ValueError('no such layer')")
    with pytest.raises(RosettaError, match="its process failed: ValueError: no such layer"):
        commands.alternate(both, "epochs", slot, 3, [])
    short = script(tmp_path, "c", "print('done')")
    with pytest.raises(RosettaError, match="the script ended before its turns did"):
        commands.alternate((short, short), "epochs", slot, 3, [])
    assert not [child for child in psutil.Process().children() if str(tmp_path) in " ".join(child.cmdline())]


def test_phases_are_timed_as_asked(tmp_path, slot):
    code = """
        calls = []
        def place(n):
            return list(range(n)), list(range(n))
        def forward(x, y):
            calls.append("forward")
            return len(calls)
        def step(x, y):
            calls.append("step")
            return len(calls)
        def value(loss):
            return loss
    """
    asked = {
        "batch_sizes": [2, 4],
        "phases": ["forward", "step"],
        "steps": 3,
        "repeats": 2,
        "warm_up": 1,
        "modules": [],
    }
    with Process(script(tmp_path, "a", code), slot, "phases", asked) as process:
        _, *messages = process.messages()
    assert [message["batch_size"] for message in messages] == [2, 4]
    assert all(len(message["seconds"][phase]) == 2 for message in messages for phase in ("forward", "step"))
    # of each batch size: 1 + 1 warm-up, then twice 3 + 3
    assert [message["loss"] for message in messages] == [{"forward": 11, "step": 14}, {"forward": 25, "step": 28}]


def test_variables_that_are_empty_are_taken_away(tmp_path, slot, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1")
    own = {"MALLOC_TRIM_THRESHOLD_": "", "A": "1"}
    variables = Script(tmp_path / "x.py", Path(sys.executable), own, tmp_path).environment(slot)
    assert "MALLOC_TRIM_THRESHOLD_" not in variables
    assert (variables["A"], variables["OMP_NUM_THREADS"], variables["CUDA_VISIBLE_DEVICES"]) == ("1", "1", "-1")


def test_ratios_are_of_epochs_of_one_round():
    points = [
        Point(at={}, values=[0.1, 0.12, 0.11]),
        Point(at={}, values=[2.3] * 3, unit="loss"),
        Point(at={}, values=[0.1] * 3),
    ]
    assert tables.pair(points) == ["110.0 (100.0 - 120.0)", "100.0 (100.0 - 100.0)", "1.10 (1.00 - 1.20)"]
