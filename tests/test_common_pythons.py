"""The tests of ``common`` on every Python it promises to run on, each in a bare environment of NumPy and pytest."""

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = {"3.6", "3.9", "3.11", "3.13"}
PINS = {
    "3.6": ("numpy==1.19.5", "pytest==7.0.1"),
    "3.7": ("numpy==1.21.6", "pytest==7.4.4"),
    "3.8": ("numpy==1.24.4", "pytest==8.3.5"),
    "3.9": ("numpy==2.0.2", "pytest==8.4.2"),
    "3.10": ("numpy==1.26.4", "pytest==8.4.2"),
    "3.11": ("numpy==2.3.5", "pytest==9.0.2"),
    "3.12": ("numpy==2.3.5", "pytest==9.0.2"),
    "3.13": ("numpy==2.3.5", "pytest==9.0.2"),
}
# Arithmetic on many numbers, which a small test of the same lines does as well
LONG = "central_differences or passes_and_what_does_not or activations_stay and googlenet or test_the_real"
ENDS = "3.6", "3.13"  # the reference is NumPy alone: these compute it, those between import it
REFERENCE = ("check", "convolutional", "layers", "networks", "parallel", "reference", "resnet_reference")
IMPORTED = """
import importlib, pkgutil, common
for module in pkgutil.walk_packages(common.__path__, "common."):
    importlib.import_module(module.name)
"""
# What would lead the other Python, its pytest or uv to this session's packages
FOREIGN = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "UV_PYTHON")


@pytest.fixture(scope="module")
def tested():
    """What became of each Python; as many at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {version: pool.submit(pass_tests, version) for version in PINS}


@pytest.mark.rows
@pytest.mark.parametrize("version", PINS)
def test_common_runs_on(version, tested, missing):
    if not tested[version].result():
        refuse = missing if version in REQUIRED else pytest.skip
        refuse(f"no Python {version} on this machine")


def pass_tests(version):
    """Whether there is such a Python. Raises AssertionError where a test of ``common`` fails on it."""
    from rosetta.run import environments

    interpreter = environments.find_python(version)
    if interpreter is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        python = bare_environment(Path(folder), interpreter, PINS[version])
        ini = Path(folder, "pytest.ini")  # the project's own settings and conftest are for the runner's Python
        ini.write_text("[pytest]\n")
        left_out = [] if version in ENDS else [f"--ignore=tests/common/test_{name}.py" for name in REFERENCE]
        options = ["-c", ini, "--rootdir", ROOT, "--confcutdir", "tests/common", "-p", "no:cacheprovider", *left_out]
        run(ROOT, python, "-c", IMPORTED)
        run(ROOT, python, "-m", "pytest", "tests/common", "-q", *options, "-k", f"not ({LONG})", "-m", "not long")
    return True


def bare_environment(folder, interpreter, packages):
    """Make a virtual environment of the interpreter with the packages alone; returns the path of its Python.

    uv runs in that folder: in the repository it would take the constraints of pyproject.toml.
    """
    run(folder, find_uv_bin(), "venv", "--quiet", "--python", interpreter, "venv")
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(folder, find_uv_bin(), "pip", "install", "--quiet", "--python", python, *packages)
    return python


def run(folder, *command):
    """Run a command in a folder; its output is the message when it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    environment |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }  # as many Pythons as processors compute
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run([str(part) for part in command], cwd=folder, env=environment, timeout=300, **pipes)
    assert done.returncode == 0, done.stdout
