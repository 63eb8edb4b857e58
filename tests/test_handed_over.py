"""What a notebook hands over is looked at before it is believed, whatever it is; what it prints has limits."""

import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.record import MIME
from rosetta import catalog, journal, plan
from rosetta.records import readable
from rosetta.run import completion, devices
from rosetta.run.child import Outcome
from rosetta.run.completion import Ending
from rosetta.run.execute import blank
from rosetta.run.kernels import Kernels
from rosetta.run.processes import COOKIE, kill_tree
from tests.fault_table import fault, seen
from tests.standin import ROOT, TRAIN, StandIn, cells

KNOWN = catalog.load()
(PLAN,) = plan.make(KNOWN, KNOWN.rows("cifar10_cnn")[:1], "smoke", {}, gpu=False)
(SLOT,) = devices.timed("none", None)
ENDED = Ending(timed_out=False, code=0, last="")
METRICS = {"accuracy": 0.5, "parameters": PLAN.expected["parameters"], "loss": [2.0], "epoch_s": [0.1]}
GOOD = {"schema": 2, "metrics": METRICS, "device": "cpu", "versions": {"numpy": "2"}}


def completed(folder, payload):
    """The record of a run whose notebook has handed this over."""
    cell = {"cell_type": "code", "metadata": {"tags": ["record"]}, "outputs": [{"data": {MIME: payload}}]}
    (folder / "executed.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}}))
    Outcome("ok").write(folder)
    record = blank(PLAN, SLOT, Kernels())
    completion.complete(record, PLAN, folder, folder / "executed.ipynb", ENDED, datetime.now(UTC))
    return readable(record)


def test_what_is_whole_is_taken(tmp_path):
    record = completed(tmp_path, GOOD)
    assert (record.status, record.error, record.metrics.accuracy) == ("ok", None, 0.5)


def with_metrics(**changed):
    return GOOD | {"metrics": METRICS | changed}


TOLD = {
    "metrics: Field required": ("the notebook hands over an empty record", "a notebook whose record is `{}`"),
    "lost: Extra inputs": ("the notebook hands over an unknown name", "a notebook whose metrics have `lost`"),
    "loss.0: Input": ("the notebook hands over a text", "a notebook whose losses are `['abc']`"),
}


@pytest.mark.parametrize(
    "payload, said",
    [
        ([], "Input should be a valid dictionary"),
        ({}, "metrics: Field required"),
        ("no", "Input should be a valid dictionary"),
        (with_metrics(loss="abc"), "loss: Input should be a valid list"),
        (with_metrics(loss=["abc"]), "loss.0: Input should be a valid number"),
        (with_metrics(lost=1), "lost: Extra inputs are not permitted"),
        (with_metrics(epoch_s=[float("inf")]), "epoch_s.0: Input should be a finite number"),
        (with_metrics(accuracy=77.0), "accuracy: Input should be less than or equal to 1"),
        (with_metrics(epoch_s=[-1.0]), "epoch_s.0: Input should be greater than or equal to 0"),
        (GOOD | {"device": ["cpu"]}, "device: Input should be a valid string"),
        (GOOD | {"versions": {"numpy": None}}, "versions.numpy: Input should be a valid string"),
        (
            GOOD | {"points": [{"at": {}, "values": [float("nan")]}]},
            "points.0.values.0: Input should be a finite number",
        ),
        (with_metrics(accuracy=None, loss=[], epoch_s=[]), "the notebook reported no accuracy"),
        (with_metrics(loss=[], epoch_s=[]), "reported losses of 0 epochs, expected 1: log.epoch is to be called once"),
        (with_metrics(epoch_s=[1.0, 2.0]), "the notebook reported times of 2 epochs, expected 1"),
        (with_metrics(parameters=7), "not the network of this task: parameters is 7, expected 3,441,592"),
    ],
)
def test_what_does_not_fit_is_that_runs_failure(tmp_path, payload, said):
    record = completed(tmp_path, payload)
    assert record.status == "failed" and said in record.error
    assert "\n" not in record.error
    for part in TOLD:
        if said.startswith(part):
            seen(*TOLD[part], f"failed: {record.error}", "a record (`failed`), the executed notebook and the log")


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=10), values, max_size=3),
    max_leaves=8,
)
SHAPED = st.fixed_dictionaries(
    {"metrics": st.fixed_dictionaries({name: st.just(value) | ANY for name, value in METRICS.items()}) | ANY},
    optional=dict.fromkeys(("device", "versions", "cuda", "thread_pools", "points", "dataset", "other"), ANY),
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(payload=SHAPED | ANY)
def test_anything_ends_as_a_record(tmp_path_factory, payload):
    record = completed(tmp_path_factory.mktemp("run"), payload)
    assert record.status == "ok" or record.error and len(record.error.splitlines()) == 1


def train(standin: StandIn, code: str, name: str = "good") -> None:
    """Give a notebook these lines before its training."""
    standin.notebook(name, [(role, code + TRAIN if role == "train" else text) for role, text in cells(name)])


@fault("a fault in the runner's own code", "a mistake planted where a run's record is completed")
def test_our_own_mistake_is_the_record_of_one_run(standin):
    """A run whose handling raises what nobody foresaw; the next one runs."""
    file = standin.root / "rosetta" / "run" / "completion.py"
    broken = '    if record.framework == "silent":\n        raise ZeroDivisionError("a mistake")\n'
    text = file.read_text()
    first = "    where, wrong = None"
    assert text.count(first) == 1
    file.write_text(text.replace(first, broken + first))
    done = standin.run("silent", "good")
    assert done.returncode == 1 and "good: ok" in done.stdout and "Traceback" not in done.stdout + done.stderr
    assert standin.record("silent.failed")["error"] == "the runner could not go on: ZeroDivisionError: a mistake"
    assert "Traceback" in (standin.column() / "silent.failed.log").read_text()
    said = next(line for line in done.stdout.splitlines() if "silent: failed: " in line)
    return said, "a record (`failed`) and the log, which has the trace; other runs go on"


@fault("a notebook prints 29 MB", "20 MB in lines of 0.5 MB, 9 MB without a line end, an epoch line of 5,000 digits")
def test_very_long_output_is_cut_and_says_so(standin):
    digits = "print('epoch ' + 5000 * '1' + '/2  loss 1  1 s')\n"
    train(standin, digits + "for n in range(40):\n    print(n, 500_000 * 'x')\nprint(9_000_000 * 'y', end='')\n")
    train(standin, "raise ValueError(9_000_000 * 'z')\n", "raises")
    done = standin.run("good", "raises")
    assert "good: ok" in done.stdout and len(done.stdout) < 5000, "the reader survives any line"
    log, copy = (standin.column() / f"good.{suffix}" for suffix in ("log", "ipynb"))
    text = log.read_text()
    assert 2**21 - 2**17 < log.stat().st_size < 2**21 + 2**17 and re.search(
        r"\[[\d,]+ bytes of the run's output are left out", text
    )
    assert "0 xxx" in text and "epoch 1/1" in text, "its head and its tail"
    assert copy.stat().st_size < 2**22 + 2**20 and "is left out of this notebook" in copy.read_text()
    error = standin.record("raises.failed")["error"]
    assert error.startswith("ValueError: zzz") and len(error) < 600
    assert (standin.column() / "raises.failed.ipynb").stat().st_size < 2**20
    seen(
        "an error has 9 MB",
        "a cell raises `ValueError` with a text of 9,000,000 letters",
        "raises: failed: " + re.sub("z+", "zzz", error),
        "a record (`failed`) with 500 characters of the error, the executed notebook and the log",
    )
    said = re.search(r"\[[\d,]+ bytes of the run's output are left out.*", text)[0]
    return "in the log: " + re.sub(
        r"[\d,]+ bytes", "… bytes", said
    ), "the record (`ok`); the first and the last MiB of the log"


DAEMON = """
import subprocess
subprocess.Popen(["env", "-i", "sh", "-c", "{ sleep 986 & } ; exit"], start_new_session=True)
"""


def sleeping() -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if "986" in _command(process)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="a process adopts orphans on Linux alone")
@fault("a notebook leaves a daemon", "a process with a session of its own, a cleared environment and no parent")
def test_a_daemon_ends_with_its_run(standin):
    train(
        standin, DAEMON + "time.sleep(2)\nprint('it slept:', subprocess.run(['pgrep', '-f', 'sleep 986']).returncode)\n"
    )
    done = standin.run("good")
    assert done.returncode == 0 and not done.stderr
    assert "it slept: 0" in (standin.column() / "good.log").read_text() and not sleeping()
    return "nothing; the daemon ends with its run", "the record (`ok`), the executed notebook and the log"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="a limit marks processes on Linux alone")
def test_a_daemon_is_known_when_its_run_was_killed():
    """Before anybody saw it: without the run's variables, its parents gone."""
    code = (
        "import os, subprocess; from rosetta.run.processes import end_with_the_runner; end_with_the_runner()\n"
        "subprocess.run(['setsid', '-f', 'env', '-i', 'sleep', '986']); os.kill(os.getpid(), 9)"
    )
    variables = os.environ | {COOKIE: "a run of its own"}
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=variables, stdin=subprocess.PIPE)
    child.wait()
    child.stdin.close()
    assert sleeping()
    kill_tree(None, "another run")
    assert sleeping()
    kill_tree(None, "a run of its own")
    assert not sleeping()


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="a process adopts orphans on Linux alone")
@pytest.mark.parametrize("victims", ["runner", "child", "child and runner"])
def test_a_daemon_ends_with_a_run_that_is_killed(standin, victims):
    """Where both are killed at once nobody is left to do it, but for the next batch."""
    train(standin, DAEMON + "time.sleep(987)\n")
    command = standin.command("run", "good", "--synthetic", "--preset", "smoke", "--out", str(standin.out))
    runner = subprocess.Popen(command, cwd=standin.root, env=standin.variables(), stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not sleeping() and time.monotonic() < deadline:
        time.sleep(0.1)
    (child,) = psutil.Process(runner.pid).children()
    if "child" in victims:
        child.suspend()  # so that it cannot notice the runner's end
    if "runner" in victims:
        runner.kill()
    if "child" in victims:
        child.kill()
    runner.communicate(timeout=60)
    if "and" in victims:
        assert sleeping()
        journal.clean(standin.out)
        assert not sleeping()
    while sleeping() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not sleeping()
    seen(
        "a daemon outlives the runner",
        "a daemon of a notebook, then SIGKILL to the runner, or to the process between runner and kernel",
        "nothing of the daemon, which ends within seconds",
        "all finished runs",
    )
