"""The networks of the task ``networks`` in plain NumPy: the definition that every notebook is held against.

Weights are a dict of arrays with the names and shapes of a network's ``WEIGHT_SHAPES``; everything is computed in their precision.
"""

import numpy as np

from common.data import examples
from common.layers import pair, product
from common.params import networks as lists
from common.reference import networks_training as training
from common.reference.convolutional import batch_norm, conv2d
from common.reference.layers import dense, relu
from common.reference.recurrent import sigmoid

# Networks that are trained for some steps, with parameters that make these count: a change that float32 shows, a gradient to clip
TRAINED = {
    "fcn_r": {"LR": 0.1},
    "alexnet_r": {"LR": 0.01},
    "resnet56": {"LR": 0.1},
    "lstm": {"LR": 1.0, "CLIP": 0.05},
}


class of(object):
    """The task as frameworks of this flavour have it."""

    NAMES, TRAINED = tuple(lists.NETWORKS), TRAINED

    def __init__(self, flavour):
        self.biases = lists.FLAVOURS[flavour]

    def network(self, name):
        return Network(name, self.biases)


class Network(lists.Network):
    """One of the networks, which computes. biases: of an LSTM; all but the first are not in WEIGHT_SHAPES, since they add up."""

    def __init__(self, name, biases=1):
        lists.Network.__init__(self, *lists.NETWORKS[name])
        self.name, self.copies = name, {part.name + ".bias": biases for part in self.parts if part.kind == "lstm"}
        self.PARAMETERS += sum((n - 1) * product(self.WEIGHT_SHAPES[bias]) for bias, n in self.copies.items())

    # ---- [data] A batch of noise

    def inputs(self, n, synthetic):
        return examples.batch(self, n)[0]

    # ---- [model] Layers, one after the other or side by side

    def outputs(self, weights, x):
        """Images (n, channels, height, width) or words (n, words) -> logits (n, classes) or (n, words, classes), one by one to save
        memory."""
        return np.concatenate([run(self.layers, weights, one[None]) for one in x])

    # ---- [weights] Drawn weights that keep activations in range

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

    # ---- [step] Forward, backward and update

    def trained(self, weights, n, steps, constants, synthetic):
        """The weights after so many steps on the same batch of n, and the loss before the last update."""
        x, y = examples.batch(self, n)
        return training.steps(self, weights, x.astype(np.float64) if x.dtype.kind == "f" else x, y, steps, constants)


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
