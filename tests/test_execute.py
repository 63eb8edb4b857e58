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
from unittest.mock import AsyncMock, Mock

import papermill
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupyter_client import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from common.record import MIME
from rosetta import catalog, plan
from rosetta.errors import Unavailable
from rosetta.kinds import KINDS
from rosetta.records import readable
from rosetta.run import child, devices, execute, processes
from rosetta.run.devices import Slot
from rosetta.run.execute import ExecutedNotebook, Output, Progress, Run
from rosetta.run.kernels import Kernels
from rosetta.run.processes import Job, Outcome
from tests.fault_table import fault, seen
from tests.standin import TRAIN, StandIn, cells

TEXT = "epoch 1/2  loss 2.5  1.5 s"
LINE = f"{TEXT}\n".encode()
FAILURE = PapermillExecutionError(1, 1, "x = 1 / 0", "ZeroDivisionError", "division by zero\nmore", ["the", "trace"])
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


@pytest.mark.parametrize(
    "end, outcome, said",
    [
        (None, Outcome("ok"), ""),
        (FAILURE, Outcome("failed", "ZeroDivisionError: division by zero"), "the\ntrace\n"),
        (
            DeadKernelError("x"),
            Outcome("crashed", "the kernel died: SIGKILL, as the system sends it when memory runs out"),
            "",
        ),
        (RuntimeError("no such kernel\nx"), Outcome("failed", "RuntimeError: no such kernel"), ""),
        (
            PapermillExecutionError(1, 1, "x", "RuntimeError", LOADER, []),
            Outcome("failed", "RuntimeError: RuntimeError: unable to allocate shared memory(shm)"),
            "\n",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_becomes_of_a_notebook(end, outcome, said, tmp_path, monkeypatch, capsys):
    played, shutdown = Mock(side_effect=end), AsyncMock()
    monkeypatch.setattr(papermill, "execute_notebook", played)
    monkeypatch.setattr(AsyncKernelManager, "shutdown_kernel", shutdown)
    process = SimpleNamespace(process=SimpleNamespace(returncode=-9))
    monkeypatch.setattr(AsyncKernelManager, "provisioner", process, raising=False)
    executed = tmp_path / "executed.ipynb"
    assert child.execute(Job("notebooks/x/y.ipynb", {"EPOCHS": 1}), executed) == outcome
    assert capsys.readouterr().out == said and shutdown.call_args.kwargs == {"now": True}
    assert played.call_args.args == ("notebooks/x/y.ipynb", str(executed), {"EPOCHS": 1})


@pytest.mark.parametrize("outcome, code", [(Outcome("ok"), 0), (Outcome("failed", "why"), 1)])
def test_child_hands_its_outcome_over(outcome, code, tmp_path, monkeypatch, capsys):
    jobs, confined = [], []
    monkeypatch.setattr(child, "execute", lambda job, executed: jobs.append((job, executed)) or outcome)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *each: confined.append(each), raising=False)
    job = Job("x.ipynb", {"SEED": 1}, variables={"A": "b"}, processors=[0, 2], clock=3.5)
    processes.write(job, tmp_path / processes.JOB)
    assert child.main(tmp_path) == code
    assert json.loads((tmp_path / processes.OUTCOME).read_text()) == {"status": outcome.status, "error": outcome.error}
    assert jobs == [(job, tmp_path / "executed.ipynb")] and confined == [(0, [0, 2])]
    monkeypatch.setattr(processes, "write", Mock(side_effect=OSError(28, "No space left on device")))
    assert child.main(tmp_path) == 1
    assert capsys.readouterr().out == (
        f"{outcome.error or 'ok'}; the outcome could not be written: No space left on device\n"
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
        (0, '{"status": "ok"}', Outcome("ok")),
        (0, '{"sta', Outcome("crashed", f"the run's process ended: exit code 0 ({TEXT})")),
        (3, None, Outcome("crashed", f"the run's process ended: exit code 3 ({TEXT})")),
        (-15, None, Outcome("crashed", "the run's process ended: SIGTERM")),
        (None, None, Outcome("timeout", "stopped after 0.2 s, its limit (--timeout sets another)")),
    ],
)
def test_run_is_followed_to_its_end(code, written, expected, record, tmp_path, monkeypatch):
    told, killed, started, meter = [], [], [], Meter()
    (tmp_path / processes.JOB).touch()
    if written:
        (tmp_path / processes.OUTCOME).write_text(written)

    @contextmanager
    def start(*command, cookie, **_):
        started.append((command, cookie))
        wait = Mock(side_effect=subprocess.TimeoutExpired("x", 5) if code is None else None)
        yield SimpleNamespace(pid=0, returncode=code, stdout=io.BytesIO(LINE), wait=wait)

    monkeypatch.setattr(execute, "RunMeter", lambda pid, gpus: meter)
    monkeypatch.setattr(execute, "kill_tree", lambda *each: killed.append(each))
    monkeypatch.setattr(execute, "start", start)
    run = Run(record, tmp_path)
    outcome, measured = execute.run_process(run, SimpleNamespace(timeout_s=0.2), Slot(record.machine), told.append)
    assert outcome == expected and measured is meter
    assert told == [Progress("running", "epoch", 1, 2, "loss 2.5")] and run.log.read_bytes() == LINE
    assert killed == [(0, str(tmp_path), {"a process"})], "a run that has ended may leave some, too"
    assert started == [(("rosetta.run.child", str(tmp_path)), str(tmp_path))]


def test_what_is_installed_is_told_and_what_cannot_be_had_is_skipped(monkeypatch):
    told, cards = [], []

    def get(self, row, log, tell, gpus):
        cards.append(gpus)
        tell("installing six")
        raise Unavailable("it needs g++")

    monkeypatch.setattr(Kernels, "get", get)
    run = execute.execute(PLAN, SLOT, Kernels(), told.append)
    run.close()
    assert (run.record.status, run.record.error) == ("skipped", "it needs g++") and cards == [SLOT.machine.gpus]
    assert told == [Progress("preparing"), Progress("preparing", note="installing six")]


@pytest.mark.parametrize("replied, ended, stopped", [(True, "now", None), (False, "now", "train"), (False, None, None)])
def test_cell_that_has_had_no_reply_is_where_a_run_stopped(replied, ended, stopped, tmp_path):
    """Unless the run's process was cut short, and has not written the end."""

    def cell(role, replied):
        metadata = {"tags": [role], "papermill": {"start_time": "2026-11-22T12:00:00+00:00"}}
        metadata["execution"] = {"shell.execute_reply": ""} if replied else {}
        return {"cell_type": "code", "metadata": metadata, "outputs": [], "source": ""}

    cells = [cell("setup", True), cell("train", replied)]
    (tmp_path / "x.ipynb").write_text(json.dumps({"cells": cells, "metadata": {"papermill": {"end_time": ended}}}))
    assert ExecutedNotebook(tmp_path / "x.ipynb").stopped_in() == stopped


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
        (GOOD | {"dataset": None}, "it has loaded no data by common/data/cifar10.py"),
        (
            GOOD | {"dataset": DATASET | {"synthetic": True}},
            "it has loaded generated data, and real data were asked for",
        ),
        (GOOD | {"dataset": DATASET | {"sizes": SIZES | {"train": 7}}}, "it has loaded 7 examples, and N_TRAIN is 640"),
        (with_metrics(epoch_s=[1e-3]), "more than any machine of this kind computes"),
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
    file = standin.root / "rosetta" / "run" / "execute.py"
    broken = '    if run.record.framework == "silent":\n        raise ZeroDivisionError("a mistake")\n'
    text = file.read_text()
    first = "    record, kind = run.record, plan.kind\n"
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
    return [process for process in psutil.process_iter(["cmdline"]) if "986" in (process.info["cmdline"] or ())]


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


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="a process adopts orphans on Linux alone")
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


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", ["os.symlink('{victim}', log)", "os.link('{victim}', log)", "os.mkfifo(log)"])
def test_what_a_notebook_puts_in_the_place_of_its_log_is_not_written_to(standin, tmp_path, what):
    victim = tmp_path / "victim"
    victim.write_text("own")
    log = "log = os.path.join(os.environ['IPYTHONDIR'], '..', 'run.log')\nos.remove(log)\n"
    train(standin, log + what.format(victim=victim) + "\nprint('after')\n")
    assert standin.run("good").returncode == 0
    assert victim.read_text() == "own" and standin.record("good")["status"] == "ok"
    kept = standin.column() / "good.log"
    assert not kept.exists() or kept.read_text() == "own" and "os.link" in what


@pytest.mark.timeout(60)
def test_an_executed_notebook_that_is_a_pipe_ends_that_run(standin):
    put = "executed = os.path.join(os.environ['IPYTHONDIR'], '..', 'executed.ipynb')\nos.remove(executed)\nos.mkfifo(executed)\n"
    train(standin, put + "import signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    done = standin.run("good", "raises")
    assert done.returncode == 1 and "good: crashed" in done.stdout and "raises: failed" in done.stdout


@pytest.mark.parametrize(
    "devices, said",
    [(None, "none"), (["cpu in process 1"], "cpu in process 1"), (["a", "b", "c"], "a, b, c")],
)
def test_run_on_other_devices_than_it_was_given_has_failed(devices, said):
    """What took part is counted by what the devices say of themselves."""
    metrics = KINDS["train"].metrics(accuracy=0.9, parameters=1, loss=[0.5], epoch_s=[1.0], devices=devices)
    trouble = KINDS["train"].trouble(metrics, {"DEVICES": 2, "EPOCHS": 1})
    assert trouble == ("failed", f"DEVICES is 2, and the devices that took part are: {said}")


def test_run_on_all_its_devices_is_in_order():
    metrics = KINDS["train"].metrics(accuracy=0.9, parameters=1, loss=[0.5], epoch_s=[1.0], devices=["a", "b"])
    assert KINDS["train"].trouble(metrics, {"DEVICES": 2, "EPOCHS": 1}) is None
