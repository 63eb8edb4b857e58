"""``doctor --check``: one convolution in every environment that fits."""

import json
import re
import subprocess
import sys

import pytest

from tests.standin import ROOT

CONVOLUTION = "# %% after setup\nfrom common.reference import layers\ny = layers.conv(x, w, numpy.zeros(64)) * FACTOR\n"
TELL = "tell(y, 'gpu' if os.environ['CUDA_VISIBLE_DEVICES'] != '-1' else 'cpu')\n"


@pytest.fixture
def check(standin):
    """Calls ``doctor --check`` where ``good`` has this program."""

    def call(program, *arguments, **variables):
        standin.catalog(standin.entry("good"))
        folder = standin.root / "programs" / "check"
        folder.mkdir(parents=True, exist_ok=True)
        if program:
            (folder / "good.py").write_text(program)
        return standin.call("doctor", "--check", *arguments, **variables)

    return call


def test_ok_on_a_cpu(check):
    done = check(CONVOLUTION.replace("FACTOR", "1") + TELL)
    assert done.returncode == 0, done.stdout
    assert re.search(r"good +ok +cpu, off by \d+e-\d+, \d+ s", done.stdout)


@pytest.mark.parametrize(
    "program, said",
    [
        (
            CONVOLUTION.replace("FACTOR", "1.0003") + TELL,
            "not FP32: off by more than 5e-05 of the largest value, as with TF32",
        ),
        (CONVOLUTION.replace("FACTOR", "numpy.inf") + TELL, "the result is not finite"),
        ("# %% after setup\nraise OSError('no kernel image is available')\n", "no kernel image is available"),
        ("# %% after setup\npass\n", "its script ended without an answer"),
    ],
)
def test_what_fails(check, program, said):
    done = check(program)
    assert done.returncode == 1 and re.search(rf"good +failed +.*{said}", done.stdout), done.stdout


def test_a_framework_without_a_program(check):
    assert check(None).returncode == 0
    done = check(None, "good")
    assert done.returncode == 1 and "not written: there is no programs/check/good.py" in done.stdout, "it was named"


def test_on_a_gpu_that_is_not_used(check, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys; sys.path.append({str(ROOT)!r})\nfrom tests.fake_nvml import play; play('H200', 'V100')\n"
    )
    box = {"PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1", "ROSETTA_MACHINE": ""}
    good = CONVOLUTION.replace("FACTOR", "1")
    done = check(good + TELL, **box)
    assert done.returncode == 0 and re.search(r"good +ok +gpu, off by \d+e-\d+, \d+\.\d GiB", done.stdout), done.stdout
    assert done.stdout.count(" ok ") == 2 and "Tesla V100-SXM2-16GB" in done.stdout, "each model is tried"
    done = check(good + "tell(y, 'cpu')\n", **box)
    assert done.returncode == 1 and "computed on the CPU: its device is cpu" in done.stdout


def test_rows_go_with_the_check(standin):
    done = standin.call("doctor", "good")
    assert done.returncode == 2 and "doctor looks at the whole machine" in done.stderr


@pytest.mark.rows
@pytest.mark.timeout(1800)
def test_all_environments_on_this_cpu(missing):
    done = subprocess.run(
        [sys.executable, "run_all.py", "doctor", "--check", "--gpus", "none"], cwd=ROOT, capture_output=True, text=True
    )
    skipped = re.findall(r"^  (\S+) +skipped +(?!not written)(.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and " failed " not in done.stdout, done.stdout + done.stderr
    if skipped:
        missing(json.dumps(skipped))
    written = list((ROOT / "programs" / "check").glob("*.py"))
    assert done.stdout.count(" ok ") >= len(written) > 0
