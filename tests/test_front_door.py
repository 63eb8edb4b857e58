"""``python3 run_all.py`` on a Python that has nothing: what it brings, and its one line where that is impossible."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.standin import ROOT, one_line

# In the place of uv: says how it was called, and makes an environment whose Python says how that was called
UV = """#!/bin/sh
[ "$1" = --version ] && exit 0
echo "$@" >"$HOME/called"
env >"$HOME/environment"
mkdir -p "$3/.venv/bin"
printf '#!/bin/sh\\necho "$@"; echo "started $ROSETTA_STARTED"\\n' >"$3/.venv/bin/python"
chmod +x "$3/.venv/bin/python"
"""
FAILING = """#!/bin/sh
[ "$1" = --version ] || { echo "  × No solution found"; echo "error: no Python"; echo " ╰─▶ here"; exit 2; }
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A Python without packages."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def door(bare, tmp_path):
    """Calls a copy of ``run_all.py`` with that Python, from another folder; ``programs`` are all that is on PATH."""
    checkout, home, programs = tmp_path / "checkout", tmp_path / "home", tmp_path / "programs"
    for folder in (checkout, home, programs):
        folder.mkdir()
    shutil.copy(ROOT / "run_all.py", checkout)

    def call(*arguments, uv=None, **variables):
        if uv:
            (programs / "uv").write_text(uv)
            (programs / "uv").chmod(0o755)
        env = {"HOME": str(home), "PATH": f"{programs}:/bin" if uv else str(programs), **variables}
        command = [str(bare), str(checkout / "run_all.py"), *arguments]
        return subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=120)

    call.checkout, call.home = checkout, home
    return call


def test_it_is_written_for_old_pythons_and_pins_uv_as_the_project_does():
    text = (ROOT / "run_all.py").read_text()
    ast.parse(text, feature_version=(3, 8))
    imported = {
        alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names
    }
    assert imported == {"os", "shutil", "subprocess", "sys"}
    (pinned,) = re.findall(r'^UV = "(.*?)"', text, re.MULTILINE)
    assert pinned in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["constraint-dependencies"]


def test_uv_of_the_machine_makes_the_environment_and_what_the_shell_adds_stays_out(door):
    variables = {"VIRTUAL_ENV": "/none", "CONDA_PREFIX": "/conda", "REQUESTS_CA_BUNDLE": "/our.pem", "UV_CACHE_DIR": ""}
    done = door("list", "--task", "a b", uv=UV, PYTHONPATH="/nowhere", **variables)
    assert done.returncode == 0 and done.stderr == "installing the runner's packages into .venv\n"
    assert done.stdout == f"{door.checkout}/run_all.py list --task a b\nstarted 1\n"
    called = (door.home / "called").read_text()
    assert called.startswith(f"sync --project {door.checkout} --inexact --no-dev --extra site ")
    assert "--python" in called
    environment = (door.home / "environment").read_text()
    assert not re.search("^(PYTHONPATH|VIRTUAL_ENV|UV_CACHE_DIR)=", environment, re.MULTILINE)
    assert "CONDA_PREFIX=/conda" in environment and "SSL_CERT_FILE=/our.pem" in environment
    again = door("test", "-k", "x", uv=UV)
    assert again.stderr == "" and "run_all.py test -k x" in again.stdout
    called = (door.home / "called").read_text()
    assert "--no-dev" not in called and "--python" not in called, "an environment that is there keeps its Python"


def test_certificates_of_the_system_are_taken_where_those_of_uv_do_not_do(door):
    refuse = '[ "$UV_SYSTEM_CERTS" ] || { echo "error: invalid peer certificate"; exit 2; }'
    done = door("list", uv=UV.replace("echo ", f"{refuse}\necho ", 1))
    assert done.returncode == 0 and "started 1" in done.stdout
    assert "UV_SYSTEM_CERTS=1" in (door.home / "environment").read_text()


@pytest.mark.parametrize(
    "uv, message",
    [
        (FAILING, "cannot install the runner's packages: connect to the network, and have Python 3.11 or newer (error: no Python here)"),
        ("#!/bin/sh\nexit 127", "cannot download uv: connect to the network, or install uv (ERROR: "),
        (None, "cannot download uv: connect to the network, or install uv (ERROR: "),
    ],
    ids=["uv fails", "a shim that leads nowhere", "no uv"],
)  # fmt: skip
def test_what_cannot_be_brought_is_one_line(door, uv, message):
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0", "PIP_FIND_LINKS": ""}
    done = door("list", uv=uv, PIP_CONFIG_FILE=os.devnull, **offline)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(f"run_all.py: {message}"), done.stderr
    assert "Traceback" not in done.stderr


def test_a_python_that_cannot_make_environments_is_told_what_to_install(door):
    """As Debian's, without python3-venv."""
    reason = "The virtual environment was not created: ensurepip is not available"
    (door.home / "venv.py").write_text(f"raise SystemExit({reason!r})")
    done = door("list")
    assert done.returncode == 1 and done.stdout == ""
    advice = "cannot make .uv: install python3-venv with the system's package manager, or uv"
    assert done.stderr.splitlines()[-1] == f"run_all.py: {advice} ({reason})"


def test_an_error_of_the_runner_is_no_reason_to_install_again(door):
    (door.checkout / "rosetta").mkdir()
    (door.checkout / "rosetta" / "cli.py").write_text("raise RuntimeError('a bug')")
    done = door("list", uv=UV, ROSETTA_STARTED="1")
    assert done.returncode == 1 and one_line(done.stderr.strip().splitlines()[-1]) == "RuntimeError: a bug"
    assert not Path(door.home, "called").exists()
