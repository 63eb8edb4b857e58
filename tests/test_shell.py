"""What the user's shell may say: of frameworks nothing, of folders where they lie, of the terminal what it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rosetta import catalog, shell
from rosetta.run.kernels import Kernels
from tests.standin import ROOT

COMPUTES = [
    "JAX_ENABLE_X64",
    "KERAS_HOME",
    "KERAS_BACKEND",
    "TF_XLA_FLAGS",
    "THEANO_FLAGS",
    "DEFAULT_FLOAT",
    "TORCHDYNAMO_DISABLE",
]
HARMLESS = [
    "TF_CPP_MIN_LOG_LEVEL",
    "PYTORCH_CUDA_ALLOC_CONF",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
]
LAUNCHED = [
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "WORLD_SIZE",
    "RANK",
    "MASTER_ADDR",
    "OMPI_COMM_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
]


@pytest.fixture
def environ(monkeypatch) -> dict[str, str]:
    """The variables of a shell that a test may spoil."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return os.environ


def test_what_changes_a_computation_is_left_out_and_said(environ, capsys):
    environ.update(dict.fromkeys([*COMPUTES, *HARMLESS], "1"))
    shell.settle()
    assert not environ.keys() & set(COMPUTES) and environ.keys() >= set(HARMLESS)
    (line,) = capsys.readouterr().err.splitlines()
    assert all(name in line for name in COMPUTES) and not any(name in line for name in HARMLESS)


def test_launchers_are_left_out_without_a_word(environ, capsys):
    environ.update(dict.fromkeys([*LAUNCHED, "PYTHONSAFEPATH", "MPLBACKEND"], "1"))
    shell.settle()
    assert not environ.keys() & {*LAUNCHED, "PYTHONSAFEPATH", "MPLBACKEND"}
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    "name, told, left",
    [
        ("ROSETTA_DATA", "data", "{shell}/data"),  # of the folder of the shell
        ("XDG_CACHE_HOME", "data", "{shell}/data"),
        ("ROSETTA_DATA", "synthetic", "synthetic"),
        ("ROSETTA_DATA", "", ""),
        ("COLUMNS", "0", None),  # no terminal
        ("COLUMNS", "", None),
        ("COLUMNS", "wide", None),
        ("COLUMNS", "-1", None),
        ("COLUMNS", "100", "100"),
    ],
)
def test_what_becomes_of_a_variable(environ, tmp_path, monkeypatch, name, told, left):
    monkeypatch.chdir(tmp_path)
    environ[name] = told
    shell.settle()
    assert environ.get(name) == (left and left.format(shell=tmp_path))


def test_the_checkouts_common_comes_first(environ, tmp_path):
    """With an interpreter of the user's, too, whose shell knows another package of that name."""
    environ["PYTHONPATH"] = str(tmp_path)
    row = catalog.load().rows()[0].model_copy(update={"imports": ("numpy",)})
    kernel = Kernels({"all": Path(sys.executable)}).get(row, tmp_path / "log")
    assert kernel.variables["PYTHONPATH"] == os.pathsep.join([str(ROOT), str(tmp_path)])


def test_the_runner_starts_whatever_the_shell_says():
    variables = {"PYTHONSAFEPATH": "1", "COLUMNS": "0", "MPLBACKEND": "bogus"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "run_all.py"), "list"], env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0 and "pytorch" in done.stdout, done.stderr


def test_an_argument_that_is_no_text_is_one_line():
    command = [sys.executable, str(ROOT / "run_all.py"), "list", "--out", b"caf\xe9"]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"no text in UTF-8" in done.stderr
