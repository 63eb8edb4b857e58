"""The networks of the task ``networks`` in plain NumPy: the definition that every notebook is held against.

Weights are a dict of arrays with the names and shapes of a network's ``WEIGHT_SHAPES``; everything is computed in their precision.
"""

import numpy as np

from common.layers import pair
from common.params import networks as lists
from common.reference.convolutional import batch_norm, conv2d
from common.reference.layers import dense, relu
from common.reference.recurrent import sigmoid

NETWORKS = tuple(lists.NETWORKS)


def network(name):
    return Network(*lists.NETWORKS[name])


class Network(lists.Network):
    """A list of layers that computes."""

    def outputs(self, weights, x):
        """Images (n, channels, height, width) or words (n, words) -> logits (n, classes) or (n, words, classes), one by one to save
        memory."""
        return np.concatenate([run(self.layers, weights, one[None]) for one in x])

    def initial_weights(self, seed):
        """Weights and statistics, float64. Batch norm about keeps the size of activations, and makes what is added to a shortcut
        small, so that a hundred layers neither lose nor drown the input. Variances go from 0.1 to 1, so that epsilon shows."""
        rng = np.random.RandomState(seed)
        weights = {name: drawn(name, shape, rng) for name, shape in self.WEIGHT_SHAPES.items()}
        added = {layer.branches[0][-1].name for layer in self.layers if layer.kind == "add"}
        for part in self.parts:
            if part.kind == "batch_norm":
                weights[part.name + ".weight"] *= np.sqrt(weights[part.name + ".running_var"])
                weights[part.name + ".weight"] *= 0.2 if part.name in added else 1
        return weights


def drawn(name, shape, rng):
    if name.endswith("running_var"):
        return 10.0 ** rng.uniform(-1, 0, shape)
    if len(shape) > 1:  # He et al., 2015
        return rng.normal(size=shape) * np.sqrt(2.0 / np.prod(shape[1:]))
    if name.endswith("weight"):  # of batch norm
        return rng.uniform(0.7, 1.3, shape)
    return 0.1 * rng.normal(size=shape)


def run(layers, weights, x):
    """What the layers compute, one after the other. x: (n, ...) of the first layer's ``in_shape``."""
    for layer in layers:
        own = [weights["%s.%s" % (layer.name, name)] for name, _ in layer.weights()]
        x = COMPUTE[layer.kind](layer, x, *own) if layer.kind in COMPUTE else combine(layer, weights, x)
    return x


def combine(layer, weights, x):
    ends = [run(branch, weights, x) for branch in layer.branches]
    return np.concatenate(ends, axis=1) if layer.kind == "concat" else sum(ends)


def conv(layer, x, weight, bias=0):
    high, wide = pair(layer.padding)
    padded = np.pad(x, ((0, 0), (0, 0), (high, high), (wide, wide)), mode="constant")
    return conv2d(padded, weight, layer.stride) + np.reshape(bias, (-1, 1, 1))


def windows(layer, x, outside):
    """The pixels of each window, (pixels, n, channels, height, width). outside: what stands beyond the edges."""
    edges, (high, wide) = [(0, 0), (0, 0)], layer.out_shape[1:]
    places = zip(layer.in_shape[1:], layer.out_shape[1:], pair(layer.size), pair(layer.padding))
    for pixels, windows_, size, padding in places:
        edges.append((padding, max(0, (windows_ - 1) * layer.stride + size - pixels - padding)))
    padded = np.pad(x, edges, mode="constant", constant_values=outside)
    places, step = np.ndindex(*pair(layer.size)), layer.stride
    return np.stack([padded[:, :, i : i + step * high : step, j : j + step * wide : step] for i, j in places])


def max_pool(layer, x):
    return windows(layer, x, -np.inf).max(axis=0)


def average_pool(layer, x):
    return windows(layer, x, 0).sum(axis=0) / windows(layer, np.ones_like(x[:1, :1]), 0).sum(axis=0)


def local_response_norm(layer, x):
    around = layer.size // 2
    squares = np.pad(x**2, ((0, 0), (around, around), (0, 0), (0, 0)), mode="constant")
    mean = sum(squares[:, i : i + x.shape[1]] for i in range(layer.size)) / layer.size
    return x / (1 + layer.alpha * mean) ** layer.beta


def pad_channels(layer, x):
    x = x[:, :, :: layer.stride, :: layer.stride]
    return np.pad(x, ((0, 0), (0, layer.channels - layer.inputs), (0, 0), (0, 0)), mode="constant")


def lstm(layer, x, weight_ih, weight_hh, bias):
    """h = o tanh(c), c = f c + i g (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000)."""
    n, words, _ = x.shape
    h, c = np.zeros((2, n, layer.units), x.dtype)
    states = np.empty((n, words, layer.units), x.dtype)
    for t in range(words):
        gates = np.matmul(x[:, t], weight_ih.T) + np.matmul(h, weight_hh.T) + bias
        i, f, g, o = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = states[:, t] = sigmoid(o) * np.tanh(c)
    return states


COMPUTE = {
    "conv": conv,
    "batch_norm": lambda layer, x, *own: batch_norm(x, *own, epsilon=layer.epsilon),
    "relu": lambda layer, x: relu(x),
    "sigmoid": lambda layer, x: sigmoid(x),
    "max_pool": max_pool,
    "average_pool": average_pool,
    "global_average_pool": lambda layer, x: x.mean(axis=(2, 3)),
    "local_response_norm": local_response_norm,
    "flatten": lambda layer, x: x.reshape(len(x), -1),
    "dense": lambda layer, x, weight, bias: dense(x, weight, bias),
    "pad_channels": pad_channels,
    "embedding": lambda layer, x, weight: weight[x],
    "lstm": lstm,
}
