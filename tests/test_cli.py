"""The command line: names, bad input, data that is not there."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.standin import ROOT, one_line


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("run", "goood"), "unknown framework goood; did you mean good?"),
        (("run", "good[slwo]"), "unknown variant good[slwo]; did you mean good[slow]?"),
        (("run", "good", "--preset", "quikc"), "unknown preset quikc; did you mean quick?"),
        (("run", "--task", "mnist"), "unknown task mnist; there are: cifar10_cnn"),
        (("run", "good", "--train-size", "50001"), "N_TRAIN is 50001, but there are only 50000 images"),
        (("run", "good", "--python", "tset=/bin/sh"), "unknown environment tset; did you mean test?"),
        (("run", "good", "--python", "test=/nowhere/python"), "--python test: there is no /nowhere/python"),
        (("run", "good", "--python", "test"), "--python takes ENVIRONMENT=PATH or all=PATH, not test"),
    ],
)
def test_wrong_name_is_one_line(standin, arguments, message):
    done = standin.call(*arguments, own_python=False)
    assert done.returncode == 2
    assert one_line(done.stderr) == f"run_all.py: {message}"


def test_interpreter_without_ipykernel(standin, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = standin.call("run", "good", "--python", f"test={bare}/bin/python", own_python=False)
    assert done.returncode == 2
    assert "has no ipykernel: install it there" in one_line(done.stderr)


def test_python_without_the_runners_packages(tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = subprocess.run([str(bare / "bin" / "python"), "run_all.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "start it as: python3 -m pip install uv && python3 -m uv run run_all.py" in one_line(done.stderr)


def test_data_folder_without_the_data(standin, tmp_path):
    done = standin.call("run", "good", "--data-dir", str(tmp_path))
    assert done.returncode == 2
    assert str(tmp_path) in one_line(done.stderr)


def test_catalog_names_a_missing_notebook(standin):
    (standin.root / "notebooks" / "cifar10_cnn" / "raises.ipynb").unlink()
    done = standin.call("list")
    assert done.returncode == 2
    assert (
        one_line(done.stderr)
        == "run_all.py: catalog.toml: raises names the notebook cifar10_cnn/raises.ipynb, which is not there"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("schema = 1\n[tasks", "catalog.toml is not valid TOML"),
        ("schema = 1\n[tasks]\n[frameworks.x]\ntitel = 'X'\n", "catalog.toml: frameworks.x.title: Field required"),
    ],
)
def test_broken_catalog(standin, text, message):
    (standin.root / "catalog.toml").write_text(text)
    done = standin.call("list")
    assert done.returncode == 2 and message in one_line(done.stderr)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 99}', '{"schema": 1, "task": 7}'])
def test_file_that_is_no_record(standin, text):
    file = standin.column() / "good.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    done = standin.call("report", "--out", str(standin.out), own_python=False)
    assert done.returncode == 2
    assert "good.json" in one_line(done.stderr)
    assert file.read_text() == text


def test_list_and_plan(standin):
    listed = standin.call("list")
    assert listed.returncode == 0 and "good[slow]" in listed.stdout
    planned = standin.run("good")
    assert "good                 smoke  1 x 640 synthetic images, about 1 s" in planned.stdout


def test_a_bare_name_is_the_plain_row_and_a_star_is_all(standin):
    from rosetta import catalog

    known = catalog.load()
    assert [row.name for row in known.select("cifar10_cnn", ["pytorch"])] == ["pytorch"]
    assert [row.name for row in known.select("cifar10_cnn", ["pytorch[*]"])] == [
        "pytorch",
        "pytorch[compiled]",
        "pytorch[torch1]",
    ]
    assert [row.name for row in known.select("cifar10_cnn", ["keras"])] == [
        "keras[tensorflow]",
        "keras[jax]",
        "keras[torch]",
    ]
    assert len(known.select("cifar10_cnn", [])) == 25


def test_runner_imports_no_framework_and_names_no_task():
    text = "\n".join(file.read_text() for file in (ROOT / "rosetta").glob("*.py"))
    assert "cifar10_cnn" not in text
    code = "import sys, rosetta.commands, rosetta.doctor; print([m for m in ('torch','tensorflow','jax','keras','mxnet') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_doctor_tells_what_is_there(standin, tmp_path):
    done = standin.call("doctor", ROSETTA_DATA=str(tmp_path))
    assert done.returncode == 1
    assert (
        "environment test" in done.stdout
        and "GPU" in done.stdout
        and str(tmp_path.name) in done.stdout.replace("\n", "")
    )


def test_a_terminal_sees_a_live_table(standin):
    """Under ``script``, which gives the runner a terminal."""
    if shutil.which("script") is None:
        pytest.fail("the program script (util-linux) is needed")
    command = " ".join(standin.command("run", "good", "--synthetic", "--preset", "smoke", "--out", str(standin.out)))
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        cwd=standin.root,
        env=standin.variables(TERM="xterm"),
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0
    assert "elapsed" in done.stdout and "50.00 %" in done.stdout
    assert os.linesep + "[1/1]" not in done.stdout
