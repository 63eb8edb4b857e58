"""``run_all.py lab``: JupyterLab as a reader meets it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

from rosetta import catalog
from rosetta.lab import lab, one_a_kernel, register
from rosetta.paths import ENVIRONMENTS, ROOT
from rosetta.run.kernels import Kernels
from tests.standin import TASK


def test_a_kernel_for_each_framework_and_environment():
    rows = catalog.load().rows()
    chosen = one_a_kernel(rows)
    places = [(row.framework, row.environment) for row in chosen]
    assert len(places) == len(set(places)) and set(places) == {(row.framework, row.environment) for row in rows}
    assert len({row.title for row in chosen}) == len(chosen)


def test_rows_that_cannot_be_had_are_left_out(tmp_path, capsys, monkeypatch):
    rows = [row.model_copy(update={"imports": ("no_such_framework",)}) for row in one_a_kernel(catalog.load().rows())]
    python = {"all": sys.executable}
    monkeypatch.setattr("rosetta.run.kernels._check_interpreter", lambda *_: None)
    assert register(rows, Kernels(python), tmp_path / "kernels", {}) == []
    assert capsys.readouterr().out.count("left out: the given interpreter cannot import") == len(rows)


def test_notebooks_get_synthetic_data_when_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("rosetta.lab.FOLDER", tmp_path / "kernels")
    monkeypatch.setattr("rosetta.run.kernels._check_interpreter", lambda *_: None)
    monkeypatch.setattr("rosetta.run.environments.Environment.provision", lambda *_, **__: None)
    monkeypatch.setattr("rosetta.lab.subprocess.call", lambda *_, **__: 0)
    row = next(row for row in catalog.load().rows() if not row.variant)
    row = row.model_copy(update={"imports": ("sys",)})
    monkeypatch.setattr("rosetta.catalog.Catalog.select", lambda *_: [row])
    for asked in (True, False):
        assert lab([], None, Kernels({"all": sys.executable}), [], synthetic=asked) == 0
        (spec,) = (tmp_path / "kernels").glob("kernels/*/kernel.json")
        assert (json.loads(spec.read_text())["env"].get("ROSETTA_DATA") == "synthetic") == asked


@pytest.mark.parametrize("earlier", ["", "/earlier"])
def test_jupyterlab_finds_the_kernels_first_and_ends_quietly(tmp_path, monkeypatch, capsys, earlier):
    called, kernels = [], tmp_path / "kernels"

    def played(command, cwd, env):
        called.append((command, env["JUPYTER_PATH"]))
        if len(called) == 2:
            raise KeyboardInterrupt
        return 3

    monkeypatch.setattr("rosetta.lab.FOLDER", kernels)
    monkeypatch.setattr("rosetta.lab.register", lambda *_: ["PyTorch", "Flax"])
    monkeypatch.setattr("rosetta.run.environments.Environment.provision", lambda *_, **__: None)
    monkeypatch.setattr("rosetta.lab.subprocess.call", played)
    monkeypatch.setenv("JUPYTER_PATH", earlier)
    assert lab(["pytorch"], None, Kernels({}), ["--no-browser"]) == 3, "its exit code"
    assert lab(["pytorch"], None, Kernels({}), []) == 0, "after Ctrl-C, which it has had as well"
    ((python, *options), path), _ = called
    assert python == str(ENVIRONMENTS / "lab" / ".venv" / "bin" / "python")
    assert options == ["-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}", "--no-browser"]
    assert path == os.pathsep.join(filter(None, [str(kernels), earlier]))
    assert "kernels: PyTorch, Flax; choose one" in capsys.readouterr().out


def test_none_left_is_an_error(standin):
    done = standin.call("lab", "nobody", own_python=False)
    assert done.returncode == 2 and "unknown framework nobody" in done.stderr


@pytest.mark.rows  # it makes JupyterLab's environment
@pytest.mark.timeout(240)
def test_jupyterlab_lists_kernels_by_framework_and_shows_headings(standin, tmp_path, browser):
    """Started for real, on one of the collection's notebooks."""
    shutil.copytree(ENVIRONMENTS / "lab", standin.root / "environments" / "lab", ignore=shutil.ignore_patterns(".*"))
    row = catalog.load().rows()[0]
    standin.catalog(standin.entry("good") + standin.entry("silent"))
    shutil.copy(row.notebook, standin.path("good"))
    (title,) = nbformat.read(row.notebook, as_version=4).cells[0].source.splitlines()[:1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"JUPYTER_CONFIG_DIR": str(tmp_path), "JUPYTER_TOKEN": "t", "JUPYTER_DATA_DIR": str(tmp_path / "data")}
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(
        [*standin.command("lab", "good", "silent", "--no-browser", "--allow-root", "--port", str(port))],
        cwd=standin.root,
        env=standin.variables(**variables),
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        found = kernelspecs(port, process, tmp_path / "log")
        assert found["rosetta-good"]["display_name"] == "good" and found["rosetta-silent"]["display_name"] == "silent"
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/lab/tree/notebooks/{TASK}/good.ipynb?token=t")
        page.get_by_role("heading", name=title.removeprefix("# ")).wait_for(timeout=60_000)
        page.get_by_role("heading", name="Parameters").wait_for()
        page.close()
    finally:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        log.close()


def kernelspecs(port: int, process: subprocess.Popen, log) -> dict:
    """What the server lists, as soon as it answers."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/kernelspecs?token=t") as answer:
                return {name: one["spec"] for name, one in json.load(answer)["kernelspecs"].items()}
        except OSError:
            time.sleep(0.5)
    raise AssertionError(log.read_text())
