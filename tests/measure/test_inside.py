"""What runs in a framework's own process, in this one: its script is a few lines, its clock and its reader are played."""

import json
import os
import platform
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rosetta.measure import inside
from rosetta.measure.scripts import Process, Script
from rosetta.run.devices import Slot

VERSIONS = {"python": platform.python_version(), "numpy": np.__version__}
SCRIPT = """
calls = []
def place(n): calls.append(n); return n, n
def forward(x, y): calls.append("forward"); return x
def step(x, y): calls.append("step"); return x + 0.5
def value(loss): calls.append("value"); return str(loss)
"""


PASSES = """
import numpy as np
from common.passes import PassLog
outputs = np.zeros((2, 3), np.float32)
def predict():
    outputs[:] += 1
    return outputs
log = PassLog()
for _ in range(2):
    log.done(predict())
log.latency(predict)
"""


@pytest.fixture
def told(capsys):
    """The facts that were told since the last time."""

    def read():
        lines = capsys.readouterr().out.splitlines()
        return [json.loads(line[len(inside.MARK) :]) for line in lines if line.startswith(inside.MARK)]

    return read


@pytest.fixture
def clock(monkeypatch):
    """Each look at it is a second later than the one before."""
    ticks = iter(range(1000))
    monkeypatch.setattr(inside, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))


def test_phases_take_turns_after_a_warm_up(tmp_path, monkeypatch, told, clock):
    script, left = tmp_path / "script.py", []
    script.write_text(SCRIPT)
    run_path = inside.runpy.run_path
    monkeypatch.setattr(inside.runpy, "run_path", lambda *each, **more: left.append(run_path(*each, **more)) or left[0])
    options = {
        "modules": ["numpy", "nothing"],
        "batch_sizes": [8, 2],
        "phases": ["forward", "step"],
        "warm_up": 3,
        "repeats": 2,
        "steps": 4,
    }
    inside.phases(str(script), options)
    seconds = {"forward": [0.25, 0.25], "step": [0.25, 0.25]}  # a tick for four steps
    assert told() == [
        {"versions": VERSIONS},
        {"batch_size": 8, "seconds": seconds, "loss": {"forward": 8.0, "step": 8.5}},
        {"batch_size": 2, "seconds": seconds, "loss": {"forward": 2.0, "step": 2.5}},
    ]
    timed = [[name] * times + ["value"] for times in (3, 4, 4) for name in ("forward", "step")]
    assert left[0]["calls"] == [call for size in (8, 2) for call in [size, *sum(timed, [])]]


def test_training_waits_for_its_turn(tmp_path, monkeypatch, told):
    from common.record import EpochLog

    script, waits = tmp_path / "script.py", []
    script.write_text("from common.record import EpochLog\nlog = EpochLog(2)\nlog.epoch(2.5)\nlog.epoch(1.5)\n")
    monkeypatch.setattr(EpochLog, "__init__", EpochLog.__init__)  # they are the test's again afterwards
    monkeypatch.setattr(EpochLog, "epoch", EpochLog.epoch)
    monkeypatch.setattr(inside, "wait", lambda: waits.append(told()))
    inside.epochs(str(script), {"modules": ["numpy"]})
    (ready,), (first,), (second,) = waits
    assert ready == {"versions": VERSIONS} and (first["loss"], second["loss"]) == (2.5, 1.5)
    assert set(first) == {"seconds", "loss"} and 0 <= second["seconds"] < 60


def test_passes_wait_for_their_turns(tmp_path, monkeypatch, told, clock):
    from common.passes import PassLog

    script, waits = tmp_path / "script.py", []
    script.write_text(PASSES)
    monkeypatch.setattr(PassLog, "latency", PassLog.latency)  # it is the test's again afterwards

    def wait():
        waits.append(told())
        if len(waits) == 3:
            raise EOFError

    monkeypatch.setattr(inside, "wait", wait)
    with pytest.raises(EOFError):
        inside.passes(str(script), {"modules": []})
    assert waits[0] == [{"versions": VERSIONS}], "the script's own passes are not told, and a single input is not timed"
    assert waits[1:] == [[{"seconds": 1.0, "mean output": mean}] for mean in (3.0, 4.0)]


@pytest.mark.parametrize("processors", [None, (0, 2)])
def test_script_gets_its_own_variables_folder_and_processors(tmp_path, monkeypatch, record, processors):
    started, confined = [], []
    monkeypatch.setattr(
        subprocess.Popen, "__init__", lambda self, command, **options: started.append((command, options))
    )
    monkeypatch.setattr(os, "sched_setaffinity", lambda *each: confined.append(each), raising=False)
    script = Script(tmp_path / "script.py", Path("python"), {"OF_THE_BUILD": "1"}, tmp_path)
    slot = Slot(record.machine, processors=processors)
    Process(script, slot, "epochs", {"a": 1})
    ((command, options),) = started
    assert command == ["python", inside.__file__, "epochs", str(script.file), '{"a": 1}']
    assert options["env"] == script.environment(slot) and options["env"]["OF_THE_BUILD"] == "1"
    assert options["cwd"] == tmp_path and options["start_new_session"] and options["text"]
    if processors:
        options["preexec_fn"]()
    assert confined == ([(0, processors)] if processors else []) and (options["preexec_fn"] is None) == (not processors)


def test_nobody_wants_the_rest(monkeypatch):
    ended = []
    monkeypatch.setattr(inside.os, "_exit", ended.append)
    for line, codes in (("\n", []), ("", [0])):
        monkeypatch.setattr(inside.sys, "stdin", SimpleNamespace(readline=lambda line=line: line))
        inside.wait()
        assert ended == codes
