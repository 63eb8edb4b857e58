"""Mistakes that porters make in the task ``cifar10_cnn``, each as a variation of its reference.

``run_all.py verify`` replays them where a level has failed, to name the one that computes the notebook's numbers. A variation
is the reference's own code with some of its functions replaced, or with other inputs, labels or weights. What each dict's
variations offer is said above it. The keys are what the reader is told: "this is what happens with ...".
"""

import importlib.util
import itertools
from types import SimpleNamespace

import numpy as np

from common.params.cifar10_cnn import FLATTENED
from common.reference import cifar10_cnn as right
from common.reference import mistakes
from common.reference.layers import (
    cross_entropy,
    momentum_step,
    relu,
    softmax,
)


def reference(**replaced):
    """The reference as a module of its own, with these of its names replaced."""
    spec = importlib.util.find_spec(right.__name__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module).update(replaced)
    return module


# ---- What happens to inputs, labels and weights: of all levels


def _channels_last(x):
    return x.reshape(len(x), 32, 32, 3).transpose(0, 3, 1, 2)


def _standardised(x):
    mean, std = np.array([[0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]], x.dtype)
    return (x - mean[:, None, None]) / std[:, None, None]


IMAGES = {
    "height and width swapped": lambda x: x.swapaxes(2, 3),
    "reading channels-first images as channels last": _channels_last,
    "blue, green, red instead of red, green, blue": lambda x: x[:, ::-1],
    "images upside down": lambda x: x[:, :, ::-1],
    "mirrored images": lambda x: x[:, :, :, ::-1],
    "pixels from 0 to 255": lambda x: x * 255,
    "pixels from -1 to 1": lambda x: x * 2 - 1,
    "pixels from -0.5 to 0.5": lambda x: x - 0.5,
    "pixels standardised by channel": _standardised,
    "pixels divided by 255 twice": lambda x: x / 255,
}
LABELS = {"labels off by one": lambda y: (y + 1) % 10, "labels off by one, downwards": lambda y: (y - 1) % 10}


def _convolutions(change):
    return lambda weights: {name: change(w) if w.ndim == 4 else w for name, w in weights.items()}


def _of_fc1(change):
    return lambda weights: dict(weights, **{"fc1.weight": change(weights["fc1.weight"])})


C, H, W = FLATTENED["fc1.weight"]
WEIGHTS = {
    "flattening by height, width, channel": _of_fc1(
        lambda w: w.reshape(-1, H, W, C).transpose(0, 3, 1, 2).reshape(w.shape)
    ),
    "exporting fc1 by height, width, channel": _of_fc1(
        lambda w: w.reshape(-1, C, H, W).transpose(0, 2, 3, 1).reshape(w.shape)
    ),
    "mirrored kernels": _convolutions(lambda w: w[:, :, ::-1, ::-1]),
    "kernels with height and width swapped": _convolutions(lambda w: w.swapaxes(2, 3)),
    "no biases": lambda weights: {name: w * (w.ndim > 1) for name, w in weights.items()},
}

# ---- FORWARD: probabilities(weights, x)


def _mean_pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).mean(axis=(3, 5))


RELUS = ("conv1", "the first pooling", "conv3", "the second pooling", "fc1")  # in the order of a forward pass


def _without_relu(place):
    calls = itertools.count()
    return lambda x: x if next(calls) % len(RELUS) == place else relu(x)


def _of_logits(say):
    return reference(softmax=say)


FORWARD = {"average pooling": reference(max_pool=_mean_pool)}
FORWARD.update(("no ReLU after " + name, reference(relu=_without_relu(place))) for place, name in enumerate(RELUS))
FORWARD.update(
    (name, SimpleNamespace(probabilities=lambda weights, x, change=change: right.probabilities(weights, change(x))))
    for name, change in IMAGES.items()
)
FORWARD.update(
    (name, SimpleNamespace(probabilities=lambda weights, x, change=change: right.probabilities(change(weights), x)))
    for name, change in WEIGHTS.items()
)
FORWARD.update(
    {
        "a second softmax": _of_logits(lambda logits: softmax(softmax(logits))),
        "logits in place of probabilities": _of_logits(lambda logits: logits),
        "logarithms of probabilities": _of_logits(lambda logits: np.log(softmax(logits))),
        "a sigmoid in place of the softmax": _of_logits(lambda logits: 1 / (1 + np.exp(-logits))),
        "leaky ReLUs": reference(relu=lambda x: np.where(x > 0, x, 0.01 * x)),
        "tanh in place of ReLU": reference(relu=np.tanh),
    }
)

# ---- TRAINING: train(weights, batches, constants), and labels(y) where these change; the commonest first


class _Remembering(object):
    """``gradients`` of the reference, which remembers the last of each batch: replays begin with the same weights."""

    def __init__(self):
        self.first = None

    def __call__(self, weights, x, y):
        if self.first and all(a is b for a, b in zip(self.first, (weights, x, y))):
            return self.first[3]
        found = right.gradients(weights, x, y)
        if self.first is None or self.first[1] is not x:
            self.first = (weights, x, y, found)
        return found


_gradients = _Remembering()


def _stepping(step):
    return reference(gradients=_gradients, momentum_step=step)


def _train(weights, batches, constants, rate=1.0):
    """As the reference, with another learning rate."""
    return _plain.train(weights, batches, dict(constants, LR=constants["LR"] * rate))


_plain = _stepping(momentum_step)


def _scaled(rate, loss=lambda n: 1):
    """rate, loss: of the number of examples in a batch and of the constants, what learning rate and loss are multiplied by."""

    def train(weights, batches, constants):
        n = len(batches[0][1])
        weights, losses = _train(weights, batches, constants, rate(n, constants))
        return weights, [value * loss(n) for value in losses]

    return SimpleNamespace(train=train)


def _told(tell):
    """tell: the losses before and after each step -> what the notebook says they are."""

    def train(weights, batches, constants):
        weights, losses = _train(weights, batches, constants)
        x, y = batches[-1]
        return weights, list(tell(np.array(losses + [cross_entropy(right.forward(weights, x)[0], y)])))

    return SimpleNamespace(train=train)


def _batches(change, **more):
    """change: (x, y, constants) of a batch -> another batch."""

    def train(weights, batches, constants):
        made = {}  # the same batch stays the same
        for x, y in batches:
            made.setdefault(id(x), change(x, y, constants))
        return right.train(weights, [made[id(x)] for x, _ in batches], constants)

    return SimpleNamespace(train=train, **more)


TRAINING = {
    "momentum 0": _stepping(lambda w, v, g, lr, momentum: momentum_step(w, v, g, lr, 0)),
    "Nesterov's momentum": _stepping(mistakes.nesterov),
    "unit-gain momentum": _scaled(lambda n, constants: 1 - constants["MOMENTUM"]),
    "a short batch divided by BATCHSIZE": _scaled(lambda n, constants: n / float(constants["BATCHSIZE"])),
    "a summed loss": _scaled(lambda n, constants: n, loss=lambda n: n),
    "a summed loss, told as the mean": _scaled(lambda n, constants: n),
    "weight decay of 1e-4": _stepping(mistakes.decaying(1e-4)),
    "weight decay of 5e-4": _stepping(mistakes.decaying(5e-4)),
}
TRAINING.update((name, _batches(lambda x, y, _, f=f: (x, f(y)), labels=f)) for name, f in LABELS.items())
RARER = {
    "dampened momentum": _stepping(mistakes.dampened),
    "adding up the gradients of all steps": _stepping(mistakes.added_up),
    "a loss smoothed by 0.1": reference(
        cross_entropy=mistakes.smoothed, cross_entropy_gradient=mistakes.smoothed_gradient
    ),
    "a second softmax in the loss": reference(
        cross_entropy=lambda logits, y: cross_entropy(softmax(logits), y),
        cross_entropy_gradient=mistakes.twice_gradient,
    ),
    "a short batch filled up with its first images": _batches(mistakes.filled_up),
    "a short batch filled up with black images": _batches(mistakes.with_blanks),
    "a short batch scaled up to BATCHSIZE": _scaled(lambda n, constants: constants["BATCHSIZE"] / float(n)),
    "biases that are not trained": _stepping(mistakes.biases_fixed),
    "the loss after the step": _told(lambda losses: losses[1:]),
    "the mean of all losses so far": _told(lambda losses: np.cumsum(losses[:-1]) / np.arange(1, len(losses))),
}
TRAINING.update(RARER)
TRAINING.update((name + " in training", _batches(lambda x, y, _, f=f: (f(x), y))) for name, f in IMAGES.items())

# ---- SIZES: how many inputs mistakes make for fc1, in place of SIZE; errors tell it

SIZE = C * H * W
SIZES = {
    C * 5 * 5: "valid padding",
    C * 16 * 16: "a pooling left out",
    C * 32 * 32: "both poolings left out",
    C * 4 * 4: "a pooling too many",
}
