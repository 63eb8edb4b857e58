"""Mistakes that porters make in the task ``densenet_parallel``, each as a variation of its reference: see ``cifar10_cnn_mistakes.py``.

``of(flavour)`` gives the lists: what is a mistake depends on what is right.
"""

from types import SimpleNamespace

import numpy as np

from common.reference import densenet_parallel, network_training

# ---- What a test shows


class FullRange(densenet_parallel.of):
    def inputs(self, weights, x):
        return 255 * super(FullRange, self).inputs(weights, x)


class OfTheBatch(densenet_parallel.of):
    """Batch norm takes the statistics of the test images."""

    def forward(self, weights, x):
        return network_training.traced(self.small.layers, weights, self.inputs(weights, x))[0]


FORWARD = {
    "pixels from 0 to 255": FullRange,
    "batch norm in its training mode": OfTheBatch,
}

# ---- Devices


class Summed(densenet_parallel.of):
    def averaged(self, gradients):
        return {name: sum(each[name] for each in gradients) for name in gradients[0]}


class SummedOfAll(densenet_parallel.of):
    """The same, where one gradient is of the images of all devices."""

    def gradients(self, weights, x, y):
        loss, gradients, statistics = super(SummedOfAll, self).gradients(weights, x, y)
        return loss, {name: self.n * gradient for name, gradient in gradients.items()}, statistics

    def train(self, weights, epochs, constants):
        self.n = constants["DEVICES"]
        return super(SummedOfAll, self).train(weights, epochs, constants)


class Apart(densenet_parallel.of):
    """Each device trains a network of its own. The first one's is exported, and the loss is the mean of all."""

    def train(self, weights, epochs, constants):
        n = constants["DEVICES"]
        size, found = n * constants["BATCHSIZE"], []
        for device in range(n):
            own = []
            for arrays in epochs:
                steps = len(arrays[0]) // size
                own.append([_of_device(a[: steps * size], steps, n, device) for a in arrays])
            found.append(super(Apart, self).train(weights, own, dict(constants, DEVICES=1)))
        trained, losses = zip(*found)
        return trained[0], list(np.mean(losses, axis=0))


def _of_device(array, steps, n, device):
    parts = array.reshape((steps, n, -1) + array.shape[1:])
    return parts[:, device].reshape((-1,) + array.shape[1:])


class SamePart(densenet_parallel.of):
    def devices(self, x, y, constants):
        return super(SamePart, self).devices(x, y, constants)[:1] * constants["DEVICES"]


class LikeCards(densenet_parallel.of):
    def devices(self, x, y, constants):
        return [
            (x[device :: constants["DEVICES"]], y[device :: constants["DEVICES"]])
            for device in range(constants["DEVICES"])
        ]


class OtherNorm(densenet_parallel.of):
    def __init__(self, flavour):
        super(OtherNorm, self).__init__(flavour)
        self.norm = "device" if self.norm == "all" else "all"


class OtherKept(densenet_parallel.of):
    def __init__(self, flavour):
        super(OtherKept, self).__init__(flavour)
        self.kept = "first" if self.kept == "mean" else "mean"


class OfTheLast(densenet_parallel.of):
    def keep(self, weights, found):
        return super(OfTheLast, self).keep(weights, found[-1:])


class OtherVariance(densenet_parallel.of):
    def correction(self, n):
        return n / (n - 1.0) if not self.unbiased else 1.0


class NothingKept(densenet_parallel.of):
    def keep(self, weights, found):
        return {}


class Divided(densenet_parallel.of):
    """BATCHSIZE is taken for that of all devices."""

    def train(self, weights, epochs, constants):
        own = constants["BATCHSIZE"] // constants["DEVICES"]
        return super(Divided, self).train(weights, epochs, dict(constants, BATCHSIZE=own))


class ShortKept(densenet_parallel.of):
    """What is left over at the end of an epoch is a step of its own."""

    def used(self, n, size):
        return n

    def devices(self, x, y, constants):
        parts = zip(*(np.array_split(a, constants["DEVICES"]) for a in (x, y)))
        return [part for part in parts if len(part[0])]


# ---- Adam


class Scaled(densenet_parallel.of):
    def train(self, weights, epochs, constants):
        return super(Scaled, self).train(weights, epochs, dict(constants, LR_SCALE=constants["DEVICES"]))


class OtherEpsilon(densenet_parallel.of):
    def __init__(self, flavour):
        super(OtherEpsilon, self).__init__(flavour)
        self.hat = not self.hat


def of(flavour):
    right = densenet_parallel.of(flavour)
    training = {
        "gradients that are summed over devices": Summed if right.norm == "device" else SummedOfAll,
        "devices that do not exchange gradients": Apart,
        "the same images on every device": SamePart,
        "BATCHSIZE as that of all devices": Divided,
        "what is left over at the end of an epoch": ShortKept,
        "a learning rate that is multiplied by the number of devices": Scaled,
        "Adam's epsilon at the other place": OtherEpsilon,
        "statistics of batch norm that are not kept": NothingKept,
    }
    if right.norm == "device":
        training["images that are dealt out like cards"] = LikeCards
        training["batch norm over the images of all devices"] = OtherNorm
        training[
            "the first device's statistics kept" if right.kept == "mean" else "the mean of all devices' statistics kept"
        ] = OtherKept
        training["the last device's statistics kept"] = OfTheLast
    else:
        training["batch norm over the images of each device"] = OtherNorm
    training["a biased variance kept" if right.unbiased else "an unbiased variance kept"] = OtherVariance
    make = lambda lists: {name: one(flavour) for name, one in lists.items()}  # noqa: E731
    return SimpleNamespace(FORWARD=make(FORWARD), TRAINING=make(training))
