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
from pathlib import Path

import nbformat
import pytest

from rosetta import catalog
from rosetta.catalog import Row
from rosetta.lab import copy, lab, one_a_kernel, place, register
from rosetta.paths import Checkout, checkout
from rosetta.run.kernels import Kernels
from rosetta.where import Where
from tests.standin import TASK, one_line


def test_a_kernel_for_each_framework_and_environment():
    rows = catalog.load().rows()
    chosen = one_a_kernel(rows)
    places = [(row.framework, row.environment) for row in chosen]
    assert len(places) == len(set(places)) and set(places) == {(row.framework, row.environment) for row in rows}
    assert len({row.title for row in chosen}) == len(chosen)


@pytest.fixture
def played(monkeypatch, tmp_path):
    """No environment is made and no interpreter asked; kernels are registered in a folder of the test."""
    monkeypatch.setattr(Checkout, "kernels", tmp_path / "kernels")
    monkeypatch.setattr("rosetta.run.kernels._check_interpreter", lambda *_: None)
    monkeypatch.setattr("rosetta.run.environments.Environment.provision", lambda *_, **__: None)
    return tmp_path / "kernels"


def variables_of_the_kernel(folder: Path) -> dict[str, str]:
    (spec,) = folder.glob("kernels/*/kernel.json")
    return json.loads(spec.read_text())["env"]


def row_that_imports(module: str) -> Row:
    return catalog.load().rows()[0].model_copy(update={"imports": (module,)})


def test_rows_that_cannot_be_had_are_left_out(played, capsys):
    rows = [row_that_imports("no_such_framework"), row_that_imports("sys")]
    assert register(rows, Kernels({"all": sys.executable}), played, {}) == rows[1:]
    assert capsys.readouterr().out.count("left out: the given interpreter cannot import") == 1


def test_notebooks_get_synthetic_data_when_asked(played, tmp_path, monkeypatch):
    monkeypatch.setattr("rosetta.lab.subprocess.call", lambda *_, **__: 0)
    monkeypatch.setattr("rosetta.catalog.Catalog.select", lambda *_: [row_that_imports("sys")])
    for asked in (True, False):
        assert lab(Where(synthetic=asked, python=(f"all={sys.executable}",)), [], tmp_path / "class") == 0
        assert (variables_of_the_kernel(played).get("ROSETTA_DATA") == "synthetic") == asked


def test_jupyterlab_finds_the_kernels_first_and_ends_quietly(played, tmp_path, monkeypatch, capsys):
    called = []
    pytorch, flax = (next(row for row in catalog.load().rows() if row.name == name) for name in ("pytorch", "flax"))

    def call(command, cwd, env):
        called.append((command, cwd, env["JUPYTER_PATH"]))
        if len(called) == 2:
            raise KeyboardInterrupt
        return 3

    monkeypatch.setattr("rosetta.lab.register", lambda *_: [pytorch, flax])
    monkeypatch.setattr("rosetta.lab.subprocess.call", call)
    monkeypatch.setenv("JUPYTER_PATH", "/earlier")
    assert lab(Where(names=("pytorch",)), ["--no-browser"], tmp_path / "class") == 3, "its exit code"
    monkeypatch.delenv("JUPYTER_PATH")
    assert lab(Where(names=("pytorch",)), [], checkout.root) == 0, "after Ctrl-C, which it has had as well"
    ((python, *options), folder, first), ((*_, of_the_checkout), _, second) = called
    assert python == str(checkout.environments / "lab" / ".venv" / "bin" / "python")
    assert options == ["-m", "jupyterlab", f"--ServerApp.root_dir={folder}", "--no-browser"]
    assert folder == (tmp_path / "class").resolve() and of_the_checkout == f"--ServerApp.root_dir={checkout.root}"
    assert (first, second) == (f"{played}{os.pathsep}/earlier", str(played))
    copied, own = capsys.readouterr().out.split("kernels: PyTorch, Flax\n")[1:]
    assert f"notebooks copied to {folder}: {len(catalog.load().tasks)}; each opens with its kernel" in copied
    assert own == "these are the checkout's own notebooks; choose each kernel by the name of its framework\n"


def kernelspec_of(notebook: Path) -> dict:
    return json.loads(notebook.read_text(encoding="utf-8"))["metadata"]["kernelspec"]


def test_a_copy_is_the_notebook_with_its_kernel_and_the_pages_that_it_links(tmp_path):
    chosen = catalog.load().select(["pytorch[*]", "keras[*]", "flax"])
    copy(chosen, one_a_kernel(chosen), tmp_path)
    notebooks = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.ipynb")}
    assert notebooks == {row.notebook.relative_to(checkout.root) for row in chosen}
    titles = {"pytorch": "PyTorch", "keras-tensorflow": "Keras on TensorFlow", "flax": "Flax"}
    for kernel, title in titles.items():
        path = Path("notebooks", "cifar10_cnn", f"{kernel.partition('-')[0]}.ipynb")
        original, made = (json.loads((root / path).read_text(encoding="utf-8")) for root in (checkout.root, tmp_path))
        spec = {"display_name": title, "language": "python", "name": f"rosetta-{kernel}"}
        assert made["metadata"]["kernelspec"] == spec
        assert made | {"metadata": 0} == original | {"metadata": 0}
    for page in ("notebooks/cifar10_cnn/README.md", "results/cifar10_cnn.md", "results.md", "docs/porting-weights.md"):
        assert (tmp_path / page).read_bytes() == (checkout.root / page).read_bytes()


def test_a_copy_opens_with_a_kernel_that_is_there_and_what_the_user_has_stays(tmp_path, capsys):
    chosen = catalog.load().select(["keras[*]", "flax"], "cifar10_cnn")
    on_jax = [row for row in one_a_kernel(chosen) if row.name == "keras[jax]"]
    copy(chosen, on_jax, tmp_path)
    (notebook,) = tmp_path.rglob("*.ipynb")
    assert notebook.name == "keras.ipynb" and kernelspec_of(notebook)["name"] == "rosetta-keras-jax"
    assert f"notebooks copied to {tmp_path}: 1; each" in capsys.readouterr().out
    mine = [notebook, tmp_path / "results.md"]
    for file in mine:
        file.write_text("a note of the user's")
    copy(chosen, one_a_kernel(chosen), tmp_path)
    assert [file.read_text() for file in mine] == ["a note of the user's"] * 2
    assert f"copied to {tmp_path}: 1 (already there, and left as they are: 1);" in capsys.readouterr().out


@pytest.mark.parametrize(
    "given, path", [({}, str(checkout.root)), ({"all": sys.executable}, f"{checkout.root}{os.pathsep}/mine")]
)
def test_a_kernel_finds_common_from_any_folder(played, tmp_path, monkeypatch, given, path):
    monkeypatch.setenv("PYTHONPATH", "/mine")
    row = row_that_imports("sys")
    assert register([row], Kernels(given), played, {}) == [row]
    variables = variables_of_the_kernel(played)
    assert variables["PYTHONPATH"] == path, "what the user's shell adds counts for the user's own interpreter alone"
    command = [sys.executable, "-c", "import common.params.cifar10_cnn as it; print(it.__file__)"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | variables, capture_output=True, text=True)
    assert done.stdout.startswith(str(checkout.root)), done.stderr


def test_copies_go_to_lab_unless_a_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(checkout.root)
    for name in ("", "notebooks", "notebooks/cifar10_cnn", "common/../notebooks/"):  # it opens its own notebooks
        assert place(Path(name)) == place(checkout.root / name) == checkout.root
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(checkout, "root", tmp_path)
        assert place(None) == tmp_path / "lab" and (tmp_path / "lab" / "notebooks").is_dir()
    assert place(tmp_path / "a b" / "é%") == tmp_path / "a b" / "é%", "folders above it are made"
    ignored = subprocess.run(["git", "check-ignore", "lab/notebooks/cifar10_cnn/pytorch.ipynb"], cwd=checkout.root)
    assert ignored.returncode == 0


def test_a_folder_that_takes_no_copies_is_one_line(tmp_path, inside):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "notebooks").write_text("")
    reasons = {
        tmp_path / "file": "Not a directory; name another folder",
        tmp_path / "loop": "Too many levels of symbolic links; name another folder",
        tmp_path / "class": "File exists; name another folder",
        "common/params": "--in common/params is a part of the project: name a folder of your own",
        "results": "--in results is a part of the project",
    }
    for name, reason in reasons.items():
        done = inside.call("lab", "good", "--in", str(name), own_python=False)
        assert done.returncode == 2 and reason in one_line(done.stderr)


@pytest.mark.rows  # it makes JupyterLab's environment
@pytest.mark.timeout(240)
def test_jupyterlab_opens_a_copy_with_its_kernel_and_shows_headings(standin, tmp_path, browser):
    """Started for real, on a copy of one of the collection's notebooks."""
    shutil.copytree(
        checkout.environments / "lab", standin.root / "environments" / "lab", ignore=shutil.ignore_patterns(".*")
    )
    row = catalog.load().rows()[0]
    standin.catalog(standin.entry("good") + standin.entry("silent"))
    shutil.copy(row.notebook, standin.path("good"))
    before = kernelspec_of(standin.path("good"))
    (title,) = nbformat.read(row.notebook, as_version=4).cells[0].source.splitlines()[:1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"JUPYTER_CONFIG_DIR": str(tmp_path), "JUPYTER_TOKEN": "t", "JUPYTER_DATA_DIR": str(tmp_path / "data")}
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(
        standin.command("lab", "good", "silent", "--no-browser", "--allow-root", "--port", str(port)),
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
        page.locator(".jp-KernelName", has_text="good").wait_for()  # chosen without a question
        page.close()
        copied = standin.root / "lab" / standin.path("good").relative_to(standin.root)
        assert kernelspec_of(copied)["name"] == "rosetta-good" and kernelspec_of(standin.path("good")) == before
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
