"""A short soak, so that the long one stays alive: ``python -m tests.soak --minutes 60``."""

import socket
import subprocess
import sys

import pytest

from rosetta import lock
from tests import soak
from tests.standin import ROOT
from tests.test_faults import _can_mount


def test_what_is_left_is_seen(tmp_path, record):
    temp, root, out = tmp_path / "tmp", tmp_path / "checkout", tmp_path / "out"
    column, batch = out / "machine" / "task" / "smoke", out / ".batches" / "1"
    for folder in (temp, root, column, batch / "rosetta-x"):
        folder.mkdir(parents=True)
    assert len(soak.wrong_records(out)) == len(soak.RUNS)
    for file in (temp / "connection.json", column / ".good.json.tmp", column / "good.ipynb", root / lock.LOCK):
        file.touch()
    held, sleeper = lock.take(batch / "lock"), subprocess.Popen(["sleep", "60"], cwd=root)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s"))
        seen = " ".join(soak.left(tmp_path, temp, root, [out]))
    sleeper.kill()
    sleeper.wait()
    held.release()
    files = ("rosetta-x", "connection.json", ".tmp", "good.ipynb")
    assert all(what in seen for what in ("process psutil", "/s ", "lock held: ", "lock: ", *files)), seen


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="its processes are Linux'")
def test_soak(tmp_path, missing):
    if not _can_mount():
        missing("a soak needs a small file system that can be mounted (unshare -rm, tmpfs)")
    command = [sys.executable, "-m", "tests.soak", "--seed", "5", "--minutes", "1", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
