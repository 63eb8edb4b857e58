"""The phases that ``run_all.py measure sweep`` times are those of a training step, in every framework."""

import os
from itertools import chain

import pytest

from rosetta.catalog import Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.kinds.kind import BATCH
from rosetta.measure.commands import Grid, time_phases
from rosetta.measure.rows import Measuring
from rosetta.measure.tables import PHASES
from rosetta.notebook import program
from rosetta.records import Point
from rosetta.run import devices
from rosetta.run.devices import Workers
from rosetta.where import Where

MEASURING = Measuring(Where(gpus="none", synthetic=not os.environ.get("ROSETTA_DATA")), "sweep", "phases")
# Their program is that of their framework's plain row, with nothing that depends on the variant here
LEFT_OUT = ("pytorch[compiled]", "pytorch[graphs]", "pytorch[tf32]", "pytorch[torch1]", "flax[scan]")
TRAINING = [
    task.key
    for task in MEASURING.catalog.tasks.values()
    if "LR" in task.constants() and "DEVICES" not in task.constants()
]
ROWS = [
    row
    for row in MEASURING.rows
    if row.task in TRAINING and program("phases", row.task, row.framework).is_file() and row.name not in LEFT_OUT
]
PROTOCOL = Grid(places=[{}], batch_sizes=[8, 12], steps=1, repeats=2, estimate_s=0.0)


@pytest.fixture(scope="module")
def measured(request) -> dict[str, list[Point] | RosettaError]:
    """The points of every row that is asked for, or why there are none; they are not timed, so two may run side by side."""
    workers = Workers(devices.shared(gpus="none", jobs=None))

    def measure(row: Row) -> tuple[str, list[Point] | RosettaError]:
        plan = MEASURING.short(row, {"LR": 0.05}, steps=1, turns=1)
        plan.parameters.update(MEASURING.catalog.task(row.task).without_chance)
        record = MEASURING.record(plan, "sweep", {})
        with workers.share() as slot:
            try:
                return row.full_name, list(chain(*time_phases(MEASURING, plan, record, slot, PROTOCOL, {})))
            except RosettaError as error:
                return row.full_name, error

    asked = [item.callspec.params["row"] for item in request.session.items if item.originalname == "test_phases"]
    return dict(workers.each(measure, asked))


@pytest.mark.rows
@pytest.mark.drawn(2)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.full_name)
def test_phases(measured, missing, row):
    """Without dropout all three see the same loss before the update, and updates change it."""
    points = measured[row.full_name]
    if isinstance(points, Unavailable):
        missing(str(points))
    if isinstance(points, RosettaError):
        raise points
    places = {(point.at[BATCH], point.at["phase"], point.unit): point.values for point in points}
    for size in PROTOCOL.batch_sizes:
        assert all(len(places[size, phase, "s"]) == 2 and min(places[size, phase, "s"]) > 0 for phase in PHASES)
        (forward,), (backward,), (step,) = (places[size, phase, "loss"] for phase in PHASES)
        assert forward == pytest.approx(backward, rel=1e-5) and forward == pytest.approx(step, rel=1e-5)
        assert 0 < forward < 2.6
    first, second = (places[size, "forward", "loss"] for size in PROTOCOL.batch_sizes)
    assert first != second


def test_steps_of_several_devices_are_not_taken_apart():
    row = next(row for row in MEASURING.rows if row.full_name == "densenet_parallel/pytorch")
    plan = MEASURING.short(row, {}, steps=1, turns=1)
    record = MEASURING.record(plan, "sweep", {})
    with pytest.raises(Unavailable, match="not written: its step is that of several devices"):
        next(time_phases(MEASURING, plan, record, MEASURING.slot, PROTOCOL, {}))
