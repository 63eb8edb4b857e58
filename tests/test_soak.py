"""A short soak, so that the long one stays alive: ``python -m tests.soak --minutes 60``."""

import shutil
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.soak_faults import KINDS, schedule
from tests.standin import ROOT
from tests.test_faults import _can_mount


def test_the_same_seed_draws_the_same_faults():
    faults = schedule(1, 3600)
    assert faults == schedule(1, 3600) != schedule(2, 3600)
    assert {fault.kind for fault in faults} == set(KINDS)
    assert all(0 < first.at_s < second.at_s < 3600 for first, second in pairwise(faults))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="its processes and its clock are Linux'")
def test_soak(tmp_path, missing):
    if not _can_mount() or shutil.which("gcc") is None:
        missing("a soak needs gcc, and a small file system that can be mounted (unshare -rm, tmpfs)")
    command = [sys.executable, "-m", "tests.soak", "--seed", "5", "--minutes", "1", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
