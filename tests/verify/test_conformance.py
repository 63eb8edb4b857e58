"""``run_all.py verify`` and ``crossload`` for real: every row passes all levels of its kind, and trained weights travel.

Rows that are as they were when the committed report was made are not verified again, but for some drawn at random; with ``--fresh`` all are.
"""

import os
import shutil
import subprocess
import sys

import pytest

from rosetta import catalog
from rosetta.paths import RESULTS, ROOT
from rosetta.verify import conformance
from rosetta.verify.conformance import PROOFS

KNOWN = catalog.load()
REAL = bool(os.environ.get("ROSETTA_DATA"))
DRAWN = "3"
TRAVELLERS = ("pytorch", "lasagne", "tensorflow1")  # OIHW, mirrored, HWIO; three environments

pytestmark = pytest.mark.rows


def call(out, *arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "run_all.py", *arguments, "--out", str(out), *([] if REAL else ["--synthetic"])]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3500)


@pytest.fixture(scope="module")
def verified(tmp_path_factory, pytestconfig):
    """One run for all tasks: (its exit code and output, what is known of each row then)."""
    out = tmp_path_factory.mktemp("verify")
    shutil.copytree(RESULTS / "conformance", out / "conformance")
    done = call(out, "verify", *(["--all"] if pytestconfig.getoption("--fresh") else ["--drawn", DRAWN]))
    return done, {line.full_name: line for key in KNOWN.tasks for line in conformance.read(out, key).rows}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("row", KNOWN.rows(), ids=lambda row: row.full_name)
def test_row_is_the_same_network(verified, missing, row):
    done, lines = verified
    assert row.full_name in lines, done.stderr
    line = lines[row.full_name]
    if line.skipped:
        missing(line.skipped)
    assert line.synthetic != REAL
    assert {finding.level for finding in line.findings} <= set(PROOFS[KNOWN.kind(row).name].LEVELS)
    assert line.passed, [finding.reason for finding in line.findings if not finding.passed]


def test_verify_says_so(verified):
    done, lines = verified
    print(done.stdout)
    assert done.returncode == (0 if all(line.passed or line.skipped for line in lines.values()) else 1)
    assert f"of {len(KNOWN.rows())} rows pass all levels" in done.stdout


@pytest.mark.timeout(900)
def test_weights_travel(tmp_path, missing):
    done = call(
        tmp_path, "crossload", *TRAVELLERS, "--task", "cifar10_cnn", "--train-size", "640", "--test-size", "500"
    )
    matrix = conformance.read(tmp_path, "cifar10_cnn").matrix
    if any("skipped" in error for error in matrix.errors):
        missing("; ".join(matrix.errors))
    assert done.returncode == 0, done.stdout
    assert matrix.others == [[0] * len(TRAVELLERS)] * len(TRAVELLERS)
    assert len({hits[0] for hits in matrix.hits}) > 1, "different trainings classify differently"
