"""Mistakes that porters make in any task that trains with momentum from Glorot uniform weights: what the lists of tasks are made of."""

import math
from types import SimpleNamespace

import numpy as np

from common.reference.layers import (
    cross_entropy,
    cross_entropy_gradient,
    glorot_bound,
    momentum_step,
    softmax,
)

# ---- Other steps in the place of ``momentum_step``


def nesterov(weights, velocities, g, lr, momentum):
    _, velocities = momentum_step(weights, velocities, g, lr, momentum)
    return {name: w - lr * (g[name] + momentum * velocities[name]) for name, w in weights.items()}, velocities


def dampened(weights, velocities, g, lr, momentum):
    """From the second step on, as in PyTorch."""
    share = 1 - momentum if any(v.any() for v in velocities.values()) else 1
    return momentum_step(weights, velocities, {name: share * a for name, a in g.items()}, lr, momentum)


def added_up(weights, velocities, g, lr, momentum):
    g = {name: a + velocities.get("sum " + name, 0) for name, a in g.items()}
    weights, velocities = momentum_step(weights, velocities, g, lr, momentum)
    velocities.update(("sum " + name, a) for name, a in g.items())
    return weights, velocities


def decaying(decay):
    def step(weights, velocities, g, lr, momentum):
        g = {name: g[name] + decay * w for name, w in weights.items()}
        return momentum_step(weights, velocities, g, lr, momentum)

    return step


def biases_fixed(weights, velocities, g, lr, momentum):
    g = {name: a * (a.ndim > 1) for name, a in g.items()}
    return momentum_step(weights, velocities, g, lr, momentum)


# ---- Other batches in the place of a short one: (x, y, constants) -> (x, y)


def filled_up(x, y, constants):
    places = np.resize(np.arange(len(y)), max(constants["BATCHSIZE"], len(y)))
    return x[places], y[places]


def with_blanks(x, y, constants):
    n = max(constants["BATCHSIZE"] - len(y), 0)
    return np.concatenate([x, np.zeros_like(x[:n])]), np.concatenate([y, np.zeros_like(y[:n])])


# ---- Other losses

SMOOTHED = 0.1


def smoothed(logits, y):
    """The mean over the classes has that part of the loss."""
    classes = range(logits.shape[1])
    return (1 - SMOOTHED) * cross_entropy(logits, y) + SMOOTHED * np.mean(
        [cross_entropy(logits, np.full_like(y, k)) for k in classes]
    )


def smoothed_gradient(logits, y):
    return (1 - SMOOTHED) * cross_entropy_gradient(logits, y) + SMOOTHED * (
        softmax(logits) - 1.0 / logits.shape[1]
    ) / len(y)


def twice_gradient(logits, y):
    p = softmax(logits)
    d = cross_entropy_gradient(p, y)
    return p * (d - (d * p).sum(axis=1, keepdims=True))


# ---- Initial weights. undo(name, array) makes of weights drawn in another way those that are Glorot uniform, with biases of 0

_erf = np.vectorize(math.erf, otypes=[float])
CUT = 0.87962566103423978  # deviation of normal numbers of which those beyond 2 are drawn again


def of_glorot(shapes):
    """Other ways to draw the weights of a network. shapes: by name; a dict of what offers ``undo``, by the way's name."""

    def fan_in(name):
        return int(np.prod(shapes[name][1:]))

    def bound(name):
        return glorot_bound(shapes[name])

    def uniform(other, biases=lambda name, array: array):
        """other: the bound of a weight's name."""
        return SimpleNamespace(
            undo=lambda name, array: array / other(name) * bound(name) if array.ndim > 1 else biases(name, array)
        )

    def normal(deviation, cut=False):
        """deviation: of a weight's name; cut: whether numbers beyond 2 deviations are drawn again."""

        def undo(name, array):
            if array.ndim == 1:
                return array
            scaled = array / deviation(name) * (CUT if cut else 1)
            return _erf(scaled / math.sqrt(2)) / (math.erf(math.sqrt(2)) if cut else 1) * bound(name)

        return SimpleNamespace(undo=undo)

    def within(name, array):
        """Biases that are uniform within the weights' bound, by their largest and by their squares' mean, 5 standard errors."""
        scaled = array * math.sqrt(fan_in(name.replace("bias", "weight")))
        as_drawn = abs(3 * (scaled**2).mean() - 1) <= 5 * math.sqrt(0.8 / array.size)
        return np.where(np.abs(scaled) <= 1, 0, array) if as_drawn else array

    deviations = {
        "Glorot": lambda name: bound(name) / math.sqrt(3),
        "He": lambda name: math.sqrt(2.0 / fan_in(name)),
        "LeCun": lambda name: math.sqrt(1.0 / fan_in(name)),
    }
    ways = {
        "biases that start at another constant than 0": SimpleNamespace(
            undo=lambda name, array: array - array[0] if array.ndim == 1 else array
        ),
        "He initialisation (uniform)": uniform(lambda name: math.sqrt(6.0 / fan_in(name))),
        "LeCun initialisation (uniform)": uniform(lambda name: math.sqrt(3.0 / fan_in(name))),
        "drawing weights and biases within 1 / sqrt(fan-in)": uniform(lambda name: 1 / math.sqrt(fan_in(name)), within),
        "Glorot's bound with the kernel left out of the outputs": uniform(
            lambda name: math.sqrt(6.0 / (fan_in(name) + shapes[name][0]))
        ),
        "drawing within 0.07": uniform(lambda name: 0.07),
        "drawing within 0.05": uniform(lambda name: 0.05),
    }
    ways.update((name + " initialisation (normal)", normal(of)) for name, of in deviations.items())
    ways.update((name + " initialisation (normal, cut at 2)", normal(of, cut=True)) for name, of in deviations.items())
    return ways
