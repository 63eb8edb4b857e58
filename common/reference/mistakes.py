"""Mistakes that porters make in any task that trains with momentum: what the lists of tasks are made of."""

import numpy as np

from common.reference.layers import (
    cross_entropy,
    cross_entropy_gradient,
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
