"""Every row is really trained, on its own environment, and its record is looked at."""

import math
import os
from dataclasses import dataclass

import pytest

from rosetta import catalog
from rosetta.batch.workers import Workers
from rosetta.catalog import Row
from rosetta.plan import make
from rosetta.records import Record
from rosetta.run import devices
from rosetta.run.execute import execute
from rosetta.run.kernels import Kernels

KNOWN = catalog.load()
TASK = "cifar10_cnn"
ROWS = KNOWN.rows(TASK)

# One epoch of 5,000 real images must beat 20 % (guessing: 10 %). With dropout and batch 64 the network is only just
# beginning to learn by then (15 to 25 %, by chance), so the floor is for a run without dropout and with twice the steps.
FLOOR = {"EPOCHS": 1, "N_TRAIN": 5000, "N_TEST": 1000, "BATCHSIZE": 32}
# The others take too long for that on 2 CPU cores, or have a relative that does it: their loss has to fall.
# That they are the same network is another test's.
SHORT = dict.fromkeys(
    ("paddle", "chainer", "caffe2", "cntk", "keras2[theano]", "keras2[cntk]")
    + (
        "pytorch[compiled]",
        "pytorch[torch1]",
        "lightning",
        "keras[jax]",
        "keras[torch]",
        "equinox",
        "mxnet_module",
        "keras2[tensorflow]",
        "keras[tensorflow]",
        "mindspore",
    ),
    {"EPOCHS": 2, "N_TRAIN": 640, "N_TEST": 500, "BATCHSIZE": 32},
) | {
    "tinygrad": {"EPOCHS": 2, "N_TRAIN": 336, "N_TEST": 100},
    "mlx": {"EPOCHS": 2, "N_TRAIN": 80, "N_TEST": 20},
    "mlx[streams]": {"EPOCHS": 2, "N_TRAIN": 80, "N_TEST": 20},
}


REAL = bool(os.environ.get("ROSETTA_DATA"))


@dataclass(frozen=True)
class Trained:
    record: Record
    log: str


@pytest.fixture(scope="module")
def trained(request) -> dict[str, Trained]:
    """Every row that is asked for, trained in its own environment; they are not timed, so two may run side by side."""
    kernels, workers = Kernels(), Workers(devices.shared(gpus=None, jobs=None))

    def train(row: Row) -> tuple[str, Trained]:
        size = SHORT.get(row.name, FLOOR)
        (plan,) = make(KNOWN, [row], "smoke", size, gpu=False, synthetic=not REAL, timeout_s=1200)
        own = {"TEST_EACH_EPOCH": True} | ({"DROPOUT": False} if size is FLOOR else {})
        changed = plan.model_copy(update={"parameters": plan.parameters | own})
        with workers.share() as slot:
            run = execute(changed, slot, kernels, watch=lambda progress: None)
        try:
            return row.name, Trained(run.record, run.log.read_text(errors="replace") if run.log.exists() else "")
        finally:
            run.close()

    asked = [item.callspec.params["row"] for item in request.session.items if item.originalname == "test_row_trains"]
    return dict(workers.each(train, asked))


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_trains(row, trained, missing):
    if not REAL and os.environ.get("CI"):
        pytest.fail("ROSETTA_DATA must name the real data in CI")
    one = trained[row.name]
    if one.record.status == "skipped":
        missing(one.record.error)
    check(one.record, one.log, floor=REAL and row.name not in SHORT)


def check(record: Record, log: str, floor: bool) -> None:
    assert record.status == "ok", f"{record.error}\n{log[-3000:]}"
    metrics = record.metrics
    assert metrics.parameters == 3_441_592
    assert record.dataset.n_train == record.params["N_TRAIN"] and record.dataset.n_test == record.params["N_TEST"]
    # accuracy is a whole number of the test images
    assert metrics.accuracy * record.dataset.n_test == pytest.approx(
        round(metrics.accuracy * record.dataset.n_test), abs=1e-6
    )
    assert len(metrics.loss) == len(metrics.epoch_s) == len(metrics.epoch_accuracy) == record.params["EPOCHS"]
    assert metrics.epoch_accuracy[-1] == metrics.accuracy, (
        "training went on after the last test, or dropout was left on"
    )
    assert (
        metrics.start_s > 0
        and metrics.train_s > 0
        and metrics.data_s > 0
        and metrics.build_s > 0
        and metrics.evaluate_s > 0
    )
    if len(metrics.loss) > 1:
        assert metrics.loss[-1] < metrics.loss[0]
    else:
        assert metrics.loss[0] < math.log(10), "no better than guessing"
    if floor:
        assert metrics.accuracy > 0.20
