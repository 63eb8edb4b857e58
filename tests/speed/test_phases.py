"""The phases that ``run_all.py sweep`` times are those of a training step, in every framework."""

import os

import pytest

from rosetta import catalog
from rosetta.errors import Unavailable
from rosetta.run import devices
from rosetta.run.kernels import Kernels
from rosetta.speed import scripts, sweep

KNOWN = catalog.load()
TASK = KNOWN.tasks["cifar10_cnn"]
ROWS = [row for row in KNOWN.rows("cifar10_cnn") if scripts.program(sweep.KIND, row).is_file()]
SIZES = [8, 12]


@pytest.fixture(scope="module")
def slot() -> devices.Slot:
    return devices.timed(gpus="none", threads=2)[0]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_phases_are_those_of_a_step(row, slot, missing):
    """Without dropout all three see the same loss before the update, and the update lowers it."""
    protocol = sweep.Protocol(SIZES, steps=1, repeats=2, synthetic=not os.environ.get("ROSETTA_DATA"))
    try:
        found = list(sweep.points(row, TASK, slot, protocol, Kernels(), DROPOUT=False, LR=0.05))
    except Unavailable as reason:
        missing(str(reason))
    assert [point.batch_size for point in found] == SIZES
    for point in found:
        assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in point.seconds.values())
        assert point.loss["forward"] == pytest.approx(point.loss["backward"], rel=1e-5)
        assert point.loss["forward"] == pytest.approx(point.loss["step"], rel=1e-5)
    assert found[0].loss["forward"] < 2.4 and found[0].loss["forward"] != found[1].loss["forward"]
