"""The process of a run without one: papermill, the process itself and what it prints are played."""

import io
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import papermill
import pytest
from jupyter_client import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from rosetta.errors import Unavailable
from rosetta.run import child, completion, execute
from rosetta.run.child import Job, Outcome
from rosetta.run.completion import Ending
from rosetta.run.devices import Slot
from rosetta.run.execute import Output, Progress, Run
from rosetta.run.executed import ExecutedNotebook

TEXT = "epoch 1/2  loss 2.5  1.5 s"
LINE = f"{TEXT}\n".encode()
FAILURE = PapermillExecutionError(1, 1, "x = 1 / 0", "ZeroDivisionError", "division by zero\nmore", ["the", "trace"])


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
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_becomes_of_a_notebook(end, outcome, said, tmp_path, monkeypatch, capsys):
    called, stopped = [], []

    def played(*arguments, **options):
        called.append((arguments, options))
        if end:
            raise end

    async def shutdown(self, now):
        stopped.append(now)

    monkeypatch.setattr(papermill, "execute_notebook", played)
    monkeypatch.setattr(AsyncKernelManager, "shutdown_kernel", shutdown)
    process = SimpleNamespace(process=SimpleNamespace(returncode=-9))
    monkeypatch.setattr(AsyncKernelManager, "provisioner", process, raising=False)
    executed = tmp_path / "executed.ipynb"
    assert child.execute(Job("notebooks/x/y.ipynb", {"EPOCHS": 1}, start_timeout_s=5), executed) == outcome
    assert capsys.readouterr().out == said and stopped == [True]
    ((arguments, options),) = called
    assert arguments == ("notebooks/x/y.ipynb", str(executed), {"EPOCHS": 1})
    assert options.pop("km").connection_file == str(tmp_path / "connection.json")
    assert options == {
        "engine_name": "rosetta",
        "kernel_name": "rosetta",
        "cwd": str(child.ROOT / "notebooks" / "x"),
        "stdout_file": sys.stdout,
        "stderr_file": sys.stderr,
        "progress_bar": False,
        "start_timeout": 5,
    }


@pytest.mark.parametrize("outcome, code", [(Outcome("ok"), 0), (Outcome("failed", "why"), 1)])
def test_child_hands_its_outcome_over(outcome, code, tmp_path, monkeypatch, capsys):
    jobs, confined = [], []
    monkeypatch.setattr(child, "execute", lambda job, executed: jobs.append((job, executed)) or outcome)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *each: confined.append(each), raising=False)
    job = Job("x.ipynb", {"SEED": 1}, processors=[0, 2], clock=3.5)
    job.write(tmp_path)
    assert child._main(tmp_path) == code and Outcome.read(tmp_path) == outcome
    assert jobs == [(job, tmp_path / "executed.ipynb")] and confined == [(0, [0, 2])]

    def full(self, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Outcome, "write", full)
    assert child._main(tmp_path) == 1
    assert capsys.readouterr().out == (
        f"{outcome.error or 'ok'}; the outcome could not be written: No space left on device\n"
    )


class Played:
    """A run's process that prints a line, and ends or has to be killed."""

    pid, stdin = 0, io.BytesIO()

    def __init__(self, command: list[str], ends: bool):
        self.command, self.ends = command, ends
        self.stdout, self.returncode = io.BytesIO(LINE), None

    def wait(self, timeout=None):
        if timeout and not self.ends:
            raise subprocess.TimeoutExpired("x", timeout)
        self.returncode = 3


class Meter(nullcontext):
    seen, marked_j = {"a process"}, [7.0]

    def mark(self):
        pass


@pytest.mark.parametrize("ends", [True, False])
def test_run_is_followed_to_its_end(ends, record, tmp_path, monkeypatch):
    told, killed, made, meter = [], [], [], Meter()
    monkeypatch.setattr(execute, "RunMeter", lambda pid, gpus: meter)
    monkeypatch.setattr(execute, "kill_tree", lambda *each: killed.append(each))
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: made.append(Played(command, ends)) or made[0])
    slot, run = Slot(record.machine), Run(record, tmp_path)
    how, telemetry = execute._supervise(run, SimpleNamespace(timeout_s=5), slot, told.append)
    assert how == Ending(not ends, 3, TEXT, [7.0]) and telemetry is meter
    assert told == [Progress("running", "epoch", 1, 2, "loss 2.5")] and run.log.read_bytes() == LINE
    assert killed == [(0, str(tmp_path), {"a process"})], "a run that has ended may leave some, too"
    assert made[0].command[1:] == ["-m", "rosetta.run.child", str(tmp_path)]


def test_what_is_installed_is_told_and_what_cannot_be_had_is_skipped(record, tmp_path):
    told, cards = [], []

    def get(row, log, tell, gpus):
        cards.append(gpus)
        tell("installing six")
        raise Unavailable("it needs g++")

    plan, slot = SimpleNamespace(refused=None, row=None), Slot(record.machine)
    run = execute._execute(Run(record, tmp_path), plan, slot, SimpleNamespace(get=get), told.append)
    assert (run.record.status, run.record.error) == ("skipped", "it needs g++") and cards == [record.machine.gpus]
    assert told == [Progress("preparing"), Progress("preparing", note="installing six")]


@pytest.mark.parametrize("replied, stopped", [(True, None), (False, "train")])
def test_cell_that_has_had_no_reply_is_where_a_run_stopped(replied, stopped, tmp_path):
    def cell(role, replied):
        metadata = {"tags": [role], "papermill": {"start_time": "2026-11-22T12:00:00+00:00"}}
        metadata["execution"] = {"shell.execute_reply": ""} if replied else {}
        return {"cell_type": "code", "metadata": metadata, "outputs": [], "source": ""}

    cells = [cell("setup", True), cell("train", replied)]
    (tmp_path / "x.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    assert ExecutedNotebook(tmp_path / "x.ipynb").stopped_in() == stopped


def test_figures_of_a_message_are_written_as_elsewhere():
    assert [completion._text(value) for value in (3441592, 0.5, None)] == ["3,441,592", "0.5", "None"]


def test_run_does_not_depend_on_who_watches_it(tmp_path):
    def gone(progress):
        raise ValueError("the watcher is gone")

    printed, log = LINE + b"the last line\n\n", tmp_path / "run.log"
    output = Output(io.BytesIO(printed), log, gone)
    output._follow()
    assert output.last == "the last line" and log.read_bytes() == printed
