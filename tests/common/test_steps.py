"""The clock of timed steps."""

import time

import numpy as np
import pytest

from common.passes import PassLog, record_passes
from common.steps import StepLog


def test_time_of_a_batch_is_waiting():
    def slow():
        while True:
            time.sleep(0.02)
            yield "batch"

    log, batches = StepLog(2), slow()
    for steps in (1, 2, 2):
        for batch in log.take(batches, steps):
            assert batch == "batch"
            time.sleep(0.02)
        log.done(steps, 1.0)
    assert len(log.step_s) == 2 and min(log.step_s) >= 0.04, "the warm-up does not count"
    assert len(log.waiting) == 2 and min(log.waiting) > 0.3 and max(log.waiting) < 0.7


def test_steps_without_batches_wait_for_none():
    log = StepLog(1)
    log.done(1, np.float32(2))
    log.done(3, np.float32(2))
    assert log.waiting == [0.0]


def test_result_that_may_still_be_computed_is_refused():
    with pytest.raises(TypeError, match="so that the device has finished"):
        StepLog(1).done(1, object())


def test_outputs_that_are_not_finite_are_no_result():
    log = PassLog()
    for _ in range(2):
        log.done(np.array([[1, 2], [np.nan, 2], [1, np.inf]], np.float32))
    with pytest.raises(ValueError, match="the outputs of 2 of 3 inputs are not finite numbers"):
        record_passes(log, 1, [np], "CPU", dict)
