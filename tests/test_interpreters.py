"""Interpreters that the user names: whatever they answer, and if they never do, it is one line."""

import signal
import subprocess
import sys
import time

import pytest

from rosetta.errors import RosettaError
from rosetta.run import interpreters, kernels
from tests.fault_table import fault
from tests.standin import one_line
from tests.test_environments import gone, sleepers

HANGS = "sleep 98765 & wait"


@pytest.fixture
def script(tmp_path):
    """Makes a program that stands for an interpreter."""

    def make(code):
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{code}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.mark.parametrize(
    "code, said",
    [
        ("printf '\\377\\376'", "does not start as Python does: no message"),
        (
            "printf 'no \\377 licence\\n' >&2; exit 3",
            "does not start as Python does: no \N{REPLACEMENT CHARACTER} licence",
        ),
        (f"printf '\\377'; exec {sys.executable} -I -S \"$@\"", "has no ipykernel"),
    ],
)
def test_output_that_is_no_text(standin, script, code, said):
    done = standin.call("list", "--python", f"test={script(code)}", own_python=False, PYTHONIOENCODING="utf-8")
    assert done.returncode == 2 and said in one_line(done.stderr)


def test_output_before_the_answer(standin, script):
    python = script(f"printf '\\377\\n'; exec {sys.executable} \"$@\"")
    assert standin.call("list", "--python", f"test={python}", own_python=False).returncode == 0


def test_file_that_is_no_program(standin, tmp_path):
    (tmp_path / "python").write_text("")
    done = standin.call("list", "--python", f"test={tmp_path}/python", own_python=False)
    assert done.returncode == 2 and "does not start as Python does: " in one_line(done.stderr)
    assert "Permission denied" in done.stderr


@fault("a given interpreter never answers", "`--python` with a script that sleeps; the limit of 60 s set to 1")
def test_no_answer(script, monkeypatch):
    monkeypatch.setattr(kernels, "ANSWER_S", 1)
    with pytest.raises(RosettaError, match="--python all: .*python gave no answer within 1 s: name another") as told:
        kernels.chosen([f"all={script(HANGS)}"], [])
    assert one_line(str(told.value)) and not sleepers()
    return str(told.value), "everything; nothing was started"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_no_answer_ends_with_the_runner(standin, script, name):
    command = standin.command("list", "--python", f"test={script(HANGS)}", own_python=False)
    runner = subprocess.Popen(command, cwd=standin.root)
    while not sleepers():
        time.sleep(0.05)
        assert runner.poll() is None
    runner.send_signal(getattr(signal, name))
    assert runner.wait(10) and gone()


def test_what_an_interpreter_leaves_is_ended(script):
    done = interpreters.ask(script("sleep 98765 & echo 3.99"), "", timeout_s=30)
    assert done.stdout == "3.99\n" and not sleepers()
