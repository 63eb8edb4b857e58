"""``run_all.py crossload`` with a folder of pictures: frameworks decode them themselves, and find the same nearest neighbours."""

import os
import subprocess
import sys

import pytest

from common.data import pictures
from rosetta.paths import ROOT
from rosetta.verify import conformance

TASK = "resnet50_features"
ROWS = (
    "pytorch",
    "lightning",
    "fastai",
    "flax",
    "equinox",
    "paddle",
    "mindspore",
    "caffe2",
)  # one network, five environments
PICTURES = 10


@pytest.mark.rows
@pytest.mark.timeout(900)
def test_ten_pictures_have_the_same_neighbours_in_eight_frameworks(tmp_path, missing):
    folder = tmp_path / "pictures"
    pictures.write(str(folder), PICTURES, synthetic=not os.environ.get("ROSETTA_DATA"))
    (folder / "broken.jpg").write_text("no picture")
    rows = [f"{TASK}/{row}" for row in ROWS]
    command = [sys.executable, "run_all.py", "crossload", *rows, "--set", f"IMAGES={folder}", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    (agreement,) = conformance.read(tmp_path, TASK).agreements
    if any("skipped" in error for error in agreement.errors):
        missing("; ".join(agreement.errors))
    assert done.returncode == 0, done.stdout + done.stderr
    assert agreement.inputs == PICTURES, "the broken one is left out"
    assert agreement.others == [[0] * len(ROWS)] * len(ROWS) and agreement.own == ["IMAGES"]
