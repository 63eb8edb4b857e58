"""Folders that several runners or users share, and a results folder that is lost on the way."""

import os

import pytest

from rosetta import lock
from rosetta.errors import RosettaError
from rosetta.paths import checkout
from tests.fault_table import fault
from tests.standin import StandIn, one_line
from tests.test_faults import PARAMETERS


def refused(held) -> str:
    """Why a lock cannot be had a second time."""
    with pytest.raises(RosettaError) as caught, held:
        pass
    return one_line(str(caught.value))


@pytest.mark.long
@fault("two checkouts write to one results folder", "`run_all.py run` with the same `--out` in both")
def test_two_checkouts_do_not_write_to_one_results_folder(tmp_path):
    first, second = StandIn(tmp_path / "checkout"), StandIn(tmp_path / "another")
    assert first.out == second.out
    runner = first.start("good[slow]")
    done = second.run("good")
    (left,) = first.out.glob(".batches/*/rosetta-*")
    runner.terminate()
    runner.communicate(timeout=30)
    assert done.returncode == 2 and left
    assert "another run_all.py is at work in the results folder" in one_line(done.stderr)
    assert not (first.out / lock.LOCK).exists()
    return done.stderr, "everything of the first"


def test_lock_tells_its_owner_and_leaves_nothing(tmp_path):
    out = tmp_path / "out"
    with lock.only_writer("sweep", out):
        assert f"(sweep, process {os.getpid()}, since " in refused(lock.only_writer("run", out))
        assert lock.is_held(out / lock.LOCK)
    assert not out.exists()
    out.mkdir()
    with lock.only_writer("run", out):
        (out / "results.md").touch()
    assert [file.name for file in out.iterdir()] == ["results.md"]


@fault("a symbolic link where the lock goes", "a link to a file of the user's in the results folder")
def test_file_of_a_lock_follows_no_link(tmp_path):
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.write_text("mine")
    out.mkdir()
    (out / lock.LOCK).symlink_to(victim)
    said = refused(lock.only_writer("run", out))
    assert "cannot write" in said and victim.read_text() == "mine"
    return said, "the file that it leads to; nothing was started"


def test_checkout_that_is_read_only_is_locked_in_a_folder_of_the_users_own(tmp_path, monkeypatch):
    own, shared = tmp_path / "own", tmp_path / "shared"
    own.mkdir(mode=0o700)
    shared.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own))
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with lock.only_runner("run"):
        assert "at work in this checkout (run, process" in refused(lock.only_runner("verify"))
        assert list(own.rglob(lock.LOCK)) and not list(shared.iterdir())
    monkeypatch.setattr(checkout, "root", tmp_path)
    with lock.only_runner("run"):
        pass


@fault("the results folder is lost in a batch", "a file stands in its place after the first run")
def test_results_folder_that_is_lost_in_the_middle_stops_no_row(inside):
    out = str(inside.out)
    lose = f"import os; os.rename({out!r}, {out!r} + '.lost'); open({out!r}, 'w')"
    inside.notebook("raises", [PARAMETERS, ("train", lose)])
    inside.catalog(inside.entry("raises") + inside.entry("good"))
    inside.rows({"raises[*]": "cost.start_s = 0", "good[*]": "cost.start_s = 1"})
    done = inside.run("raises", "good")
    assert done.returncode == 1 and not done.stderr, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("good: "))
    assert line.startswith("good: ok, but not kept: cannot write good.json: ")
    assert "1 of 2 runs ok" in done.stdout and "the table could not be renewed: cannot write" in done.stdout
    kept = "what was written before, where the folder is now; other runs go on"
    return line, kept


@fault("the results folder cannot be written", "a file in its place")
def test_results_folder_that_cannot_be_written_is_one_line(inside):
    inside.out.write_text("a file")
    done = inside.run("good")
    assert done.returncode == 2 and done.stdout == ""
    assert "cannot write" in one_line(done.stderr) and "--out names another folder" in done.stderr
    return done.stderr, "everything; nothing was started"
