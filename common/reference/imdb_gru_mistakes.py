"""Mistakes that porters make in the task ``imdb_gru``, each as a variation of its reference: see ``cifar10_cnn_mistakes.py``.

``of(flavour)`` gives the lists: what is a mistake depends on what is right.
"""

from types import SimpleNamespace

import numpy as np

from common.params.imdb_gru import BETA_1, BETA_2, EPSILON, FLAVOURS
from common.reference.imdb_gru import Network
from common.reference.layers import adam_step

BETAS = BETA_1, BETA_2

# ---- What happens to reviews, labels and weights: of all levels


def _padded_in_front(x):
    """Of each review the padding goes to the front."""
    return np.array([np.roll(review, (review == 0).sum()) for review in x])


def _without_start(x):
    begun = x[:, :1] == 1
    return np.where(begun, np.concatenate([x[:, 1:], np.zeros_like(x[:, :1])], axis=1), x)


REVIEWS = {
    # Before its first word a review has padding or nothing: the state has forgotten it after some words
    "reviews padded at the front, or padding that is skipped": _padded_in_front,
    "reading reviews from their end to their start": lambda x: x[:, ::-1],
    "a missing start mark": _without_start,
    "ranks without the offset of 3": lambda x: np.where(x > 2, x - 3, x),
    "word numbers off by one": lambda x: x + (x > 0),
    "reviews cut after 100 words": lambda x: x[:, :100],
}
LABELS = {"exchanged labels": lambda y: 1 - y}


def _gates(change):
    """change: of (r, z, n), three parts of a matrix or bias."""

    def changed(weights):
        gates = [name for name in weights if name.startswith("gru") and len(weights[name]) == 300]
        return dict(weights, **{name: np.concatenate(change(*np.split(weights[name], 3))) for name in gates})

    return changed


WEIGHTS = {
    "gates in the order z, r, n": _gates(lambda r, z, n: (z, r, n)),
    "gates in the order n, z, r": _gates(lambda r, z, n: (n, z, r)),
    "gates in the order r, n, z": _gates(lambda r, z, n: (r, n, z)),
    "gates in the order z, n, r": _gates(lambda r, z, n: (n, r, z)),
    "gates in the order n, r, z": _gates(lambda r, z, n: (z, n, r)),
    "z and 1 - z exchanged": _gates(lambda r, z, n: (r, -z, n)),
    "no biases in the GRU": lambda weights: {
        name: array * (array.ndim > 1 or name == "fc.bias") for name, array in weights.items()
    },
    "a transposed recurrent matrix": lambda weights: dict(
        weights, **{"gru.weight_hh": np.concatenate([gate.T for gate in np.split(weights["gru.weight_hh"], 3)])}
    ),
}


class OfStep(Network):
    """The dense layer gets the state after another step."""

    place = 1

    def forward(self, weights, x):
        logits, (words, states, gates) = super(OfStep, self).forward(weights, x)
        return np.matmul(states[self.place], weights["fc.weight"].T) + weights["fc.bias"], (words, states, gates)


class Mean(Network):
    """The dense layer gets the mean of all states."""

    def forward(self, weights, x):
        _, (words, states, gates) = super(Mean, self).forward(weights, x)
        return np.matmul(states[1:].mean(axis=0), weights["fc.weight"].T) + weights["fc.bias"], (words, states, gates)


# ---- Other optimizers in the place of Adam


class Stepping(Network):
    """``taken``: (weights, means, squares, g, lr, t, squared) -> the same three, a step later."""

    def __init__(self, names, taken):
        super(Stepping, self).__init__(*names)
        self.step = taken


def _uncorrected(w, m, v, g, lr, t, squared):
    m = {name: BETA_1 * m[name] + (1 - BETA_1) * g[name] for name in w}
    v = {name: BETA_2 * v[name] + (1 - BETA_2) * g[name] ** 2 for name in w}
    return {name: w[name] - lr * m[name] / (np.sqrt(v[name]) + EPSILON) for name in w}, m, v


def _inside(w, m, v, g, lr, t, squared):
    _, m, v = adam_step(w, m, v, g, lr, t, BETAS, EPSILON)
    rate, root = 1 / (1 - BETA_1**t), 1 / (1 - BETA_2**t)
    return {name: w[name] - lr * rate * m[name] / np.sqrt(root * v[name] + EPSILON) for name in w}, m, v


def _lazy(w, m, v, g, lr, t, squared):
    """Words that do not occur stay, and so do their means."""
    moved = adam_step(w, m, v, g, lr, t, BETAS, EPSILON)
    occurs = (g["embedding.weight"] != 0).any(axis=1, keepdims=True)
    for new, old in zip(moved, (w, m, v)):
        new["embedding.weight"] = np.where(occurs, new["embedding.weight"], old["embedding.weight"])
    return moved


def _with(betas=BETAS, epsilon=EPSILON, hat=False):
    return lambda w, m, v, g, lr, t, squared: adam_step(w, m, v, g, lr, t, betas, epsilon, hat)


def _occurrences(hat):
    return lambda w, m, v, g, lr, t, squared: adam_step(w, m, v, g, lr, t, BETAS, EPSILON, hat, squared)


def _sgd(w, m, v, g, lr, t, squared):
    return {name: w[name] - lr * g[name] for name in w}, m, v


def _decoupled(decay):
    def step(w, m, v, g, lr, t, squared):
        return adam_step({name: a * (1 - lr * decay) for name, a in w.items()}, m, v, g, lr, t, BETAS, EPSILON)

    return step


def _fixed(name):
    def step(w, m, v, g, lr, t, squared):
        moved = adam_step(w, m, v, g, lr, t, BETAS, EPSILON)
        moved[0][name] = w[name]
        return moved

    return step


OPTIMIZERS = {
    "Adam without the correction of its means": _uncorrected,
    "Adam's epsilon inside the root": _inside,
    "lazy Adam, which leaves words alone that do not occur": _lazy,
    "Adam's epsilon beside the root that is not corrected": _with(hat=True),
    "Adam's epsilon outside the corrected root": _with(),
    "an epsilon of 1e-7": _with(epsilon=1e-7),
    "an epsilon of 1e-7 beside the root that is not corrected": _with(epsilon=1e-7, hat=True),
    "a beta 2 of 0.99": _with(betas=(BETA_1, 0.99)),
    "the squares of a word's occurrences, not of their sum": _occurrences(hat=False),
    "SGD in the place of Adam": _sgd,
    "decoupled weight decay of 0.01": _decoupled(0.01),
    "embeddings that are not trained": _fixed("embedding.weight"),
}


def of(flavour):
    """The mistakes of a row of this flavour."""
    names = FLAVOURS[flavour]
    right = Network(*names)

    def fed(change):
        return SimpleNamespace(probabilities=lambda weights, x: right.probabilities(weights, change(x)))

    def weighed(change):
        return SimpleNamespace(probabilities=lambda weights, x: right.probabilities(change(weights), x))

    def trained_on(change, **more):
        """change: (x, y) of a batch -> another batch."""

        def train(weights, batches, constants):
            return right.train(weights, [change(*batch) for batch in batches], constants)

        return SimpleNamespace(train=train, **more)

    def scaled(told):
        """A summed loss; told: what the losses are multiplied by."""
        network = Network(*names)

        def gradients(weights, x, y):
            loss, g, d = Network.gradients(network, weights, x, y)
            return loss * told(len(y)), {name: a * len(y) for name, a in g.items()}, d * len(y)

        network.gradients = gradients
        return network

    other, first = Network(*names), OfStep(*names)
    other.reset_after = not right.reset_after
    forward = {
        "the other GRU (%s)" % ("reset_after" if other.reset_after else "reset_before"): other,
        "the state after the first step": first,
        "the mean of all states": Mean(*names),
    }
    forward.update((name, fed(change)) for name, change in REVIEWS.items())
    forward.update((name, weighed(change)) for name, change in WEIGHTS.items())
    training = {
        name: Stepping(names, step)
        for name, step in OPTIMIZERS.items()
        if name
        != "Adam's epsilon "
        + ("beside the root that is not corrected" if right.epsilon_hat else "outside the corrected root")
    }
    training["a summed loss"] = scaled(lambda n: n)
    training["a summed loss, told as the mean"] = scaled(lambda n: 1)
    training.update((name, trained_on(lambda x, y, f=f: (x, f(y)), labels=f)) for name, f in LABELS.items())
    training.update((name + " in training", trained_on(lambda x, y, f=f: (f(x), y))) for name, f in REVIEWS.items())
    return SimpleNamespace(FORWARD=forward, TRAINING=training)
