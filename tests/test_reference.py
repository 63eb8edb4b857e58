"""The references train as independent implementations in PyTorch do, both in float64."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from common.data import cifar10, imdb
from common.reference import cifar10_cnn, imdb_gru
from rosetta import catalog
from rosetta.errors import Unavailable
from rosetta.run.kernels import Kernels

SIZE, STEPS = 24, 3  # the last batch is shorter
# task: its data, its network, its constants
TASKS = {
    "cifar10_cnn": (cifar10, cifar10_cnn, {"LR": 0.01, "MOMENTUM": 0.9}),
    "imdb_gru": (imdb, imdb_gru.of("reset_after"), {"LR": 0.001}),
}


@pytest.mark.rows
@pytest.mark.timeout(900)
@pytest.mark.parametrize("task", TASKS)
def test_trains_as_torch_does(task, tmp_path, missing):
    try:
        kernel = Kernels().get(catalog.load().select(["pytorch"], task)[0], tmp_path / "log")
    except Unavailable as reason:
        missing(str(reason))
    data, network, constants = TASKS[task]
    x, y, _, _ = data.load(n_train=SIZE * STEPS - 8, n_test=1, synthetic=not os.environ.get("ROSETTA_DATA"))
    x = x.astype(np.float64) if x.dtype.kind == "f" else x
    start = network.initial_weights(seed=0)
    np.savez(tmp_path / "in.npz", x=x, y=y, size=SIZE, **start)
    script = Path(__file__).with_name("reference_in_torch.py")
    subprocess.run([kernel.python, script, task, tmp_path / "in.npz", tmp_path / "out.npz"], check=True, timeout=300)
    theirs = np.load(tmp_path / "out.npz")

    batches = [(x[i : i + SIZE], y[i : i + SIZE]) for i in range(0, len(x), SIZE)]
    weights, losses = network.train(start, batches, constants)
    assert len(losses) == STEPS
    np.testing.assert_allclose(losses, theirs["losses"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(network.probabilities(weights, x), theirs["probabilities"], rtol=0, atol=1e-9)
    for name, array in weights.items():
        assert np.linalg.norm(array - theirs[name]) <= 1e-9 * np.linalg.norm(theirs[name]), name
