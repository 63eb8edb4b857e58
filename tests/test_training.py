"""Every row is really trained, on its own environment, and its record is looked at."""

import math
import os

import pytest

from rosetta import catalog, machine
from rosetta.execute import execute
from rosetta.kernels import Kernels
from rosetta.plan import make
from rosetta.records import Record

KNOWN = catalog.load()
TASK = "cifar10_cnn"
ROWS = KNOWN.rows(TASK)

# One epoch of 5,000 real images must beat 20 % (guessing: 10 %). With dropout and batch 64 the network is only just
# beginning to learn by then (15 to 25 %, by chance), so the floor is for a run without dropout and with twice the steps.
FLOOR = {"EPOCHS": 1, "N_TRAIN": 5000, "N_TEST": 1000, "BATCHSIZE": 32}
# These rows take too long for that on 2 CPU cores: their loss has to fall. That they are the same network is another test's.
SHORT = dict.fromkeys(
    ("paddle", "chainer", "caffe2", "cntk", "keras2[theano]", "keras2[cntk]"),
    {"EPOCHS": 2, "N_TRAIN": 640, "N_TEST": 500, "BATCHSIZE": 32},
) | {
    "tinygrad": {"EPOCHS": 2, "N_TRAIN": 336, "N_TEST": 100},
    "mlx": {"EPOCHS": 2, "N_TRAIN": 80, "N_TEST": 20},
}


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels()


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_trains(row, kernels, missing):
    real = bool(os.environ.get("ROSETTA_DATA"))
    if not real and os.environ.get("CI"):
        pytest.fail("ROSETTA_DATA must name the real data in CI")
    size = SHORT.get(row.name, FLOOR)
    (plan,) = make(KNOWN, [row], "smoke", size, gpu=False, synthetic=not real, timeout_s=1200)
    if size is FLOOR:
        plan = plan.model_copy(update={"parameters": plan.parameters | {"DROPOUT": False}})
    run = execute(plan, kernels, machine.describe(), watch=lambda progress: None)
    try:
        if run.record.status == "skipped":
            missing(run.record.error)
        check(run.record, run.log.read_text(errors="replace") if run.log.exists() else "", floor=real and size is FLOOR)
    finally:
        run.close()


def check(record: Record, log: str, floor: bool) -> None:
    assert record.status == "ok", f"{record.error}\n{log[-3000:]}"
    metrics = record.metrics
    assert metrics.parameters == 3_441_592
    assert record.dataset.n_train == record.params["N_TRAIN"] and record.dataset.n_test == record.params["N_TEST"]
    # accuracy is a whole number of the test images
    assert metrics.accuracy * record.dataset.n_test == pytest.approx(
        round(metrics.accuracy * record.dataset.n_test), abs=1e-6
    )
    assert len(metrics.loss) == len(metrics.epoch_s) == record.params["EPOCHS"]
    assert metrics.train_s > 0 and metrics.data_s > 0 and metrics.build_s > 0 and metrics.evaluate_s > 0
    if len(metrics.loss) > 1:
        assert metrics.loss[-1] < metrics.loss[0]
    else:
        assert metrics.loss[0] < math.log(10), "no better than guessing"
    if floor:
        assert metrics.accuracy > 0.20
