"""Scripts made of a notebook's cells, and what runs in a framework's own process; the scripts here need no framework."""

import io
import json
import platform
import sys
import textwrap
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import psutil
import pytest

from rosetta import catalog
from rosetta.errors import RosettaError, Unavailable
from rosetta.measure import commands, inside
from rosetta.measure.rows import Process
from rosetta.notebook import changed, changes, program
from rosetta.paths import checkout
from rosetta.run import devices
from rosetta.run.scripts import Script

KNOWN = catalog.load()
PROGRAMS = sorted(file.relative_to(checkout.programs) for file in checkout.programs.rglob("*.py"))


def test_cells_are_replaced_and_appended(tmp_path):
    file = tmp_path / "x.py"
    file.write_text('"""Why."""\n\n# %% after parameters\nz = 0\n\n# %% after data\nx = 1\n\n# %% train\ny = 2\n')
    change = changes(file, ("parameters", "data", "train"))
    code = changed({"parameters": "p", "setup": "s", "data": "a", "train": "b", "record": "c"}, *change)
    expected = {"parameters": "p", "setup": "z = 0\n\n\ns", "data": "a\n\n\nx = 1", "train": "y = 2", "record": "c"}
    assert code == expected
    with pytest.raises(RosettaError, match="notebooks have no cell train"):
        changes(file, ("parameters", "data"))
    with pytest.raises(Unavailable, match="not written: there is no .*y.py"):
        changes(tmp_path / "y.py", ("train",))


@pytest.mark.parametrize("file", PROGRAMS, ids=str)
def test_every_program_is_of_a_framework(file):
    what, *task, name = file.parts
    suffix = "-{}.py" if what == "variants" else ".py"
    rows = [row for row in KNOWN.rows(*task) if row.framework + suffix.format(row.variant) == name]
    assert rows, "no notebook is of this framework"
    file = checkout.programs / file
    if task:
        assert program(what, rows[0].task, file.stem) == file
    else:
        names = {task.data for task in KNOWN.tasks.values() if task.data} | set(KNOWN.tasks)
        assert not [name for name in names if name in file.read_text()], "a program of any task names none"
    if what == "weights":
        assert file.stem in KNOWN.task(task[0]).weights.values(), "a whole program, of no cells"
        return
    instead, after = changes(file, KNOWN.kind(rows[0]).names)
    assert instead or after
    if what == "phases":
        assert set(after) == {"optimizer"} and not instead


TRAINING = """
    import threading, time
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
TELLING = "from rosetta.measure import inside; inside.tell({facts})"


@pytest.fixture
def slot() -> devices.Slot:
    return devices.timed(gpus="none", threads=1)[0]


def script(folder: Path, name: str, code: str, **values) -> Script:
    file = folder / f"{name}.py"
    file.write_text(textwrap.dedent(code).format(name=name, file=str(folder / "notes"), **values))
    return Script(file, Path(sys.executable), {"PYTHONDONTWRITEBYTECODE": "1"}, folder)


def test_a_time_without_a_result_is_none(tmp_path, slot):
    of_nothing = script(tmp_path, "nothing", TELLING, facts="{'seconds': 1, 'loss': float('nan')}")
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
    assert [name for name, word in notes if word == "begins"] == ["a", "b", "b", "a", "a", "b"]
    at_work = None
    for name, word in notes:
        if word == "busy":  # a thread of the other's is stopped as well
            assert at_work in (None, name)
        else:
            at_work = name if word == "begins" else None


def test_what_fails_is_told_and_nothing_is_left(tmp_path, slot):
    both = script(tmp_path, "a", TRAINING, seconds=0.01), script(tmp_path, "b", "raise ValueError('no such layer')")
    with pytest.raises(RosettaError, match="its process failed: ValueError: no such layer"):
        commands.alternate(both, "epochs", slot, 3, [])
    short = script(tmp_path, "c", "print('done')")
    with pytest.raises(RosettaError, match="the script ended before its turns did"):
        commands.alternate((short, short), "epochs", slot, 3, [])
    assert not [child for child in psutil.Process().children() if str(tmp_path) in " ".join(child.cmdline())]


@pytest.mark.parametrize("own", [{"A": "1", "B": "1"}, {"A": "1", "B": ""}])
def test_process_has_its_own_variables_folder_and_processors(tmp_path, slot, monkeypatch, own):
    monkeypatch.setenv("B", "2")
    asked = ["A", "B", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"]
    facts = f"{{'at': [os.getcwd(), *os.sched_getaffinity(0)], 'set': [os.environ.get(name) for name in {asked}]}}"
    told = replace(script(tmp_path, "a", f"import os; {TELLING}", facts=facts), variables=own)
    with Process(told, replace(slot, processors=(0,)), "epochs", {}) as process:
        (told,) = process.messages()
    assert told == {"at": [str(tmp_path), 0], "set": ["1", own["B"] or None, "1", "-1"]}, "what is empty is taken away"


# In each, a look at the clock is a second later than the one before
CLOCK = """
import itertools, time
ticks = itertools.count()
time.perf_counter = lambda: float(next(ticks))
"""
PHASES = """
calls = []
def place(n): calls.append(n); return n, n
def forward(x, y): calls.append("forward"); return x
def step(x, y): calls.append("step"); return x + 0.5
def value(loss): print(*calls); calls.clear(); return str(loss)
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
REPEATS = """
import numpy as np
from common.steps import StepLog
log = StepLog(2)
for number in range(3):
    log.done(4, np.float32([number, number + 2]))
"""


@pytest.mark.parametrize(
    ("todo", "code", "key", "results"),
    [("passes", PASSES, "mean output", [3, 4, 5]), ("repeats", REPEATS, "result", [1, 2, 3])],
)
def test_turns_tell_versions_first_and_then_what_was_computed(tmp_path, slot, todo, code, key, results):
    """A script's own passes are not told, and a single input is not timed."""
    timed = script(tmp_path, "a", CLOCK + code)
    with Process(timed, slot, todo, {"modules": ["numpy", "nothing"]}) as process:
        versions, *turns = islice(process.turns(), 4)
    assert versions == {"versions": {"python": platform.python_version(), "numpy": np.__version__}}
    assert turns == [{"seconds": 1, key: result} for result in results]


def test_phases_take_turns_after_a_warm_up(tmp_path, slot):
    sizes, names, options = [8, 2], ["forward", "step"], {"modules": [], "warm_up": 3, "repeats": 2, "steps": 4}
    process = Process(
        script(tmp_path, "a", CLOCK + PHASES), slot, "phases", options | {"batch_sizes": sizes, "phases": names}
    )
    with process:
        lines = process.stdout.read().splitlines()
    told = [json.loads(line[len(inside.MARK) :]) for line in lines if line.startswith(inside.MARK)]
    seconds = dict.fromkeys(names, [0.25, 0.25])  # a tick for four steps
    losses = [{"forward": size, "step": size + 0.5} for size in sizes]
    of_sizes = [{"batch_size": size, "seconds": seconds, "loss": loss} for size, loss in zip(sizes, losses)]
    assert told[1:] == of_sizes
    calls = [line.split() for line in lines if line[:1] in ("8", "2", "f", "s")]
    timed = [[name] * times for times in (3, 4, 4) for name in names]
    assert sum(calls, []) == [call for size in sizes for call in [str(size), *sum(timed, [])]]


def test_nobody_wants_the_rest(monkeypatch):
    ended = []
    monkeypatch.setattr(inside.os, "_exit", ended.append)
    monkeypatch.setattr(inside.sys, "stdin", io.StringIO())
    inside.wait()
    assert ended == [0]
