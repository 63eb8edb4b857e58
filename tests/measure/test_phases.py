"""The phases that ``run_all.py sweep`` times are those of a training step, in every framework."""

import os

import pytest

from rosetta import catalog
from rosetta.batch.workers import Workers
from rosetta.catalog import Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.run import devices
from rosetta.run.kernels import Kernels
from rosetta.speed import sweep
from rosetta.speed.sweep import Point, Protocol

KNOWN = catalog.load()
TASK = KNOWN.tasks["cifar10_cnn"]
LEFT_OUT = ("pytorch[compiled]", "pytorch[torch1]", "mlx[streams]")  # their program is that of pytorch and of mlx
ROWS = [row for row in KNOWN.rows("cifar10_cnn") if row.name not in LEFT_OUT]
PROTOCOL = Protocol([8, 12], steps=1, repeats=2, synthetic=not os.environ.get("ROSETTA_DATA"))


@pytest.fixture(scope="module")
def measured(request) -> dict[str, list[Point] | RosettaError]:
    """The points of every row that is asked for, or why there are none; they are not timed, so two may run side by side."""
    kernels, workers = Kernels(), Workers(devices.shared(gpus="none", jobs=None))

    def measure(row: Row) -> tuple[str, list[Point] | RosettaError]:
        with workers.share() as slot:
            try:
                return row.name, list(sweep.points(row, TASK, slot, PROTOCOL, kernels, DROPOUT=False, LR=0.05))
            except RosettaError as error:
                return row.name, error

    asked = [item.callspec.params["row"] for item in request.session.items if item.originalname == "test_phases"]
    return dict(workers.each(measure, asked))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_phases(measured, missing, row):
    """Without dropout all three see the same loss before the update, and updates change it."""
    found = measured[row.name]
    if isinstance(found, Unavailable):
        missing(str(found))
    if isinstance(found, RosettaError):
        raise found
    assert [point.batch_size for point in found] == PROTOCOL.batch_sizes
    for point in found:
        assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in point.seconds.values())
        assert point.loss["forward"] == pytest.approx(point.loss["backward"], rel=1e-5)
        assert point.loss["forward"] == pytest.approx(point.loss["step"], rel=1e-5)
        assert 0.5 < point.loss["forward"] < 2.6
    assert found[0].loss["forward"] != found[1].loss["forward"]
