"""Two scripts by turns, with scripts that need no framework."""

import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from rosetta.errors import RosettaError
from rosetta.records import Commit
from rosetta.run import devices
from rosetta.speed import kept, pairs
from rosetta.speed.pairs import Pair, Pairs
from rosetta.speed.process import Process
from rosetta.speed.scripts import Script

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


def test_one_trains_while_the_other_stands_still(tmp_path, slot):
    both = script(tmp_path, "a", TRAINING, seconds=0.05), script(tmp_path, "b", TRAINING, seconds=1.0)
    first, second = pairs.alternate(both, slot, 3, tmp_path)
    assert [epoch.loss for epoch in first] == [epoch.loss for epoch in second] == [1.0, 0.5, pytest.approx(1 / 3)]
    assert all(0.05 <= epoch.seconds < 0.9 for epoch in first), "what the other takes is not counted"
    assert all(epoch.seconds >= 1.0 for epoch in second)
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
        pairs.alternate(both, slot, 3, tmp_path)
    short = script(tmp_path, "c", "print('done')")
    with pytest.raises(RosettaError, match="the script ended before its training did"):
        pairs.alternate((short, short), slot, 3, tmp_path)
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
    asked = {"batch_sizes": [2, 4], "phases": ["forward", "step"], "steps": 3, "repeats": 2, "warm_up": 1}
    with Process(script(tmp_path, "a", code), slot, "phases", asked, tmp_path / "log") as process:
        told = list(process.told())
    assert [one["batch_size"] for one in told] == [2, 4]
    assert all(len(one["seconds"][phase]) == 2 for one in told for phase in ("forward", "step"))
    # of each batch size: 1 + 1 warm-up, then twice 3 + 3
    assert [one["loss"] for one in told] == [{"forward": 11, "step": 14}, {"forward": 25, "step": 28}]


def test_variables_that_are_empty_are_taken_away(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1")
    one = Script(tmp_path / "x.py", Path(sys.executable), {"MALLOC_TRIM_THRESHOLD_": "", "A": "1"}, tmp_path)
    assert "MALLOC_TRIM_THRESHOLD_" not in one.environment() and one.environment()["A"] == "1"


def pair(slot, row="pytorch", **fields) -> Pair:
    usual = {
        "row": row,
        "title": row,
        "batch_size": 64,
        "steps": 10,
        "notebook_s": [9.0, 1.0, 1.2, 1.1],
        "other_s": [3.0, 1.0, 1.0, 1.0],
        "notebook_loss": [2.3] * 4,
        "other_loss": [2.3] * 4,
        "synthetic": False,
        "measured": datetime.now(UTC),
        "commit": Commit(),
        "machine": slot.machine,
    }
    return Pair(**usual | fields)


def test_first_epoch_does_not_count(slot):
    one = pair(slot)
    assert one.ratios == [1.0, 1.2, 1.1]
    assert one.step_ms(one.notebook_s) == [100.0, 120.0, 110.0]


def test_measured_again_replaces_and_is_kept(tmp_path, slot):
    found = Pairs()
    found.add(pair(slot))
    found.add(pair(slot, "flax"))
    found.add(pair(slot, variables={"A": "1"}))
    found.add(pair(slot, other_s=[2.0, 2.0, 2.0, 2.0]))
    assert [(one.row, one.variables) for one in found.pairs] == [("flax", {}), ("pytorch", {"A": "1"}), ("pytorch", {})]
    file = kept.path(tmp_path, "box", "fastest")
    assert kept.read(Pairs, file) == Pairs()
    kept.write(found, file)
    assert kept.read(Pairs, file) == found and kept.machines(tmp_path) == ["box"]
    file.write_text("{")
    with pytest.raises(RosettaError, match="fastest.json is not valid: .*; mend or delete it"):
        kept.read(Pairs, file)
