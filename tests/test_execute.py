"""One run: what becomes of a notebook, what it hands over, what it prints, and what it leaves."""

import io
import json
import os
import re
import subprocess
import time
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.record import MIME
from rosetta import catalog, plan
from rosetta.kinds import KINDS
from rosetta.records import readable
from rosetta.run import devices, execute, processes
from rosetta.run.devices import Slot
from rosetta.run.execute import Output, Progress, Run
from rosetta.run.kernels import Kernels
from rosetta.run.processes import Outcome
from tests.fault_table import fault, seen
from tests.standin import TRAIN, StandIn, cells

TEXT = "epoch 1/2  loss 2.5  1.5 s"
LINE = f"{TEXT}\n".encode()
# Of a process of PyTorch's loader: the cause is the last line
LOADER = """Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "worker.py", line 7, in _worker_loop
RuntimeError: unable to allocate shared memory(shm)
"""
KNOWN = catalog.load()
(PLAN,) = plan.make(KNOWN, KNOWN.rows("cifar10_cnn")[:1], "smoke", {}, gpu=False)
(SLOT,) = devices.timed("none", None)
METRICS = {"accuracy": 0.5, "parameters": PLAN.expected["parameters"], "loss": [2.0], "epoch_s": [10.0]}
SIZES = {"train": PLAN.constants["N_TRAIN"], "test": PLAN.constants["N_TEST"]}
DATASET = {"name": "cifar10", "synthetic": False, "sizes": SIZES}
GOOD = {"schema": 2, "metrics": METRICS, "device": "cpu", "versions": {"numpy": "2"}, "dataset": DATASET}


def test_of_another_processs_trace_the_last_line_is_the_cause():
    assert processes.error_line("RuntimeError", LOADER) == (
        "RuntimeError: RuntimeError: unable to allocate shared memory(shm)"
    )


@pytest.mark.parametrize(
    "error, size, advice",
    [
        ("RuntimeError: unable to allocate shared memory(shm)", 2**26, True),
        ("TimeoutError: no message", 2**26, True),
        ("TimeoutError: no message", 2**32, False),
        ("ValueError: it smashes", 2**26, False),
    ],
)
def test_a_container_with_little_shared_memory_is_told(monkeypatch, record, error, size, advice):
    monkeypatch.setattr(execute, "SHM", "/")
    monkeypatch.setattr(execute.shutil, "disk_usage", lambda _: SimpleNamespace(total=size))
    status, said = execute.judge(record, PLAN, Outcome("failed", error), None, "step, line 3")
    added = "; / has 67 MB, make it larger (docker run --shm-size=1g)" if advice else ""
    assert (status, said) == ("failed", f"{error} (in the cell step, line 3){added}")


class Meter(nullcontext):
    seen = {"a process"}

    def mark(self):
        pass


@pytest.mark.parametrize(
    "code, written, expected",
    [
        (0, '{"sta', Outcome("crashed", f"the run's process ended: exit code 0 ({TEXT})")),
        (3, None, Outcome("crashed", f"the run's process ended: exit code 3 ({TEXT})")),
        (-15, None, Outcome("crashed", "the run's process ended: SIGTERM")),
        (None, None, Outcome("timeout", "stopped after 0.2 s, its limit (--timeout sets another)")),
    ],
)
def test_run_is_followed_to_its_end(code, written, expected, record, tmp_path, monkeypatch):
    told, killed, meter = [], [], Meter()
    (tmp_path / processes.JOB).touch()
    if written:
        (tmp_path / processes.OUTCOME).write_text(written)

    @contextmanager
    def start(*_, **__):
        wait = Mock(side_effect=subprocess.TimeoutExpired("x", 5) if code is None else None)
        yield SimpleNamespace(pid=0, returncode=code, stdout=io.BytesIO(LINE), wait=wait)

    monkeypatch.setattr(execute, "RunMeter", lambda pid, gpus: meter)
    monkeypatch.setattr(execute, "kill_tree", lambda *each: killed.append(each))
    monkeypatch.setattr(execute, "start", start)
    run = Run(record, tmp_path)
    outcome, _ = execute.run_process(run, SimpleNamespace(timeout_s=0.2), Slot(record.machine), told.append)
    assert outcome == expected
    assert told == [Progress("running", "epoch", 1, 2, "loss 2.5")] and run.log.read_bytes() == LINE
    assert killed == [(0, str(tmp_path), {"a process"})], "a run that has ended may leave some, too"


def test_run_does_not_depend_on_who_watches_it(tmp_path):
    def gone(progress):
        raise ValueError("the watcher is gone")

    printed, log = LINE + b"the last line\n\n", tmp_path / "run.log"
    output = Output(io.BytesIO(printed), log, Meter(), gone)
    output.run()
    assert output.last_line == "the last line" and log.read_bytes() == printed


def completed(folder, payload):
    """The record of a run whose notebook has handed this over."""
    cell = {"cell_type": "code", "metadata": {"tags": ["record"]}, "outputs": [{"data": {MIME: payload}}]}
    run = Run(execute.blank(PLAN, SLOT, Kernels()), folder)
    run.executed.write_text(json.dumps({"cells": [cell], "metadata": {}}))
    *found, _ = execute.collect(run, PLAN, None, datetime.now(UTC))
    run.end(*execute.judge(run.record, PLAN, Outcome("ok"), *found))
    return readable(run.record)


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
        (GOOD, ""),
        ({}, "metrics: Field required"),
        (with_metrics(loss=["abc"]), "loss.0: Input should be a valid number"),
        (with_metrics(lost=1), "lost: Extra inputs are not permitted"),
        (with_metrics(epoch_s=[float("inf")]), "epoch_s.0: Input should be a finite number"),
        (with_metrics(accuracy=77.0), "accuracy: Input should be less than or equal to 1"),
        (GOOD | {"device": ["cpu"]}, "device: Input should be a valid string"),
        (with_metrics(accuracy=None, loss=[], epoch_s=[]), "the notebook reported no accuracy"),
        (with_metrics(loss=[], epoch_s=[]), "reported losses of 0 epochs, expected 1: log.epoch is to be called once"),
        (with_metrics(epoch_s=[1.0, 2.0]), "the notebook reported times of 2 epochs, expected 1"),
        (GOOD | {"dataset": None}, "it has loaded no data by common/data/cifar10.py"),
        (
            GOOD | {"dataset": DATASET | {"synthetic": True}},
            "it has loaded generated data, and real data were asked for",
        ),
        (GOOD | {"dataset": DATASET | {"sizes": SIZES | {"train": 7}}}, "it has loaded 7 examples, and N_TRAIN is 640"),
        (with_metrics(epoch_s=[1e-3]), "more than any machine of this kind computes"),
    ],
)
def test_what_does_not_fit_is_that_runs_failure(tmp_path, payload, said):
    record = completed(tmp_path, payload)
    assert record.status == ("failed" if said else "ok") and said in (record.error or "")
    assert "\n" not in (record.error or "")
    for part in TOLD:
        if part in said:
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
def test_our_own_mistake_is_the_record_of_one_run(inside, monkeypatch):
    """A run whose handling raises what nobody foresaw; the next one runs."""
    collect = execute.collect

    def broken(run, *more):
        if run.record.framework == "silent":
            raise ZeroDivisionError("a mistake")
        return collect(run, *more)

    monkeypatch.setattr(execute, "collect", broken)
    done = inside.run("silent", "good")
    assert done.returncode == 1 and "good: ok" in done.stdout and "Traceback" not in done.stdout + done.stderr
    assert inside.record("silent.failed")["error"] == "the runner could not go on: ZeroDivisionError: a mistake"
    assert "Traceback" in (inside.column() / "silent.failed.log").read_text()
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


SLEEP = f"986.{os.getpid()}"  # seconds of a daemon: no other process sleeps as long
DAEMON = f"""
import subprocess
subprocess.Popen(["env", "-i", "sh", "-c", "{{ sleep {SLEEP} & }} ; exit"], start_new_session=True)
"""


def sleeping() -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if SLEEP in (process.info["cmdline"] or ())]


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="a process adopts orphans on Linux alone")
@fault("a notebook leaves a daemon", "a process with a session of its own, a cleared environment and no parent")
def test_a_daemon_ends_with_its_run(standin):
    looks = f"time.sleep(2)\nprint('it slept:', subprocess.run(['pgrep', '-f', 'sleep {SLEEP}']).returncode)\n"
    train(standin, DAEMON + looks)
    done = standin.run("good")
    assert done.returncode == 0 and not done.stderr
    assert "it slept: 0" in (standin.column() / "good.log").read_text() and not sleeping()
    return "nothing; the daemon ends with its run", "the record (`ok`), the executed notebook and the log"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="a process adopts orphans on Linux alone")
@pytest.mark.drawn(1)
@pytest.mark.parametrize("victim", ["runner", "child"])
def test_a_daemon_ends_with_a_run_that_is_killed(standin, victim):
    train(standin, DAEMON + "time.sleep(987)\n")
    command = standin.command("run", "good", "--synthetic", "--preset", "smoke", "--out", str(standin.out))
    runner = subprocess.Popen(command, cwd=standin.root, env=standin.variables(), stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not sleeping() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)  # it has been seen by then
    (process,) = psutil.Process(runner.pid).children() if victim == "child" else [runner]
    process.kill()
    runner.communicate(timeout=60)
    while sleeping() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not sleeping()
    seen(
        "a daemon outlives the runner",
        "a daemon of a notebook, then SIGKILL to the runner, or to the process between runner and kernel",
        "nothing of the daemon, which ends within seconds",
        "all finished runs",
    )


@pytest.mark.timeout(300)
def test_what_a_notebook_puts_in_the_place_of_its_files_is_neither_written_to_nor_read(standin, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("own")
    folder = "import signal\nfile = os.path.join(os.environ['IPYTHONDIR'], '..', {!r})\nos.remove(file)\n"
    made = {
        "good": ("run.log", f"os.symlink({str(victim)!r}, file)\nprint('after')\n"),
        "raises": ("run.log", f"os.link({str(victim)!r}, file)\nprint('after')\n"),
        "silent": ("run.log", "os.mkfifo(file)\nprint('after')\n"),
        "exits": ("executed.ipynb", "os.mkfifo(file)\nos.kill(os.getppid(), signal.SIGKILL)\n"),
    }
    for row, (file, code) in made.items():
        train(standin, folder.format(file) + code, row)
    done = standin.run(*made)
    assert done.returncode == 1 and "3 of 4 runs ok" in done.stdout and "exits: crashed" in done.stdout
    logs = {row: log.read_text() for row in made if (log := standin.column() / f"{row}.log").exists()}
    assert victim.read_text() == "own" and logs == {"raises": "own"}, "a second name of a file cannot be told from it"


@pytest.mark.parametrize(
    "metrics, device, said",
    [
        (KINDS["train"].metrics(), "cpu", "none"),
        (KINDS["train"].metrics(devices=["cpu in process 1"]), "cpu", "cpu in process 1"),
        (KINDS["train"].metrics(devices=["a", "b", "c"]), "cpu", "a, b, c"),
        (KINDS["train"].metrics(devices=["a", "b"]), "cpu", None),
        (KINDS["speed"].metrics(), "CPU", "CPU"),
        (KINDS["speed"].metrics(), "CPU, CPU:1", None),
    ],
)
def test_run_on_other_devices_than_it_was_given_has_failed(record, metrics, device, said):
    """What took part is counted by what the devices say of themselves: where a task only names its device, by the names."""
    record.metrics, record.device, record.params = metrics, device, {"DEVICES": 2}
    trouble = execute.not_as_asked(record, SimpleNamespace(dataset=None, kind=KINDS["speed"], flop=None))
    assert trouble == (said and f"DEVICES is 2, and the devices that took part are: {said}")
