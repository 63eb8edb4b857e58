"""One convolution, for the first minute on a new machine: what it is computed from, and how far a framework's answer is off.

Its result is known in float64, so an answer tells whether a device computes at all, and whether in FP32: TF32 and half
precision are off by a hundred times more.
"""

import json
import sys

import numpy as np

from common.record import finite
from common.reference import layers
from common.versions import cuda_libraries

MARK = "rosetta-check "  # begins the line of the facts
ALLOWED = 5e-5  # of the largest value: FP32 stays far below, whatever the algorithm; TF32 is off by 3e-4
IMAGES, CHANNELS, SIZE = 8, 64, 32


def inputs():
    """Images (8, 64, 32, 32) and kernels (64, 64, 3, 3), float32, the same everywhere; to be convolved with padding 1."""
    draw = np.random.RandomState(0)
    x = draw.standard_normal((IMAGES, CHANNELS, SIZE, SIZE))
    w = draw.standard_normal((CHANNELS, CHANNELS, 3, 3))
    return x.astype(np.float32), w.astype(np.float32)


def off(y):
    """The largest error of an answer (8, 64, 32, 32), by the largest value of the exact one; NaN if not all of it is finite."""
    x, w = inputs()
    exact = layers.conv(x.astype(np.float64), w.astype(np.float64), np.zeros(CHANNELS))
    y = np.asarray(y)
    if y.shape != exact.shape:
        raise ValueError("the answer has the shape %s, not %s" % (y.shape, exact.shape))
    return float(np.abs(y - exact).max() / np.abs(exact).max())


def tell(y, device):
    """Print the facts of an answer as one line. device: what the framework calls the device that it computed on."""
    facts = {"off": finite(off(y)), "device": str(device), "cuda": cuda_libraries()}
    print("\n" + MARK + json.dumps(facts, sort_keys=True))
    sys.stdout.flush()
