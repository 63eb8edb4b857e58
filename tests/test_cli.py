"""The command line: names, bad input, data that is not there, what is told before a batch."""

import re
import shutil
import subprocess
import sys

import psutil
import pytest
from filelock import FileLock
from uv import find_uv_bin

from rosetta import catalog, cli, plan
from rosetta.announcement import announced
from rosetta.run import devices, machine
from rosetta.run.kernels import Kernels
from tests.standin import ROOT, TASK, one_line

KNOWN = catalog.load()
# Commands that measure nothing; every other command needs the checkout for itself
BESIDE_A_RUNNER = {"test", "list", "doctor", "report", "lab", "site", "compare", "watch", "data"}


def commands(group=None, *path: str) -> list[tuple[str, ...]]:
    """Each command of the command line, with a value for each argument that it requires."""
    found = []
    for name, command in (group or cli.app).commands.items():
        if hasattr(command, "commands"):
            found += commands(command, *path, name)
        else:
            required = [option for option in command.params if option.required]
            values = [[option.opts[0], "1"] if option.param_type_name == "option" else ["1"] for option in required]
            found.append((*path, name, *sum(values, [])))
    return found


def test_version_names_the_commit(monkeypatch, capsys):
    monkeypatch.setattr("rosetta.run.execute.commit", lambda: "1a2b3c4")
    cli.app.callback(version=True)
    assert capsys.readouterr().out == "deep-learning-rosetta-stone 0.1.0 1a2b3c4\n"


def test_help(inside):
    for arguments in (["-h"], ["--help"], ["run", "-h"]):
        done = inside.call(*arguments, own_python=False)
        assert done.returncode == 0 and "Usage" in done.stdout and not done.stderr, arguments


def test_version_and_nothing_else_of_uv():
    command = [find_uv_bin(), "run", "run_all.py", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert one_line(done.stdout).startswith("deep-learning-rosetta-stone 0.1.0")
    assert "ytecode" not in done.stderr, "uv tells on every command what it has compiled"


WRONG = [
    (("goood",), "unknown framework goood; did you mean good?"),
    (("good[slwo]",), "unknown variant good[slwo]; did you mean good[slow]?"),
    (("good", "--preset", "quikc"), "unknown preset quikc; did you mean quick?"),
    (("--task", "mnist"), f"unknown task mnist; there are: {TASK}"),
    (("mnist/good",), f"unknown task mnist; there are: {TASK}"),
    (("good", "--train-size", "50001"), f"{TASK}: N_TRAIN is 50001, but there are only 50000"),
    (("good", "--set", "MOMENTUN=0.5"), f"unknown parameter in {TASK}: MOMENTUN; did you mean MOMENTUM?"),
    (("good", "--set", "LR=fast"), f"{TASK}: LR is 0.01 by itself; it cannot be 'fast'"),
    (("good", "--set", "BATCHSIZE=0.5"), f"{TASK}: BATCHSIZE is 64 by itself; it cannot be 0.5"),
    (("good", "--set", "LR"), "--set takes NAME=VALUE, not LR"),
    (("good", "--python", "tset=/bin/sh"), "unknown environment tset; did you mean test?"),
    (("good", "--python", "test=/nowhere/python"), "--python test: there is no /nowhere/python"),
    (("good", "--python", "test"), "--python takes ENVIRONMENT=PATH or all=PATH, not test"),
    (("all",), "all is the name of no row: leave out names, and all rows are taken"),
    ((TASK,), f"{TASK} is a task: say --task {TASK}, or {TASK}/good"),
    (("--task", TASK, "--all-tasks"), "--all-tasks names every task: leave out --task"),
    (("--data", "fake"), "--data takes real, not fake; --data-dir names a folder"),
    (("--data", "real", "--synthetic"), "--data real and synthetic data (--synthetic, or ROSETTA_DATA) contradict"),
    (("--preset", "epoch"), f"{TASK} has no preset epoch: it has full, quick, smoke"),
    (("--rows",), "--rows goes with --plan"),
]


def test_what_cannot_be_is_one_line_and_leaves_nothing(inside):
    for arguments, message in WRONG:
        done = inside.call("run", *arguments, "--out", str(inside.out), own_python=False)
        assert done.returncode == 2 and done.stdout == "" and not inside.out.exists(), arguments
        assert one_line(done.stderr).startswith(f"run_all.py: {message}")


def test_data_folder_without_the_data_is_told_before_anything_else(inside, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    done = inside.call("run", "good", "--data-dir", str(empty), "--out", str(inside.out))
    assert done.returncode == 2 and done.stdout == "" and not inside.out.exists()
    assert one_line(done.stderr).startswith("run_all.py: --data-dir: ") and str(empty) in done.stderr
    assert "ROSETTA_DATA" not in done.stderr


def test_catalog_and_notebooks_name_the_same_rows(inside):
    stray = shutil.copy(inside.path("good"), inside.path("gooood"))
    done = inside.call("list")
    message = f"run_all.py: unknown framework of notebooks/{TASK}/gooood.ipynb: gooood; did you mean good?"
    assert done.returncode == 2 and one_line(done.stderr) == message
    stray.unlink()
    inside.path("raises").unlink()
    done = inside.call("list")
    assert done.returncode == 2
    assert f"unknown row in notebooks/{TASK}/task.toml: raises[*]; " in one_line(done.stderr)


def test_list(inside):
    listed = inside.call("list")
    assert listed.stdout.splitlines()[0].split() == ["row", "environment", "state", "here", "released", "ended"]
    assert listed.returncode == 0 and f"good[slow]  test         given: {sys.executable}" in listed.stdout


def test_bare_command_says_first_where_results_go_and_how_much_it_is(inside, tmp_path):
    """It is stopped before the first run, for want of data."""
    for name, sizes in (("small", (0.5, 0.25)), ("large", (4, 1.5))):
        disk, download = sizes
        inside.environment(name, "3.11", "", disk_gb=disk, download_gb=download)
    inside.catalog(inside.entry("good", "small") + inside.entry("raises", "large"))
    nowhere = {"XDG_CACHE_HOME": str(tmp_path), "ROSETTA_DATA": "", "https_proxy": "http://127.0.0.1:9"}
    done = inside.call("run", "--data", "real", own_python=False, **nowhere)
    first, second, *_, less, last = done.stdout.splitlines()
    assert first == "results: ./runs/results.md, from the first run's end on"
    assert second == "2 runs, about 2:42 min (2:40 min to install 2 environments: 4.5 GB of disk, 1.8 GB to download)"
    assert "run_all.py run good raises" in less and "Ctrl-C" in last and "run_all.py resume" in last
    assert done.returncode == 2 and "--data-dir" in one_line(done.stderr)
    named = inside.call("run", "good", "--data", "real", own_python=False, **nowhere)
    assert "To run less" not in named.stdout and "to install the environment small: 0.5 GB" in named.stdout


def test_plan_is_shown_and_nothing_is_done(inside, tmp_path):
    arguments = "run", "--preset", "smoke", "--plan", "--out", str(inside.out)
    done = inside.call(*arguments, XDG_CACHE_HOME=str(tmp_path), ROSETTA_DATA="")
    assert done.returncode == 0 and not done.stderr and not inside.out.exists() and not list(tmp_path.rglob("*.bin"))
    assert "10 runs" not in done.stdout and "11 runs, about " in done.stdout and "would download" in done.stdout
    assert re.search(
        r"^  Stand-in +11 +\S+ \S+  smoke: 1 epoch of 640, batch 64, tested on 100$", done.stdout, re.MULTILINE
    )
    assert re.search(r"^  test +11 +\S+ \S+  ready$", done.stdout, re.MULTILINE) and "  good " not in done.stdout
    rows = inside.call(*arguments, "--rows", ROSETTA_DATA="synthetic")
    assert re.search(r"^  good +smoke  1 epoch of 640, .*, synthetic data, about 1 s$", rows.stdout, re.MULTILINE)


def lines(rows, preset: str) -> list[str]:
    plans = plan.make(KNOWN, rows, preset, {}, gpu=False, synthetic=True)
    slots, downloads = devices.timed(gpus="none", threads=1), ["data: one", "data: two"]
    return list(announced(KNOWN, plans, slots, Kernels(), ROOT / "runs", downloads, whole=True))


def test_plan_of_everything_fits_a_screen():
    assert len(lines(KNOWN.to_run([], every=True), "quick")) <= 27  # of 30: the command and the prompt are there, too


def test_rows_that_a_batch_leaves_out_are_of_its_tasks():
    (line,) = [line for line in lines(KNOWN.select(["pytorch"], "imdb_gru"), "smoke") if line.startswith("left out")]
    assert line.endswith(": pytorch[tf32], pytorch[bf16]")


@pytest.mark.parametrize(
    "names, options, tasks",
    [
        ([], {}, {"cifar10_cnn"}),
        (["pytorch", "flax"], {}, {"cifar10_cnn"}),
        (["pytorch", "imdb_gru/flax"], {}, {"cifar10_cnn", "imdb_gru"}),
        (["pytorch"], {"tasks": ["networks", "imdb_gru"]}, {"networks", "imdb_gru"}),
        ([], {"tasks": ["networks", "imdb_gru"]}, {"networks", "imdb_gru"}),
        (["pytorch"], {"every": True}, set(KNOWN.tasks)),
        ([], {"every": True}, set(KNOWN.tasks)),
    ],
)
def test_rows_are_of_the_main_task_unless_more_is_asked_for(names, options, tasks):
    rows = KNOWN.to_run(names, **options)
    assert {row.task for row in rows} == tasks and {row.framework for row in rows} >= {"pytorch"}
    if "cifar10_cnn" in tasks:
        assert rows[0].task == "cifar10_cnn"
    if "pytorch" in names:
        assert {row.name for row in rows} <= {"pytorch", "flax"}


@pytest.mark.parametrize("task", KNOWN.tasks)
def test_a_bare_name_is_the_plain_row_and_a_star_is_all(task):
    rows = KNOWN.rows(task)
    for framework in {row.framework for row in rows}:
        own = [row for row in rows if row.framework == framework]
        assert KNOWN.select([f"{framework}[*]"], task) == own
        assert KNOWN.select([framework], task) == ([row for row in own if row.variant is None] or own)
    assert KNOWN.select([], task) == rows == KNOWN.select([row.full_name for row in reversed(rows)])


def test_commands_that_run_or_measure_refuse_beside_a_runner(inside):
    with FileLock(inside.root / ".rosetta.lock", timeout=0):
        for arguments in (each for each in commands() if each[0] not in BESIDE_A_RUNNER):
            done = inside.call(*arguments, own_python=False)
            assert done.returncode == 2, arguments
            assert "another run_all.py is at work in this checkout" in one_line(done.stderr)


def test_pictures_are_written_or_a_line_says_why_not(inside, tmp_path):
    done = inside.call("data", "images", str(tmp_path / "new"), "--n", "2", "--synthetic", own_python=False)
    assert done.returncode == 0 and len(list((tmp_path / "new").glob("*.jpg"))) == 2, done.stderr
    assert f"2 pictures of SYNTHETIC data. A run takes them by --set IMAGES={tmp_path / 'new'}" in done.stdout
    again = inside.call("data", "images", str(tmp_path / "new"), "--n", "2", "--synthetic", own_python=False)
    assert again.returncode == 2 and "is not empty" in one_line(again.stderr)


def test_doctor_tells_what_is_there(inside, tmp_path):
    done = inside.call("doctor", ROSETTA_DATA=str(tmp_path))
    assert done.returncode == 1
    here = machine.describe()
    about = f"machine {here.cpu}, {here.cores} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB; {here.os}"
    said = " ".join(done.stdout.split())
    assert all(part in said for part in (" ".join(about.split()), "environment test", "GPU", tmp_path.name))
