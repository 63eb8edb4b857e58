"""Mistakes that porters make in any task that trains a classifier: ``of_any``, and what the lists of tasks are made of."""

from types import SimpleNamespace

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


# ---- Of any task, whatever its network


def of_any(train, classes, constants):
    """Mistakes that need nothing but the reference's ``train``: a dict like TRAINING of a task's list.

    classes: how many there are. constants: of the task; without MOMENTUM there is none to be wrong.
    """

    def scaled(rate, told=lambda n: 1):
        """rate, told: of a batch's size and the constants, what the learning rate and the losses are multiplied by."""

        def mistaken(weights, batches, constants):
            n = len(batches[0][1])
            weights, losses = train(weights, batches, dict(constants, LR=constants["LR"] * rate(n, constants)))
            return weights, [loss * told(n) for loss in losses]

        return SimpleNamespace(train=mistaken)

    def labelled(shift):
        def mistaken(weights, batches, constants):
            return train(weights, [(x, (y + shift) % classes) for x, y in batches], constants)

        return SimpleNamespace(train=mistaken, labels=lambda y: (y + shift) % classes)

    def told(tell):
        """tell: the losses before and after each step -> what the notebook says they are."""

        def mistaken(weights, batches, constants):
            (trained, losses), (_, more) = (
                train(weights, each, constants) for each in (batches, batches + batches[-1:])
            )
            return trained, list(tell(np.array(losses + more[-1:])))

        return SimpleNamespace(train=mistaken)

    def without_momentum(weights, batches, constants):
        return train(weights, batches, dict(constants, MOMENTUM=0))

    found = {
        "a short batch divided by BATCHSIZE": scaled(lambda n, constants: n / float(constants["BATCHSIZE"])),
        "a summed loss": scaled(lambda n, constants: n, told=lambda n: n),
        "a summed loss, told as the mean": scaled(lambda n, constants: n),
        "a mean loss, told as the sum": scaled(lambda n, constants: 1, told=lambda n: n),
        "a learning rate ten times as high": scaled(lambda n, constants: 10),
        "a learning rate ten times as low": scaled(lambda n, constants: 0.1),
        "labels off by one": labelled(1),
        "labels off by one, downwards": labelled(-1),
        "the loss after the step": told(lambda losses: losses[1:]),
        "the mean of all losses so far": told(lambda losses: np.cumsum(losses[:-1]) / np.arange(1, len(losses))),
    }
    if "MOMENTUM" in constants:
        found["momentum 0"] = SimpleNamespace(train=without_momentum)
        found["unit-gain momentum"] = scaled(lambda n, constants: 1 - constants["MOMENTUM"])
    return found
