"""Environments: made from hashed pins on first use, made again when they change, reused otherwise; interpreters of the user's."""

import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from rosetta.errors import RosettaError
from rosetta.run import environments, kernels, processes
from rosetta.run.processes import COOKIE
from tests.fault_table import fault, seen
from tests.standin import one_line

# A wheel of a few kilobytes; the hashes are those of its release files
PACKAGE = "six==1.17.0"
HASHES = (
    "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274",
    "ff70335d468e7eb6ec65b95b99d3a2836546063f63acc5171de367e834932a81",
)
SLEEP = f"98765.{os.getpid()}"  # seconds of what must be ended: no other process sleeps as long
WRONG = f"{PACKAGE} --hash=sha256:{'0' * 64}\n"
LOCK = f"{PACKAGE} \\\n    " + " \\\n    ".join(f"--hash=sha256:{digest}" for digest in HASHES) + "\n"


@pytest.fixture
def executable(tmp_path):
    """Makes a program of a shell's commands: (path below the test's folder, commands) -> path."""

    def make(path, code):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{code}\n" if code else "")
        file.chmod(0o755)
        return file

    return make


@pytest.fixture
def environment(inside, monkeypatch):
    """Makes environments in the stand-in's folder: (lock, Python, recipe keys) -> Environment."""
    monkeypatch.setattr(environments, "ALWAYS", {})

    def make(lock=LOCK, python="3.11", **keys):
        inside.environment("tiny", python, PACKAGE + "\n", lock, **keys)
        return environments.load("tiny")

    return make


def test_made_once_and_again_when_pins_change(environment, tmp_path, monkeypatch):
    """What is being installed is told, and how long it takes; one that is made again is not ready meanwhile."""
    monkeypatch.setattr(environments, "TELL_S", 0.01)
    tiny, states, ready = environment(), [], []
    assert not tiny.is_ready()
    tiny.provision(tmp_path / "log", states.append)
    steps = [state for state in states if not state.endswith(" s")]
    assert steps == [f"installing tiny: {step}" for step in ("Python 3.11", "packages", "compiling")]
    assert re.fullmatch(r"installing tiny: Python 3\.11, \d+ s", states[1])
    assert tiny.is_ready() and list(tiny.folder.glob(".venv/lib/*/site-packages/six.py"))
    assert list(tiny.folder.glob(".venv/lib/*/site-packages/__pycache__/six.*.pyc")), "every run would compile it"
    stamp = tiny.stamp.stat().st_mtime_ns
    tiny.provision(tmp_path / "log")
    assert tiny.stamp.stat().st_mtime_ns == stamp
    changed = environment(lock="# a comment\n" + LOCK)
    assert not changed.is_ready()
    changed.provision(tmp_path / "log")
    assert changed.is_ready()
    changed.provision(tmp_path / "log", lambda _: ready.append(changed.is_ready()), again=True)
    assert ready and not any(ready) and changed.is_ready()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_installation_ends_with_the_runner(environment, inside, name):
    (environment().folder / "after.py").write_text(
        f"import subprocess, time; subprocess.Popen(['sleep', '{SLEEP}'], start_new_session=True); time.sleep(99)"
    )
    tiny = environment(post_install="after.py")
    code = "environments.load('tiny').provision(Path('log'), lambda state: print(state, flush=True))"
    runner = subprocess.Popen(
        [sys.executable, "-c", f"from pathlib import Path; from rosetta.run import environments; {code}"],
        cwd=inside.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert any("running after.py" in line for line in runner.stdout)
    while not sleepers():
        time.sleep(0.05)
        assert runner.poll() is None
    runner.send_signal(getattr(signal, name))
    assert runner.wait(20) and gone() and not tiny.is_ready()
    seen(
        "the runner is ended in an installation",
        "SIGINT, SIGTERM or SIGKILL while a script sleeps, beside a process of its own session",
        "nothing of the installer, which ends with the runner",
        "everything but the environment: the next run makes it anew",
    )


def sleepers() -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", SLEEP]]


def gone() -> bool:
    """Whether no sleeper is left, within seconds."""
    deadline = time.monotonic() + 10
    while sleepers() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not sleepers()


def test_what_an_earlier_installation_left_is_ended(environment, tmp_path):
    """Where even the process that watches the runner was killed."""
    tiny = environment()
    left = subprocess.Popen(["sleep", SLEEP], env=os.environ | {COOKIE: f"install {tiny.folder}"})
    tiny.provision(tmp_path / "log")
    left.wait(10)
    assert not sleepers()


def test_wrong_hash_is_refused(environment, inside, tmp_path):
    """Also of a program that is brought; a command tells it in a line, and a run as its record."""
    tiny = environment(lock=WRONG)
    with pytest.raises(RosettaError, match="environment tiny could not be made: .*(?i:hash)"):
        tiny.provision(tmp_path / "log")
    assert not tiny.is_ready()
    done = inside.call("env", "tiny", own_python=False)
    assert done.returncode == 1 and "environment tiny could not be made" in one_line(done.stderr)
    inside.catalog(inside.entry("good", environment="tiny"))
    done = inside.call("run", "--synthetic", "--preset", "smoke", "--out", str(inside.out), own_python=False)
    assert done.returncode == 1 and inside.record("good.failed")["status"] == "failed"
    (tiny.folder / "requirements.in").write_text("")
    tiny.recipe.brought.update({"no-such-compiler": PACKAGE})
    with pytest.raises(RosettaError, match="(?i)hash"):
        tiny.provision(tmp_path / "log")


@fault(
    "an environment was cut short",
    "no `rosetta.json`, `pyvenv.cfg` or `bin/python`, as an installation leaves it that was killed",
)
def test_cut_short_is_made_again(environment, tmp_path):
    """At any moment: uv writes pyvenv.cfg after the folder, the stamp is the last."""
    tiny = environment()
    tiny.provision(tmp_path / "log")
    for lost in ("rosetta.json", "pyvenv.cfg", "bin/python"):
        states = []
        (tiny.venv / lost).unlink()
        tiny.stamp.unlink(missing_ok=True)
        assert not tiny.is_ready()
        tiny.provision(tmp_path / "log", states.append)
        assert tiny.is_ready()
    return states[0], "everything: the environment is made anew"


@fault("an environment has lost a file", "a package's file emptied, in uv's cache too; `run_all.py doctor --check`")
def test_lost_files_are_told_and_mended(environment, inside, tmp_path, monkeypatch):
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    damaged = environment()
    assert inside.call("env", "tiny", own_python=False).returncode == 0
    damaged.check_files()
    (file,) = damaged.venv.glob("lib/*/site-packages/six.py")
    file.write_text("")
    inside.catalog(inside.entry("good", environment="tiny"))
    told = "environment tiny has lost .*six.py since it was made: run_all.py env tiny --again makes it anew"
    done = inside.call("doctor", "--check", "--gpus", "none", own_python=False)
    said = re.search(rf"good +failed +({told})", done.stdout)
    assert done.returncode == 1 and said, done.stdout + done.stderr
    done = inside.call("env", "tiny", own_python=False)
    assert done.returncode == 0 and done.stdout == "tiny: ready\n"
    with pytest.raises(RosettaError, match=told):
        damaged.check_files()
    done = inside.call("env", "tiny", "--again", own_python=False)
    assert done.returncode == 0 and done.stdout == "installing tiny\ntiny: ready\n"
    damaged.check_files()
    return said[1], "everything; `run_all.py env tiny --again` makes it whole"


def test_post_install(environment, tmp_path):
    script = environment().folder / "after.py"
    script.write_text("import six, sys; open(sys.prefix + '/mark', 'w').write(six.__version__)")
    tiny = environment(post_install="after.py")
    tiny.provision(tmp_path / "log")
    assert (tiny.venv / "mark").read_text() == "1.17.0"
    script.write_text("raise SystemExit('no compiler for the stub')")
    with pytest.raises(RosettaError, match="no compiler for the stub"):
        tiny.provision(tmp_path / "log")


@pytest.mark.parametrize(
    "keys, reason",
    [
        ({"needs": ["no-such-compiler"]}, "environment tiny needs no-such-compiler on this machine"),
        (
            {"python": "3.4"},
            "environment tiny needs Python 3.4, which uv does not offer: install it with pyenv or conda, or name an interpreter",
        ),
    ],
)
def test_what_the_machine_lacks_is_a_skipped_row(inside, keys, reason):
    inside.environment("tiny", packages=f"{PACKAGE}\n", lock=LOCK, **{"python": "3.11"} | keys)
    inside.catalog(inside.entry("good", environment="tiny"))
    done = inside.call("run", "--synthetic", "--preset", "smoke", "--out", str(inside.out), own_python=False)
    assert done.returncode == 0, done.stderr
    record = inside.record("good.failed")
    assert record["status"] == "skipped" and reason in record["error"]
    assert "needs" in inside.table()


def test_variables_of_a_kernel(environment, monkeypatch):
    """Those of the user's shell win; some are for a processor, for the locked packages, for a module that is imported."""
    tiny = environment()
    recipe = tiny.recipe
    recipe.variables.update(THEANO_FLAGS="base_compiledir={folder}/.cache", HERE="1")
    recipe.variables_on.update(AuthenticAMD={"MKL_DEBUG_CPU_TYPE": "5"})
    recipe.variables_of_lock.update(XLA_FLAGS="--new")
    recipe.variables_for.update(mxnet={"OMP_NUM_THREADS": "{processors}"})
    monkeypatch.setenv("HERE", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("rosetta.run.machine.processors", lambda: [0, 1, 2])
    monkeypatch.setattr("rosetta.run.machine.cpuinfo", {"vendor_id": "AuthenticAMD"}.get)
    always = {"THEANO_FLAGS": f"base_compiledir={tiny.folder}/.cache"}
    assert tiny.variables((), locked=False) == always | {"MKL_DEBUG_CPU_TYPE": "5"}
    monkeypatch.setattr("rosetta.run.machine.cpuinfo", {"vendor_id": "GenuineIntel"}.get)
    assert tiny.variables((), locked=False) == always
    assert tiny.variables(("torch",), locked=True) == always | {"XLA_FLAGS": "--new"}
    assert tiny.variables(("mxnet",), locked=False) == always | {"OMP_NUM_THREADS": "3"}


def test_program_that_the_machine_lacks_is_brought(environment, executable, tmp_path, monkeypatch):
    """That of the machine is taken while it is there; once it is gone, the environment is made again with one of its own."""
    tiny, program = environment(), executable("bin/no-such-compiler", "")
    tiny.recipe.brought.update({program.name: PACKAGE})  # Python runs the module six in its place
    brought = tiny.python.parent / program.name
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    tiny.provision(tmp_path / "log")
    assert tiny.is_ready() and not brought.exists()
    program.unlink()
    assert not tiny.is_ready()
    tiny.provision(tmp_path / "log")
    assert tiny.is_ready() and "-m six no-such-compiler" in brought.read_text()
    path = tiny.variables((), locked=True)["PATH"]
    assert path == os.environ["PATH"] + os.pathsep + str(brought.parent)
    subprocess.run(["no-such-compiler", "an argument"], env={"PATH": path}, check=True)
    assert "PATH" not in tiny.variables((), locked=False)


@pytest.mark.parametrize(
    "file, content, said",
    [
        ("environment.toml", b'python = "3.11"\nnedes = []\n', "is not valid: nedes: Extra inputs are not permitted"),
        (
            "environment.toml",
            b'python = "3.11"\npost_install = "a.py"\n',
            "is not valid: post_install: there is no a.py",
        ),
        ("environment.toml", None, "the environment test, which is not there"),
        ("requirements.txt", None, "is not there"),
        ("requirements.txt", b"six\xff\n", "is not valid: its byte 4 is no UTF-8"),
    ],
)
def test_broken_recipe_is_one_line(inside, file, content, said):
    path = inside.root / "environments" / "test" / file
    path.unlink() if content is None else path.write_bytes(content)
    done = inside.call("list", own_python=False)
    line = one_line(done.stderr)
    assert done.returncode == 2 and said in line and (f"environments/test/{file}" in line or "catalog.toml" in line)


HANGS = f"sleep {SLEEP} & wait"


@pytest.mark.parametrize(
    "code, said",
    [
        ("printf '\\377\\376'", "does not start as Python does: exit code 0, and no message"),
        (
            "printf 'no \\377 licence\\n' >&2; exit 3",
            "does not start as Python does: no \N{REPLACEMENT CHARACTER} licence",
        ),
        (f"printf '\\377'; exec {sys.executable} -I -S \"$@\"", "has no ipykernel"),  # an answer after other output
        (None, "python: Permission denied"),
    ],
)
def test_interpreter_that_is_none(executable, code, said):
    """Its output is no text, or it is no program."""
    python = executable("python", code or "")
    python.chmod(0o755 if code else 0o644)
    with pytest.raises(RosettaError) as told:
        kernels.chosen([f"all={python}"], [])
    assert said in one_line(str(told.value))


@fault("a given interpreter never answers", "`--python` with a script that sleeps; the limit of 60 s set to 1")
def test_no_answer(executable, monkeypatch):
    monkeypatch.setattr(kernels, "ANSWER_S", 1)
    with pytest.raises(RosettaError, match="--python all: .*python gave no answer within 1 s: name another") as told:
        kernels.chosen([f"all={executable('python', HANGS)}"], [])
    assert one_line(str(told.value)) and not sleepers()
    return str(told.value), "everything; nothing was started"


def test_no_answer_ends_with_the_runner(standin, executable):
    command = standin.command("list", "--python", f"test={executable('python', HANGS)}", own_python=False)
    runner = subprocess.Popen(command, cwd=standin.root)
    while not sleepers():
        time.sleep(0.05)
        assert runner.poll() is None
    runner.kill()
    assert runner.wait(10) and gone()


def test_what_an_interpreter_leaves_is_ended(executable):
    done = processes.ask(executable("python", f"sleep {SLEEP} & echo 3.99"), "", timeout_s=30)
    assert done.stdout == "3.99\n" and not sleepers()


def test_interpreters_are_run_before_they_are_believed(executable, tmp_path, monkeypatch):
    """A pyenv shim on PATH exits with an error; a Python of another version lies about its name."""
    find = environments.find_python.__wrapped__  # looks anew each time
    monkeypatch.setenv("PATH", str(executable("shims/python3.99", "exit 127").parent))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find("3.99") is None
    executable("envs/liar/bin/python3.99", "echo 3.98")
    conda = executable("envs/old/bin/python3.99", "echo 3.99")
    (tmp_path / ".conda").mkdir()
    (tmp_path / ".conda" / "environments.txt").write_text(f"{tmp_path}/envs/liar\n{tmp_path}/envs/old\n")
    assert find("3.99") == conda
    for version in ("3.99.1", "3.99.2"):
        newest = executable(f"pyenv/versions/{version}/bin/python3.99", "echo 3.99")
        assert find("3.99") == newest
