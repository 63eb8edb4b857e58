"""``run_all.py verify`` and ``crossload`` for real: every row passes all levels, and trained weights travel."""

import os
import subprocess
import sys

import pytest

from rosetta import catalog
from rosetta.paths import ROOT
from rosetta.verify import conformance, cross, levels

KNOWN = catalog.load()
ROWS = KNOWN.rows("cifar10_cnn")
TRAVELLERS = ("pytorch", "lasagne", "tensorflow1")  # OIHW, mirrored, HWIO; three environments


def call(out, *arguments) -> subprocess.CompletedProcess:
    data = [] if os.environ.get("ROSETTA_DATA") else ["--synthetic"]
    command = [sys.executable, "run_all.py", *arguments, "--out", str(out), *data]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1700)


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    """One run for all rows: (its exit code and output, what it found by row)."""
    out = tmp_path_factory.mktemp("verify")
    done = call(out, "verify")
    return done, {found.name: found for found in conformance.read(out).rows}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_is_the_same_network(verified, missing, row):
    done, found = verified
    assert row.name in found, done.stderr
    one = found[row.name]
    if one.skipped:
        missing(one.skipped)
    assert one.synthetic == (not os.environ.get("ROSETTA_DATA"))
    assert [finding.level for finding in one.findings] == list(levels.LEVELS)
    assert one.passed, [finding.reason for finding in one.findings if not finding.passed]


def test_verify_says_so(verified):
    done, found = verified
    assert done.returncode == (0 if all(one.passed or one.skipped for one in found.values()) else 1)
    assert f"of {len(ROWS)} rows pass all levels" in done.stdout


@pytest.mark.timeout(900)
def test_weights_travel(tmp_path, missing):
    done = call(tmp_path, "crossload", *TRAVELLERS, "--train-size", "640", "--test-size", "500")
    (matrix,) = cross.read(tmp_path).matrices
    if any("skipped" in error for error in matrix.errors):
        missing("; ".join(matrix.errors))
    assert done.returncode == 0, done.stdout
    assert all(matrix.spread(i) <= cross.ALLOWED for i in range(len(TRAVELLERS)))
    assert len({hits[0] for hits in matrix.hits}) > 1, "different trainings classify differently"
