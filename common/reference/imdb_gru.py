"""The network of the task ``imdb_gru`` in plain NumPy: the definition that every notebook is held against.

Read it from top to bottom: the network; the loss and its gradient; training; the initial weights. The layers, each with its
derivative, stand in ``layers.py`` and ``recurrent.py``. Reviews are numbers of words, (n, 150), padded with 0 at the end; labels are
(n,) class numbers, 0 or 1. ``of(flavour)`` gives the network of one of ``FLAVOURS``; its weights are a dict of arrays with the names
and shapes of its ``WEIGHT_SHAPES``. Everything is computed in the precision of the weights. A line ``# ---- [role]`` begins what
stands for that step of the notebooks.
"""

import numpy as np

from common.params.imdb_gru import BETA_1, BETA_2, EPSILON, FLAVOURS, GRUS
from common.reference.layers import (
    adam_step,
    cross_entropy,
    cross_entropy_gradient,
    dense,
    dense_gradient,
    embedding_gradient,
    glorot_bound,
    softmax,
)
from common.reference.recurrent import gru, gru_gradient


def of(flavour):
    """The network as the frameworks of this flavour have it."""
    return Network(*FLAVOURS[flavour])


class Network(object):
    """The task with one GRU (a key of ``GRUS``) and one Adam (a key of ``ADAMS``)."""

    def __init__(self, gru_name, adam_name):
        self.WEIGHT_SHAPES = GRUS[gru_name]
        self.reset_after = gru_name.startswith("reset_after")
        self.epsilon_hat = adam_name.startswith("epsilon hat")
        self.squares_of_occurrences = adam_name.endswith("squares of occurrences")

    # ---- [model] The network: embedding, GRU, and a dense layer for the state after the last step

    def forward(self, weights, x):
        """Reviews -> logits (n, 2), and the values on the way that the gradients need."""
        words = weights["embedding.weight"][x]
        states, gates = self.recurrence(words, weights)
        return dense(states[-1], weights["fc.weight"], weights["fc.bias"]), (words, states, gates)

    def recurrence(self, words, weights):
        """Embedded reviews (n, 150, 125) -> the state after every step, and the gates of each step."""
        return gru(
            words,
            weights["gru.weight_ih"],
            weights["gru.weight_hh"],
            weights["gru.bias_ih"],
            self.state_bias(weights),
            self.reset_after,
        )

    def state_bias(self, weights):
        """The bias that stands with U h, (300,): 0 where this flavour has none."""
        bias = np.zeros(300, weights["gru.weight_hh"].dtype)
        if "gru.bias_hn" in weights:
            bias[200:] = weights["gru.bias_hn"]
        return weights.get("gru.bias_hh", bias)

    # ---- [optimizer] The gradient of the loss, softmax cross-entropy, by every weight

    def gradients(self, weights, x, y):
        """The loss of a batch, its gradient by every weight, a dict like ``weights``, and that by the embedded words, (n, 150, 125)."""
        logits, (words, states, gates) = self.forward(weights, x)
        g = {}
        d, g["fc.weight"], g["fc.bias"] = dense_gradient(
            cross_entropy_gradient(logits, y), states[-1], weights["fc.weight"]
        )
        matrices = weights["gru.weight_ih"], weights["gru.weight_hh"]
        d, g["gru.weight_ih"], g["gru.weight_hh"], g["gru.bias_ih"], bias = gru_gradient(
            d, words, states, gates, *matrices, reset_after=self.reset_after
        )
        g["gru.bias_hh"], g["gru.bias_hn"] = bias, bias[200:]
        g["embedding.weight"] = embedding_gradient(d, x, len(weights["embedding.weight"]))
        return cross_entropy(logits, y), {name: g[name] for name in weights}, d

    # ---- [train] Training

    def train(self, weights, batches, constants):
        """One step of Adam a batch (x, y), from means of zero. constants: a dict with LR.

        Returns the weights and the loss before each step.
        """
        # A word that occurs in no batch keeps its weights, because its means stay zero: only the others are computed
        occurring = np.unique(np.concatenate([x.ravel() for x, _ in batches]))
        embedding, weights = weights["embedding.weight"], dict(weights)
        weights["embedding.weight"] = embedding[occurring]
        means = {name: np.zeros_like(weight) for name, weight in weights.items()}
        squares, losses = dict(means), []
        for t, (x, y) in enumerate(batches, start=1):
            places = np.searchsorted(occurring, x)
            loss, g, d_words = self.gradients(weights, places, y)
            squared = {}
            if self.squares_of_occurrences:
                squared["embedding.weight"] = embedding_gradient(d_words**2, places, len(occurring))
            weights, means, squares = self.step(weights, means, squares, g, constants["LR"], t, squared)
            losses.append(loss)
        trained = embedding.copy()
        trained[occurring] = weights["embedding.weight"]
        weights["embedding.weight"] = trained
        return weights, losses

    def step(self, weights, means, squares, g, lr, t, squared):
        return adam_step(weights, means, squares, g, lr, t, (BETA_1, BETA_2), EPSILON, self.epsilon_hat, squared)

    # ---- [evaluate] Prediction

    def probabilities(self, weights, x, size=250):
        """What the network says of the reviews, (n, 2); size: reviews at a time, only a matter of memory."""
        parts = [self.forward(weights, x[start : start + size])[0] for start in range(0, len(x), size)]
        return softmax(np.concatenate(parts))

    # ---- [weights] Initial weights: the embedding within 0.05, other matrices Glorot (Xavier) uniform for each gate, biases zero

    def initial_bound(self, name):
        """A weight is drawn between minus this and this; 0 of a bias."""
        shape = self.WEIGHT_SHAPES[name]
        if len(shape) == 1:
            return 0.0
        if name == "embedding.weight":
            return 0.05
        return glorot_bound((100, shape[1]) if name.startswith("gru") else shape)

    def initial_weights(self, seed):
        """Weights to start training from, float64."""
        rng = np.random.RandomState(seed)
        return {
            name: rng.uniform(-1, 1, shape) * self.initial_bound(name) if len(shape) > 1 else np.zeros(shape)
            for name, shape in self.WEIGHT_SHAPES.items()
        }

    def given_weights(self, seed):
        """Weights for a run to start from that shall show every mistake, float64.

        Initial weights hide two: all reviews get nearly the same answer, and the state before the first word is forgotten after 150.
        So words are twenty times as large, and of biases between -3 and 3 some keep the update gate open.
        """
        rng = np.random.RandomState(seed)
        weights = self.initial_weights(seed)
        weights["embedding.weight"] *= 20
        for name in sorted(weights):
            if name.startswith("gru.bias"):
                weights[name] = rng.uniform(-3, 3, weights[name].shape)
        weights["fc.bias"] = rng.uniform(-0.1, 0.1, 2)
        return weights
