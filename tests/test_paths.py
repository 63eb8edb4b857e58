"""Paths of this machine: none stands in what a run leaves, and none keeps a run from working."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from rosetta import files
from rosetta.paths import checkout, portable
from rosetta.run.execute import commit, make_portable
from tests.fault_table import fault, seen
from tests.standin import SETUP, StandIn, cells

# A user without a name: not in the system's list, and the files of this one are its own
NAMELESS = ["unshare", "--user", "--map-user=54321", "--map-group=54321"]


@pytest.mark.parametrize("home", ["/", "", "/home/bob", "/home/bob/"])
@pytest.mark.parametrize(
    "text, with_a_home",
    [
        ("https://example.org//a http://example.org/home/bob/x", None),
        ("/home/bob/x, /home/bob: '/home/bob'", "~/x, ~: '~'"),
        ("it is in /home/bob.", "it is in ~."),
        ("/home/bobby /home/bob-old /home/bob.txt /mnt/home/bob /mnt//home/bob", None),
        ("file:///home/bob/x PATH=/home/bob/bin", "file://~/x PATH=~/bin"),
        ("\x1b[0;32m/home/bob/x.py\x1b[39m:1", "\x1b[0;32m~/x.py\x1b[39m:1"),
    ],
)
def test_only_whole_folders_at_the_beginning_of_a_path_are_replaced(monkeypatch, home, text, with_a_home):
    monkeypatch.setenv("HOME", home)
    assert portable(text) == (text if home in ("/", "") or with_a_home is None else with_a_home)


def test_what_the_known_folders_become(monkeypatch, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "data")
    monkeypatch.setenv("HOME", f"{tmp_path}/home")
    monkeypatch.setenv("ROSETTA_DATA", f"{tmp_path}/link")
    monkeypatch.setenv("XDG_CACHE_HOME", f"{tmp_path}/cache")
    text = (
        f"{checkout.root}/a {tmp_path}/home/b {tmp_path}/link/c {tmp_path}/data/d {tmp_path}/cache/rosetta/e {tmp_path}"
    )
    assert portable(text) == f"./a ~/b $ROSETTA_DATA/c $ROSETTA_DATA/d $XDG_CACHE_HOME/rosetta/e {tmp_path}"
    monkeypatch.setenv("ROSETTA_DATA", "synthetic")
    assert portable("synthetic data, ./synthetic") == "synthetic data, ./synthetic"


def test_notebook_is_read_before_its_paths_are_replaced(tmp_path, monkeypatch):
    """In JSON, the ``n`` of an escaped line end stands before a path."""
    monkeypatch.setenv("HOME", "/home/bob")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=[])])
    notebook.cells[0].outputs = [nbformat.v4.new_output("error", ename="E", evalue="no\n/home/bob/x\t/home/bob/y")]
    nbformat.write(notebook, tmp_path / "executed.ipynb")
    make_portable(tmp_path / "executed.ipynb")
    (cell,) = json.loads((tmp_path / "executed.ipynb").read_text())["cells"]
    assert cell["outputs"][0]["evalue"] == "no\n~/x\t~/y"


@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o027, 0o640), (0o002, 0o664)])
def test_result_files_have_the_mode_that_the_user_wants(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        files.write_atomically(tmp_path / "results.md", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "results.md").stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [tmp_path / "results.md"]


def git(folder: Path, *arguments: str) -> str:
    name = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(["git", "-C", str(folder), *name, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_copy_inside_another_repository_has_no_commit(tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    copy.mkdir()
    monkeypatch.setattr(checkout, "root", copy)
    for folder, own in ((tmp_path, False), (copy, True)):
        git(folder, "init", "--quiet")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")
        assert commit().id == (git(folder, "rev-parse", "HEAD") if own else None)


def test_damaged_data_is_told_without_the_folder_of_the_data(inside, tmp_path):
    folder = tmp_path / "elsewhere" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for name in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
        with (folder / name).open("wb") as file:  # of the right size, or no run would begin
            file.write(b"\x0a")
            file.truncate(30730000)
    loading = "x_train, y_train, x_test, y_test = cifar10.load('NCHW', N_TRAIN, N_TEST)"
    inside.notebook("good", [(role, loading if role == "data" else source) for role, source in cells("good")])
    done = inside.run("good", options=("--data-dir", str(folder.parent)), ROSETTA_DATA="")
    assert done.returncode == 1, done.stderr
    error = inside.record("good.failed", "smoke")["error"]
    assert error.startswith("DataError: $ROSETTA_DATA/cifar-10-batches-bin/data_batch_1.bin holds the label 10"), error
    left = [file for file in inside.out.rglob("*") if file.suffix in (".json", ".ipynb", ".md")]
    named = [file for file in left if str(folder.parent) in file.read_text()]
    assert left and [file.name for file in named] == ["order.json"], "what resume needs, and only that"


@fault("odd characters in a path", "a checkout and results below `a:b {x} %d é`")
def test_odd_characters_in_the_paths_of_checkout_and_results(tmp_path):
    (tmp_path / "a:b {x} %d é").mkdir()
    standin = StandIn(tmp_path / "a:b {x} %d é" / "checkout")
    done = standin.run("good")
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    assert standin.record("good")["status"] == "ok"
    return "nothing of it", "everything"


def test_user_without_a_name_and_a_home(standin, missing):
    """As in a container that was given any number for its user."""
    if shutil.which("unshare") is None or subprocess.run([*NAMELESS, "true"], capture_output=True).returncode:
        missing("no user without a name can be made here (unshare --user)")
    own = ("HOME", "USER", "LOGNAME", "LNAME", "USERNAME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
    env = {name: value for name, value in standin.variables().items() if name not in own}
    ask = "import getpass, os; print('user', getpass.getuser(), os.path.expanduser('~'))"

    def said(command: list[str], **home: str) -> str:
        done = subprocess.run([*NAMELESS, *command], cwd=standin.root, env=env | home, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
        return done.stdout

    for home in ("", "/"):
        program = f"from rosetta import shell; shell.settle(); {ask}"
        assert said([sys.executable, "-c", program], HOME=home) == "user 54321 /\n"
    standin.notebook("good", [(role, source + f"\n{ask}" * (source == SETUP)) for role, source in cells("good")])
    said(standin.command("run", "good", "--synthetic", "--preset", "smoke", "--out", str(standin.out)))
    assert "user 54321 /" in (standin.column() / "good.log").read_text()
    title, how = "a user without a name and a home", "a user namespace, `HOME` unset, empty or `/`"
    seen(title, how, "nothing of it", "everything")
