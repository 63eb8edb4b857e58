"""One convolution as a check: FP32 passes, what computes in less does not."""

import json

import numpy as np
import pytest

from common import check
from common.reference import layers


def convolved(round_to):
    """The exact convolution of inputs that are rounded before."""
    x, w = (round_to(array).astype(np.float64) for array in check.inputs())
    return layers.conv(x, w, np.zeros(check.CHANNELS))


def bits(kept):
    """Rounds float32 to so many bits of mantissa: TF32 keeps 10, BF16 7."""

    def round_to(array):
        step = 1 << (23 - kept)
        return ((array.view(np.uint32) + step // 2) & ~np.uint32(step - 1)).view(np.float32)

    return round_to


def test_what_passes_and_what_does_not():
    exact = check.off(convolved(lambda array: array))
    in_float32 = check.off(convolved(lambda array: array).astype(np.float32))
    assert exact == 0 and in_float32 < 1e-6 < check.ALLOWED / 10
    assert check.off(convolved(bits(10))) > 4 * check.ALLOWED, "TF32"
    assert check.off(convolved(bits(7))) > 40 * check.ALLOWED, "BF16"


def test_inputs_are_the_same_everywhere():
    x, w = check.inputs()
    assert x.dtype == w.dtype == np.float32 and x.shape == (8, 64, 32, 32) and w.shape == (64, 64, 3, 3)
    assert np.array_equal(x, check.inputs()[0]) and abs(float(x[0, 0, 0, 0]) - 1.7640524) < 1e-6


def test_the_line_of_the_facts(capsys):
    y = convolved(lambda array: array)
    y[0, 0, 0, 0] = np.nan
    check.tell(y, "cuda:0")
    line = capsys.readouterr().out.strip()
    facts = json.loads(line[len(check.MARK) :])
    assert line.startswith(check.MARK) and facts["off"] is None and facts["device"] == "cuda:0"


def test_an_answer_of_another_shape():
    with pytest.raises(ValueError, match=r"the answer has the shape \(8, 64, 30, 30\), not \(8, 64, 32, 32\)"):
        check.off(np.zeros((8, 64, 30, 30)))
