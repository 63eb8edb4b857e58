"""A stand-in checkout whose commands work in this process: in less time.

Its notebooks are executed here, too, one at a time, by nothing but Python.
"""

import ast
import io
import json
import subprocess
import sys
import threading
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest

import common.data.loaded
import common.params
import common.record
import common.reference
from rosetta import cli, streams
from rosetta.paths import checkout
from rosetta.plan import Plan
from rosetta.run import environments, execute, kernels, machine, processes
from rosetta.run.devices import Slot
from rosetta.run.processes import JOB, Job, Outcome, error_line
from rosetta.run.telemetry import RunMeter
from rosetta.verify import train
from tests.standin import ROOT, TASK, StandIn

ONE_AT_A_TIME = threading.RLock()  # for what a notebook changes in this process


class Here:
    """Makes the checkout below ``root`` the one of this process, until ``patch`` ends with its test or module."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch):
        self.root, self.patch = root, patch
        patch.setattr(checkout, "root", root)
        for function in (
            kernels._check_interpreter,
            kernels._check_imports,
            machine.card_facts,
            environments.find_python,
        ):
            patch.setattr(sys.modules[function.__module__], function.__name__, cache(function.__wrapped__))
        for package in (common.params, common.reference, common.data):  # of tasks that only this checkout has
            places = [*package.__path__, str(root / Path(package.__path__[0]).relative_to(ROOT))]
            patch.setattr(package, "__path__", places)
        patch.setattr(streams, "keep_on", lambda: None)  # it is for the end of a process
        answer = subprocess.CompletedProcess([], 0, f"{kernels.STARTED}\n", "")
        patch.setattr(processes, "ask", lambda *_, **__: answer)
        patch.setattr(execute, "run_process", run_here)
        load = train.Reference.data  # what this process has loaded last is in the record of a notebook that runs here

        def data(reference: train.Reference, *sizes: int, **more: int):
            with ONE_AT_A_TIME:
                return load(reference, *sizes, **more)

        patch.setattr(train.Reference, "data", data)
        patch.chdir(root)

    def call(self, command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess:
        """The command line, to its end. command: as a process would be given it, Python first."""
        out, errors, code = io.StringIO(), io.StringIO(), 0
        with pytest.MonkeyPatch.context() as process, redirect_stdout(out), redirect_stderr(errors):
            for name, value in variables.items():
                process.setenv(name, value)
            process.setattr(sys, "argv", command[1:])
            try:
                cli.main()
            except SystemExit as end:
                code = end.code or 0
        return subprocess.CompletedProcess(command, code, out.getvalue(), errors.getvalue())


class Inside(StandIn):
    """The stand-in, in this process."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch):
        super().__init__(root)
        self.here = Here(root, patch)

    def call(self, *arguments: str, own_python: bool = True, **variables: str) -> subprocess.CompletedProcess:
        with pytest.MonkeyPatch.context() as patch:  # for the call alone: others of this process count with it
            patch.setattr(f"common.params.{TASK}.MULTIPLY_ADDS", None)  # as in its own copy
            return self.here.call(self.command(*arguments, own_python=own_python), self.variables(**variables))


def run_here(run: execute.Run, plan: Plan, slot: Slot, watch: execute.Watcher) -> tuple[Outcome, RunMeter]:
    """In the place of a run's process and its kernel: the cells of the notebook, one after the other."""
    job = Job(**json.loads((run.folder / JOB).read_text()))
    notebook, shown, outcome = nbformat.read(plan.row.notebook, as_version=4), [], Outcome("ok")
    notebook.metadata["papermill"] = {"end_time": "soon"}
    run.log.touch()
    names = {"__name__": "__main__", "print": lambda *_: None}
    with ONE_AT_A_TIME, pytest.MonkeyPatch.context() as process:
        for name, value in job.variables.items():
            process.setenv(name, value)
        process.chdir(plan.row.notebook.parent)
        process.setattr(sys, "path", [*sys.path])
        process.setattr(common.record, "print", names["print"], raising=False)
        process.setattr(common.record, "_show", lambda payload, text: shown.append((payload, text)))
        process.setattr(common.data.loaded, "_last", {})  # this process may have loaded data before
        hooks = []  # of what keeps what cells end with
        events = SimpleNamespace(register=lambda event, hook: hooks.append(hook))
        process.setattr("IPython.get_ipython", lambda: SimpleNamespace(events=events))
        for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
            began, seconds = datetime.now(UTC), time.perf_counter()
            try:
                ended = run_cell(cell.source, names)
                for hook in hooks:
                    hook(SimpleNamespace(result=ended, info=SimpleNamespace(raw_cell=cell.source)))
                cell.metadata["execution"] = {"shell.execute_reply": ""}
            except Exception as error:
                outcome = Outcome("failed", error_line(type(error).__name__, error))
                run.log.write_text(traceback.format_exc())
            took = {"start_time": began.isoformat(), "duration": time.perf_counter() - seconds + 0.001}
            cell.metadata["papermill"] = took | ({"exception": True} if outcome.error else {})
            if outcome.error:
                break
            if cell.metadata.tags == ["parameters"]:
                names |= job.parameters
        for payload, text in shown:
            data = {common.record.MIME: payload, "text/plain": text}
            cell.outputs.append(nbformat.v4.new_output("display_data", data=data))
    nbformat.write(notebook, run.executed)
    return outcome, RunMeter(0, ())


def run_cell(source: str, names: dict) -> Any:
    """The value of the expression that a cell ends with, None where there is none."""
    tree = ast.parse(source)
    last = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return last and eval(compile(ast.Expression(last), "<cell>", "eval"), names)
