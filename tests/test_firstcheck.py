"""``doctor --check``: one convolution in every environment that fits."""

import io
import json
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from types import SimpleNamespace

import pytest

from rosetta import doctor
from rosetta.errors import RosettaError
from rosetta.run import scripts
from rosetta.run.devices import Slot
from tests.standin import ROOT

DEVICE = "'gpu' if os.environ['CUDA_VISIBLE_DEVICES'] != '-1' else 'cpu'"


def convolution(factor: str = "1", device: str = DEVICE) -> str:
    """A program that tells a convolution, multiplied by ``factor``."""
    result = f"layers.conv(x, w, numpy.zeros(64)) * {factor}"
    return f"# %% after setup\nfrom common.reference import layers\ntell({result}, {device})\n"


@pytest.fixture
def check(inside, monkeypatch):
    """Calls ``doctor --check`` in this process, its script too, where ``good`` has this program."""
    inside.catalog(inside.entry("good"))
    folder = inside.root / "programs" / "check"
    folder.mkdir(parents=True)

    def run(title, command, folder, variables, timeout_s):
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
            patch.chdir(folder)
            patch.setattr(sys, "path", [*sys.path])
            for name, value in variables.items():
                patch.setenv(name, value)
            try:
                runpy.run_path(command[1])
            except OSError as error:
                raise RosettaError(f"{title} failed: {error}") from None
        return said.getvalue()

    def call(program, *arguments):
        if program:
            (folder / "good.py").write_text(program)
        return inside.call("doctor", "--check", *arguments)

    monkeypatch.setattr(scripts, "run", run)
    return call


@pytest.mark.parametrize(
    "program, status, said",
    [
        (convolution(), "ok", r"cpu, off by \d+e-\d+, \d+ s"),
        (convolution("1.0003"), "failed", "not FP32: off by more than 5e-05 of the largest value, as with TF32"),
        (convolution("numpy.inf"), "failed", "the result is not finite"),
        ("# %% after setup\nraise OSError('no kernel image is available')\n", "failed", "no kernel image is available"),
        ("# %% after setup\npass\n", "failed", "its script ended without an answer"),
    ],
)
def test_what_is_computed(check, program, status, said):
    done = check(program)
    assert done.returncode == (status == "failed")
    assert re.search(rf"good +{status} +.*{said}", done.stdout), done.stdout


def test_a_framework_without_a_program(check):
    assert check(None).returncode == 0
    done = check(None, "good")
    assert done.returncode == 1 and "not written: there is no programs/check/good.py" in done.stdout, "it was named"


CPU, GPU = Slot(None), Slot(None, gpus=("0",))  # the machine is played below
CUDA = {"CUDA": "13.0", "cudnn": "9.1"}


@pytest.mark.parametrize(
    "slot, facts, memory, status, text",
    [
        (GPU, {"device": "cuda:0", "cuda": CUDA}, 2**30, "ok", "cuda:0, off by 1e-06, 1.0 GiB, CUDA 13.0, cudnn 9.1, 0 s"),
        (GPU, {"device": "cuda:0"}, 2**30, "ok", "cuda:0, off by 1e-06, 1.0 GiB, no cuDNN, 0 s"),
        (CPU, {"off": None}, None, "failed", "the result is not finite; cpu, not finite, 0 s"),
        (GPU, {"cuda": CUDA}, None, "failed", "computed on the CPU: its device is cpu; cpu, off by 1e-06, CUDA 13.0, "
         "cudnn 9.1, 0 s"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_device(monkeypatch, slot, facts, memory, status, text):
    machine = SimpleNamespace(gpus=["a card"] if slot.on_gpu else [])
    monkeypatch.setattr(doctor, "time", SimpleNamespace(monotonic=lambda: 7.0))
    asked = []
    kernels = SimpleNamespace(get=lambda *each: asked.append(each[::3]), interpreter=lambda environment: "python")
    told = {"device": "cpu", "off": 1e-6, "cuda": {}} | facts
    monkeypatch.setattr(doctor, "_compute", lambda *_: (told, memory))
    row = SimpleNamespace(environment="test")
    assert doctor._check(row, None, replace(slot, machine=machine), kernels, print) == (status, text)
    assert asked == [(row, machine.gpus)]


def test_each_model_of_gpu_is_tried(standin, tmp_path):
    """In processes of their own, with the GPUs of a machine that is played."""
    standin.catalog(standin.entry("good"))
    program = standin.root / "programs" / "check" / "good.py"
    program.parent.mkdir(parents=True)
    program.write_text(convolution())
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys; sys.path.append({str(ROOT)!r})\nfrom tests.fake_nvml import play; play('H200', 'V100')\n"
    )
    box = {"PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1", "ROSETTA_MACHINE": ""}
    done = standin.call("doctor", "--check", **box)
    assert done.returncode == 0 and re.search(r"good +ok +gpu, off by \d+e-\d+, \d+\.\d GiB", done.stdout), done.stdout
    assert done.stdout.count(" ok ") == 2 and "Tesla V100-SXM2-16GB" in done.stdout


def test_rows_go_with_the_check(inside):
    done = inside.call("doctor", "good")
    assert done.returncode == 2 and "doctor looks at the whole machine" in done.stderr


@pytest.mark.rows
@pytest.mark.timeout(1800)
def test_all_environments_on_this_cpu(missing):
    command = [sys.executable, "run_all.py", "doctor", "--check", "--gpus", "none"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    skipped = re.findall(r"^  (\S+) +skipped +(?!not written)(.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and " failed " not in done.stdout, done.stdout + done.stderr
    if skipped:
        missing(json.dumps(skipped))
    written = list((ROOT / "programs" / "check").glob("*.py"))
    assert done.stdout.count(" ok ") >= len(written) > 0
