"""A stand-in checkout: the real runner and common/ beside notebooks of a few lines that need no framework.

Its notebooks run on the interpreter of the tests, which has ipykernel and NumPy.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat

from rosetta.kinds import KINDS, Kind

ROOT = Path(__file__).resolve().parent.parent
TASK = "cifar10_cnn"  # whose constants and data the notebooks take

SETUP = """
import sys; sys.path.append("../..")
import numpy, time, os
from common.data import cifar10
from common.record import EpochLog, record
"""
DATA = "x_train, y_train, x_test, y_test = cifar10.load('NCHW', N_TRAIN, N_TEST, synthetic=True)"
TRAIN = """
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    time.sleep(SECONDS)
    log.epoch(2.0 - epoch / 10)
"""
DEVICE = "device = 'cpu' if os.environ.get('CUDA_VISIBLE_DEVICES', '-1') == '-1' else 'gpu'"
RECORD = f"{DEVICE}\nrecord(log, 0.5, 3441592, [numpy], device, dict, list)"

# What the cell ``train`` does in each notebook
TRAINING = {
    "good": TRAIN,
    "raises": "raise RuntimeError('no kernel image is available\\nfor this device')",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "exits": "os._exit(3)",
    "eats": "import signal; os.kill(os.getpid(), signal.SIGKILL)",  # what the memory killer does
    "hangs": "import subprocess; subprocess.Popen(['sleep', '987'], start_new_session=True); time.sleep(987)",
    "diverges": "log = EpochLog(EPOCHS); log.epoch(float('nan'))",
    "miscounts": TRAIN + "record = lambda *_, old=record: old(log, 0.5, 7, [numpy], 'cpu', dict, list)",
    "lists": "import common.record as cr; log = None; record = lambda *_: cr._show([1, 2], '')",
    "silent": "record = lambda *_: None; log = None",
}


def cells(name: str) -> list[tuple[str, str]]:
    parameters = "EPOCHS, N_TRAIN, N_TEST, SECONDS = 2, 640, 100, 0.05"
    return [("parameters", parameters), ("setup", SETUP), ("data", DATA), ("train", TRAINING[name]), ("record", RECORD)]


# Every row costs little, so that the estimates of a batch are known
TASK_FILE = """\
title = "Stand-in"
kind = "train"
data = "cifar10"
[presets]
full = {}
quick = { EPOCHS = 2, N_TRAIN = 640, N_TEST = 100 }
smoke = { EPOCHS = 1, N_TRAIN = 640, N_TEST = 100 }
[rows]
"""
COST = "{ start_s = 1, item_ms = 0.1 }"


def in_order(title: str, kind: Kind, code: list[tuple[str, str]]) -> nbformat.NotebookNode:
    """A notebook that keeps to the contract, of cells by role; roles that the code lacks have a cell that does nothing."""
    cells = [nbformat.v4.new_markdown_cell(f"# {title}")]
    by_role = dict(code)
    for role in kind.roles:
        cells.append(nbformat.v4.new_markdown_cell(f"## {role.heading}\n\nThe {role.name} of {title}."))
        source = by_role.get(role.name, "pass").strip()
        cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": [role.name]}))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


class StandIn:
    """The checkout below ``root``; rows are the names of ``TRAINING`` and ``good[slow]``."""

    def __init__(self, root: Path):
        self.root, self.out = root, root.parent / "out"
        root.mkdir()
        for name in ("common", "rosetta"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "run_all.py", root)
        with (root / "common" / "params" / f"{TASK}.py").open("a") as params:
            params.write("\nMULTIPLY_ADDS = None  # its notebooks only sleep\n")
        self.environment("test", python="{}.{}".format(*sys.version_info), packages="")
        slow = "[frameworks.good.variants.slow]\nparameters = { SECONDS = 30 }\n"
        self.catalog("".join(self.entry(name) for name in TRAINING) + slow)

    def environment(self, name: str, python: str, packages: str, lock: str = "", **keys) -> Path:
        folder = self.root / "environments" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "environment.toml").write_text(
            f'python = "{python}"\n' + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        )
        (folder / "requirements.in").write_text(packages)
        (folder / "requirements.txt").write_text(lock)
        return folder

    def path(self, name: str, task: str = TASK) -> Path:
        """Of a framework's notebook."""
        return self.root / "notebooks" / task / f"{name}.ipynb"

    def notebook(self, name: str, code: list[tuple[str, str]]) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(in_order(name, KINDS["train"], code), path)
        return path

    @staticmethod
    def entry(name: str, environment: str = "test") -> str:
        """A framework of the catalog."""
        return (
            f'[frameworks.{name}]\ntitle = "{name}"\nenvironment = "{environment}"\nimports = ["numpy"]\n'
            'released = 2020\nhomepage = "https://example.org"\n'
        )

    def catalog(self, frameworks: str) -> None:
        """Write the catalog. Frameworks of ``TRAINING`` get the notebook that they lack; notebooks of others go."""
        text = f"schema = 2\n{frameworks}"
        (self.root / "catalog.toml").write_text(text)
        names = tomllib.loads(text)["frameworks"]
        for name in names:
            if name in TRAINING and not self.path(name).exists():
                self.notebook(name, cells(name))
        for path in self.path("any").parent.glob("*.ipynb"):
            if path.stem not in names:
                path.unlink()
        self.rows({f"{name}[*]": f"cost = {COST}" for name in names if self.path(name).exists()})

    def rows(self, facts: dict[str, str]) -> None:
        """Write the task, with what it says of its rows: name -> TOML."""
        tables = "".join(f"[rows.{json.dumps(name)}]\n{text}\n" for name, text in facts.items())
        self.path("any").with_name("task.toml").write_text(TASK_FILE + tables)

    def command(self, *arguments: str, own_python: bool = True) -> list[str]:
        extra = [f"--python=all={sys.executable}"] if own_python else []
        return [sys.executable, "run_all.py", *arguments, *extra]

    def variables(self, **more: str) -> dict[str, str]:
        return os.environ | {"ROSETTA_MACHINE": "test machine", "COLUMNS": "200", "CUDA_VISIBLE_DEVICES": "-1"} | more

    def call(self, *arguments: str, own_python: bool = True, **variables: str) -> subprocess.CompletedProcess:
        """``run_all.py`` with these arguments, to its end."""
        return subprocess.run(
            self.command(*arguments, own_python=own_python),
            cwd=self.root,
            env=self.variables(**variables),
            capture_output=True,
            text=True,
            timeout=300,
        )

    def run(
        self, *names: str, options: tuple[str, ...] = ("--synthetic",), **variables: str
    ) -> subprocess.CompletedProcess:
        return self.call("run", *names, "--preset", "smoke", "--out", str(self.out), *options, **variables)

    def start(self, *arguments: str, said: str = "starting", before: tuple[str, ...] = ()) -> subprocess.Popen:
        """A runner of these rows that has just said this. before: a program that starts it, in a process group of its own."""
        command = self.command("run", *arguments, "--synthetic", "--preset", "smoke", "--out", str(self.out))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        runner = subprocess.Popen(
            [*before, *command], cwd=self.root, env=self.variables(), start_new_session=bool(before), **pipes
        )
        until(runner, said)
        return runner

    def column(self, preset: str = "smoke-synthetic") -> Path:
        return self.out / "test-machine" / TASK / preset

    def record(self, stem: str, preset: str = "smoke-synthetic") -> dict:
        return json.loads((self.column(preset) / f"{stem}.json").read_text())

    def table(self) -> str:
        """The overview and the task's page."""
        return "".join((self.out / name).read_text() for name in ("results.md", f"{TASK}.md"))


def until(runner: subprocess.Popen, text: str) -> str:
    """What the runner prints up to and with the line that has the text."""
    said = ""
    for line in runner.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(said + runner.stderr.read())


def one_line(text: str) -> str:
    """The text, which must be a single line and no traceback."""
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert not re.search(r"Traceback|site-packages", text)
    return lines[0]
