"""Scripts made of a notebook's cells, and what runs in a framework's own process; the scripts here need no framework."""

import json
import platform
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from rosetta import catalog
from rosetta.errors import RosettaError, Unavailable
from rosetta.measure import commands, inside
from rosetta.measure.rows import Process
from rosetta.paths import checkout
from rosetta.run import devices, scripts
from rosetta.run.scripts import Script

KNOWN = catalog.load()
ROWS = KNOWN.rows()
OF_ANY_TASK, OF_A_TASK = (sorted(checkout.programs.glob(pattern)) for pattern in ("*/*.py", "*/*/*.py"))


def named(file):
    return file.relative_to(checkout.programs).with_suffix("").as_posix()


def test_cells_are_replaced_and_appended(tmp_path):
    file = tmp_path / "x.py"
    file.write_text('"""Why."""\n\n# %% after parameters\nz = 0\n\n# %% after data\nx = 1\n\n# %% train\ny = 2\n')
    change = scripts.changes(file, ("parameters", "data", "train"))
    code = scripts.changed({"parameters": "p", "setup": "s", "data": "a", "train": "b", "record": "c"}, *change)
    expected = {"parameters": "p", "setup": "z = 0\n\n\ns", "data": "a\n\n\nx = 1", "train": "y = 2", "record": "c"}
    assert code == expected
    with pytest.raises(RosettaError, match="notebooks have no cell train"):
        scripts.changes(file, ("parameters", "data"))
    with pytest.raises(Unavailable, match="not written: there is no .*y.py"):
        scripts.changes(tmp_path / "y.py", ("train",))


@pytest.mark.parametrize("file", OF_ANY_TASK + OF_A_TASK, ids=named)
def test_every_program_is_of_a_framework(file):
    rows = [row for row in ROWS if row.framework == file.stem]
    assert rows, "no notebook is of this framework"
    what, *task, _ = file.relative_to(checkout.programs).parts
    if task:
        rows = [row for row in rows if row.task == task[0]]
        assert scripts.program(what, rows[0]) == file
    if what == "weights":
        assert file.stem in KNOWN.task(task[0]).weights.values(), "a whole program, of no cells"
        return
    instead, after = scripts.changes(file, KNOWN.kind(rows[0]).names)
    assert instead or after
    if what == "phases":
        assert set(after) == {"optimizer"} and not instead


@pytest.mark.parametrize("file", OF_ANY_TASK, ids=named)
def test_a_program_of_any_task_names_none(file):
    names = {task.data for task in KNOWN.tasks.values() if task.data} | set(KNOWN.tasks)
    assert not [name for name in names if name in file.read_text()]


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


def test_variables_that_are_empty_are_taken_away(tmp_path, slot, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1")
    own = {"MALLOC_TRIM_THRESHOLD_": "", "A": "1"}
    variables = Script(tmp_path / "x.py", Path(sys.executable), own, tmp_path).environment(slot)
    assert "MALLOC_TRIM_THRESHOLD_" not in variables
    assert (variables["A"], variables["OMP_NUM_THREADS"], variables["CUDA_VISIBLE_DEVICES"]) == ("1", "1", "-1")


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
    sizes, names = [8, 2], ["forward", "step"]
    options = {"modules": ["numpy", "nothing"], "batch_sizes": sizes, "phases": names}
    options |= {"warm_up": 3, "repeats": 2, "steps": 4}
    inside.phases(str(script), options)
    seconds = dict.fromkeys(names, [0.25, 0.25])  # a tick for four steps
    losses = [{"forward": float(size), "step": size + 0.5} for size in sizes]
    of_sizes = [{"batch_size": size, "seconds": seconds, "loss": loss} for size, loss in zip(sizes, losses)]
    assert told() == [{"versions": VERSIONS}, *of_sizes]
    timed = [[name] * times + ["value"] for times in (3, 4, 4) for name in names]
    assert left[0]["calls"] == [call for size in sizes for call in [size, *sum(timed, [])]]


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


def test_process_has_its_own_variables_folder_and_processors(tmp_path, slot):
    facts = "{'folder': os.getcwd(), 'own': os.environ['A'], 'processors': sorted(os.sched_getaffinity(0))}"
    told = replace(script(tmp_path, "a", f"import os; {TELLING}", facts=facts), variables={"A": "1"})
    with Process(told, replace(slot, processors=(0,)), "epochs", {}) as process:
        assert list(process.messages()) == [{"folder": str(tmp_path), "own": "1", "processors": [0]}]


@pytest.mark.parametrize(("line", "codes"), [("\n", []), ("", [0])])
def test_nobody_wants_the_rest(monkeypatch, line, codes):
    ended = []
    monkeypatch.setattr(inside.os, "_exit", ended.append)
    monkeypatch.setattr(inside.sys, "stdin", SimpleNamespace(readline=lambda: line))
    inside.wait()
    assert ended == codes
