"""The code is formatted and linted as pyproject.toml says."""

import subprocess
import sys

import pytest

from tests.standin import ROOT


@pytest.mark.parametrize("command", [("check",), ("format", "--check")], ids=" ".join)
def test_ruff(command):
    done = subprocess.run([sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
