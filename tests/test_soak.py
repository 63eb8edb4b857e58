"""A short soak, so that the long one stays alive: ``python -m tests.soak --minutes 60``."""

import shutil
import socket
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from rosetta import lock, records
from tests.soak_end import end_state, sound, unexplained
from tests.soak_faults import KINDS, Fault, Hit, Met, schedule
from tests.standin import ROOT
from tests.test_faults import _can_mount


def test_the_same_seed_draws_the_same_faults():
    faults = schedule(1, 3600)
    assert faults == schedule(1, 3600) != schedule(2, 3600)
    assert {fault.kind for fault in faults} == set(KINDS)
    assert all(0 < first.at_s < second.at_s < 3600 for first, second in pairwise(faults))


def test_what_is_left_is_seen(tmp_path):
    temp, root, out = tmp_path / "tmp", tmp_path / "checkout", tmp_path / "out"
    column = out / "machine" / "task" / "smoke"
    for folder in (temp, root, column, out / ".batches" / "1" / "rosetta-x"):
        folder.mkdir(parents=True)

    def seen() -> dict[str, str]:
        return {what: found for what, found, good in end_state(tmp_path, temp, root, [out], []) if not good}

    assert list(seen()) == ["temporary files left"]
    for file in (temp / "connection.json", column / ".good.json.tmp", column / "good.ipynb"):
        file.touch()
    held = lock.take(root / lock.LOCK)
    sleeper = subprocess.Popen(["sleep", "60"], cwd=root)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s"))
        left = seen()
    sleeper.kill()
    sleeper.wait()
    held.release()
    assert {what.partition(" left")[0] for what in left} == {
        "processes",
        "sockets",
        "locks held",
        "lock files",
        "temporary files",
        "files beside the records that are of none",
    }
    assert left["temporary files left"].count(";") == 2 and "sleep" in left["processes left"]


def test_a_failure_is_explained_by_a_fault_of_its_own_run_alone(tmp_path, record):
    failed = record.model_copy(update={"status": "crashed", "error": "the kernel died: SIGSEGV", "framework": "good"})
    records.write(failed, tmp_path)
    now, run, hits = time.time() - 1, ("good", failed.seed or 0), (Hit("kernel", 0, "SIGSEGV"),)
    own, others = (Met(Fault(0, "signal", hits), met, now) for met in (run, ("good", 99)))
    full, clock = (Met(Fault(0, kind), None, now - 1, now) for kind in ("disk", "clock"))
    assert unexplained(tmp_path, 0, [others, clock]) == [f"{run}: crashed: the kernel died: SIGSEGV"]
    assert unexplained(tmp_path, 0, [own]) == unexplained(tmp_path, 0, [full]) == []
    assert unexplained(tmp_path, now + 60, []) == [], "of an earlier runner"


def test_seconds_of_a_clock_that_was_set_are_not_sound(record):
    assert sound(record)
    for name, value in {"train_s": 86_400.0, "start_s": -3600.0}.items():
        metrics = record.metrics.model_copy(update={name: value})
        assert not sound(record.model_copy(update={"metrics": metrics}))
    assert not sound(record.model_copy(update={"status": "failed", "error": None}))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="its processes and its clock are Linux'")
def test_soak(tmp_path, missing):
    if not _can_mount() or shutil.which("gcc") is None:
        missing("a soak needs gcc, and a small file system that can be mounted (unshare -rm, tmpfs)")
    command = [sys.executable, "-m", "tests.soak", "--seed", "5", "--minutes", "1", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
