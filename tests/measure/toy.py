"""A checkout with one row of a task that trains: a notebook of a few lines in NumPy, with its programs."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from rosetta import files
from rosetta.kinds import KINDS
from rosetta.records import Record
from tests.inside import Here
from tests.standin import ROOT, in_order

CELLS = {
    "parameters": "EPOCHS, BATCHSIZE, LR, SEED, N_TRAIN, N_TEST = 2, 4, 0.1, 0, 40, 10",
    "setup": f"import sys; sys.path.append({str(ROOT)!r})\nimport os, numpy as np\nfrom common.record import EpochLog, record",
    "data": "x_train = np.random.RandomState(SEED).rand(N_TRAIN)\ny_train = 3 * x_train",
    "model": "weight = 0.0",
    "weights": "",
    "optimizer": "gradient = lambda x, y: 2 * np.mean((weight * x - y) * x)",
    "evaluate": "def evaluate(): return weight / 3",
    "train": """
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    for start in range(0, N_TRAIN, BATCHSIZE):
        weight -= LR * gradient(x_train[start:start + BATCHSIZE], y_train[start:start + BATCHSIZE])
    log.epoch(np.mean((weight * x_train - y_train) ** 2), evaluate)
""",
    "record": "record(log, evaluate(), 1, [np], 'cpu', dict, list)",
}
LOOP = CELLS["train"].replace("N_TRAIN, BATCHSIZE", "len(x_train), BATCHSIZE")
PHASES = """
def place(n): return x_train[:n], y_train[:n]
def forward(x, y): return np.mean((weight * x - y) ** 2)
def backward(x, y): return gradient(x, y) * 0 + forward(x, y)
def step(x, y):
    global weight
    loss = backward(x, y)
    weight -= LR * gradient(x, y)
    return loss
def value(loss): return loss
"""
ENTRY = """
[frameworks.{name}]
title = "{name}"
environment = "toy"
imports = ["numpy"]
released = 2020
homepage = "https://example.org"
"""
FILES = {
    "catalog.toml": "schema = 2\n" + ENTRY.format(name="toy") + ENTRY.format(name="bare"),
    "notebooks/slope/task.toml": """
title = "Slope"
kind = "train"
sweep = { BATCHSIZE = [2, 4] }
[presets]
full = {}
quick = {}
smoke = {}
""",
    "common/params/slope.py": "EPOCHS, BATCHSIZE, LR, SEED, N_TRAIN, N_TEST = 2, 4, 0.1, 0, 40, 10\n"
    'MULTIPLY_ADDS = {"forward": 1}\n',
    "environments/toy/environment.toml": 'python = "{}.{}"\n'.format(*sys.version_info),
    "environments/toy/requirements.in": "",
    "environments/toy/requirements.txt": "",
    "programs/fastest/toy.py": f"# %% train{LOOP}",
    "programs/phases/toy.py": f"# %% after optimizer{PHASES}",
}


class Toy:
    """The checkout; ``bare`` has a notebook and no programs."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch):
        self.root, self.out = root, root.parent / "out"
        for name in ("common", "rosetta"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "run_all.py", root)
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        notebook = in_order("Toy", KINDS["train"], list(CELLS.items()))
        for name in ("toy", "bare"):
            nbformat.write(notebook, root / "notebooks" / "slope" / f"{name}.ipynb")
        self.here = Here(root, patch)

    def call(self, *arguments: str) -> subprocess.CompletedProcess:
        """``run_all.py`` with these arguments, to its end."""
        variables = {"ROSETTA_MACHINE": "box", "COLUMNS": "200", "CUDA_VISIBLE_DEVICES": "-1"}
        return self.here.call([sys.executable, "run_all.py", *arguments, "--out", str(self.out)], variables)

    def measure(self, *arguments: str) -> subprocess.CompletedProcess:
        """A measurement of rows."""
        return self.call(*arguments, f"--python=all={sys.executable}")

    def sessions(self, column: str) -> list[Record]:
        """What was measured of the row ``toy``, a record a session, the oldest first."""
        return [files.load(Record, file) for file in sorted(self.out.glob(f"box/slope/{column}/toy*.json"))]
