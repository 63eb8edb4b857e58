"""Mistakes that porters make in the task ``resnet50_features``, each as a variation of its reference.

``of(flavour)`` gives the lists: what is a mistake depends on what is right. The values of FORWARD offer ``outputs(weights, x)``, those of
CARRIED are the tensors that a mistake changes.
"""

from types import SimpleNamespace

import numpy as np

from common.params.resnet50_features import DEVIATION, EXPECTED, FLAVOURS, MEAN, WEIGHT_SHAPES
from common.reference.layers import relu
from common.reference.resnet50_features import Network

# ---- What happens to images

_MEAN, _DEVIATION = np.array(MEAN)[:, None, None], np.array(DEVIATION)[:, None, None]


def _pixels(x):
    """Values from 0 to 1, before they were normalised."""
    return x * _DEVIATION.astype(x.dtype) + _MEAN.astype(x.dtype)


IMAGES = {
    "blue, green, red instead of red, green, blue": lambda x: x[:, ::-1],
    "images that are not normalised": _pixels,
    "images normalised twice": lambda x: (x - _MEAN.astype(x.dtype)) / _DEVIATION.astype(x.dtype),
    "pixels from 0 to 255, minus the mean alone": lambda x: 255 * (_pixels(x) - _MEAN.astype(x.dtype)),
    "pixels from -1 to 1": lambda x: 2 * _pixels(x) - 1,
    "a crop that is off by one pixel": lambda x: np.roll(x, 1, axis=3),
    "height and width swapped": lambda x: x.transpose(0, 1, 3, 2),
    "mirrored images": lambda x: x[:, :, :, ::-1],
    "images read as channels last": lambda x: np.moveaxis(x.reshape(len(x), 224, 224, 3), -1, 1),
}

# ---- What happens to weights

CARRIED = {
    "batch norm in training mode, which gathers statistics": [name for name in WEIGHT_SHAPES if "running" in name]
}

# ---- What happens in the network


class OfBatch(Network):
    """Batch norm divides by the statistics of the batch, as in training."""

    def outputs(self, weights, x):
        return self.features(weights, x)

    def norm(self, weights, name, x):
        mean, variance = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
        own = {name + ".running_mean": mean, name + ".running_var": variance}
        return super(OfBatch, self).norm(dict(weights, **own), name, x)


class Unscaled(Network):
    """Batch norm neither scales nor shifts."""

    def norm(self, weights, name, x):
        ones = np.ones_like(weights[name + ".weight"])
        own = {name + ".weight": ones, name + ".bias": 0 * ones}
        return super(Unscaled, self).norm(dict(weights, **own), name, x)


class WithoutShortcut(Network):
    """A bottleneck's input is not added to its output."""

    def bottleneck(self, weights, name, x, strides):
        for number, stride in enumerate(strides, start=1):
            x = relu(self.unit(weights, name, number, x, stride))
        return x


class ReluBeforeAddition(Network):
    def bottleneck(self, weights, name, x, strides):
        shortcut = self.shortcut(weights, name, x, strides)
        for number, stride in enumerate(strides, start=1):
            x = relu(self.unit(weights, name, number, x, stride))
        return x + shortcut


class Largest(Network):
    """The largest of all pixels in the place of their mean."""

    def pooled(self, x):
        return x.max(axis=(2, 3))


def of(flavour):
    """The mistakes of a row of this flavour."""
    right, count = FLAVOURS[flavour], EXPECTED[flavour]["parameters"]

    def network(kind=Network, **changed):
        return kind(count, **dict(right, **changed))

    def seen(change):
        return SimpleNamespace(outputs=lambda weights, x: network().outputs(weights, change(x)))

    forward = {name: seen(change) for name, change in IMAGES.items()}
    others = {"first 1x1": (0, 0), "first 3x3": (0, 1), "last 3x3": (-1, 1)}
    forward.update(
        ("the stride in the %s convolution of a stage" % name, network(stride=stride))
        for name, stride in others.items()
        if stride != right["stride"]
    )
    pools = {"on both sides": (1, 1), "behind alone": (0, 1), "nowhere": (0, 0)}
    forward.update(
        ("a first pooling that is padded %s" % name, network(pool=pool))
        for name, pool in pools.items()
        if pool != right["pool"]
    )
    forward.update(
        ("an epsilon of %g in batch norm" % epsilon, network(epsilon=epsilon))
        for epsilon in (0.0, 1e-5, 2e-5, 1e-4, 1e-3)
        if abs(epsilon - right["epsilon"]) > 1e-7
    )
    forward.update(
        {
            "batch norm by the statistics of the batch, as in training": network(OfBatch),
            "batch norm without scale and shift": network(Unscaled),
            "bottlenecks without their shortcut": network(WithoutShortcut),
            "a ReLU before the addition, none after it": network(ReluBeforeAddition),
            "the largest of all pixels in the place of their mean": network(Largest),
        }
    )
    return SimpleNamespace(FORWARD=forward, CARRIED=CARRIED)
