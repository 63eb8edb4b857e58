"""What the layers of a list compute, in plain NumPy.

x: what goes in, (n, ...) of a layer's ``in_shape``. Weights have the shapes of ``layer.weights()``; everything is computed in their precision.
"""

import numpy as np

from common.layers import pair
from common.reference.convolutional import batch_norm, conv2d
from common.reference.layers import dense, relu
from common.reference.recurrent import sigmoid


def run(layers, weights, x):
    """What the layers compute, one after the other. weights: of all, by name."""
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
    padded = np.pad(x, ((0, 0), (0, 0)) + layer.edges(), mode="constant", constant_values=outside)
    return np.stack([padded[place] for place in places(layer)])


def places(layer):
    """For each pixel of a window: the slice of all padded images where it lies, over all windows."""
    step, (high, wide) = layer.stride, layer.out_shape[1:]
    for i, j in np.ndindex(*pair(layer.size)):
        yield Ellipsis, slice(i, i + step * high, step), slice(j, j + step * wide, step)


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


def lstm_states(layer, x, weight_ih, weight_hh, bias):
    """h = o tanh(c), c = f c + i g (Hochreiter and Schmidhuber, 1997, with the forget gate of Gers et al., 2000).

    Returns h after every word, (n, words, units); c before each word and after the last; the gates i, f, g, o of each word.
    """
    h = np.zeros((len(x), layer.units), x.dtype)
    cells, gates, states = [h], [], []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(np.matmul(x[:, t], weight_ih.T) + np.matmul(h, weight_hh.T) + bias, 4, axis=1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        cells.append(f * cells[-1] + i * g)
        h = o * np.tanh(cells[-1])
        gates.append((i, f, g, o))
        states.append(h)
    return np.stack(states, axis=1), cells, gates


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
    "lstm": lambda layer, x, *own: lstm_states(layer, x, *own)[0],
}
