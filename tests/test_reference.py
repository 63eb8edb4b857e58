"""The references train as independent implementations in PyTorch do, both in float64, and count the multiply-adds that it counts."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from common.data import cifar10, imdb
from common.params.networks import NETWORKS
from common.reference import cifar10_cnn, imdb_gru, networks
from rosetta import catalog
from rosetta.catalog import Row
from rosetta.errors import Unavailable
from rosetta.run.kernels import Kernels

SIZE, STEPS = 24, 3  # the last batch is shorter
# task: its data, its network, its constants
TASKS = {
    "cifar10_cnn": (cifar10, cifar10_cnn, {"LR": 0.01, "MOMENTUM": 0.9}),
    "imdb_gru": (imdb, imdb_gru.of("reset_after"), {"LR": 0.001}),
}


@pytest.fixture
def torch_of(tmp_path, missing):
    """Of a task, the row of PyTorch and its interpreter."""

    def find(task: str) -> tuple[Row, Path]:
        (row,) = catalog.load().select(["pytorch"], task)
        try:
            return row, Kernels().get(row, tmp_path / "log").python
        except Unavailable as reason:
            missing(str(reason))

    return find


@pytest.mark.rows
@pytest.mark.timeout(900)
@pytest.mark.parametrize("task", TASKS)
def test_trains_as_torch_does(task, tmp_path, torch_of):
    _, python = torch_of(task)
    data, network, constants = TASKS[task]
    x, y, _, _ = data.load(n_train=SIZE * STEPS - 8, n_test=1, synthetic=not os.environ.get("ROSETTA_DATA"))
    x = x.astype(np.float64) if x.dtype.kind == "f" else x
    start = network.initial_weights(seed=0)
    np.savez(tmp_path / "in.npz", x=x, y=y, size=SIZE, **start)
    script = Path(__file__).with_name("reference_in_torch.py")
    subprocess.run([python, script, task, tmp_path / "in.npz", tmp_path / "out.npz"], check=True, timeout=300)
    theirs = np.load(tmp_path / "out.npz")

    batches = [(x[i : i + SIZE], y[i : i + SIZE]) for i in range(0, len(x), SIZE)]
    weights, losses = network.train(start, batches, constants)
    assert len(losses) == STEPS
    np.testing.assert_allclose(losses, theirs["losses"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(network.probabilities(weights, x), theirs["probabilities"], rtol=0, atol=1e-9)
    for name, array in weights.items():
        assert np.linalg.norm(array - theirs[name]) <= 1e-9 * np.linalg.norm(theirs[name]), name


@pytest.mark.rows
@pytest.mark.timeout(300)
def test_multiply_adds_are_those_that_torch_counts(tmp_path, torch_of):
    """In its own network: the lists of layers tell the same."""
    row, python = torch_of("networks")
    script, out = Path(__file__).with_name("multiply_adds_in_torch.py"), tmp_path / "counted.json"
    # -P: the folder tests/common would hide the common/ of the notebooks
    command = [python, "-P", script, row.notebook, out, *NETWORKS]
    subprocess.run(command, cwd=row.notebook.parent, check=True, timeout=300)
    counted = json.loads(out.read_text(encoding="utf-8"))
    lists = networks.of(row.facts.flavour)
    assert counted == {name: lists.network(name).MULTIPLY_ADDS for name in NETWORKS}
