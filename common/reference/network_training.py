"""The networks in training: every layer with its derivative, the loss, and steps of SGD with momentum.

Each function of ``LAYERS`` takes a layer, its inputs and its weights. It returns its outputs and the way back: a function from the
gradient of the loss by the outputs to (the gradient by the inputs, those by the weights in their order).
"""

import numpy as np

from common.layers import pair
from common.reference import network_layers
from common.reference.layers import (
    cross_entropy,
    cross_entropy_gradient,
    dense,
    dense_gradient,
    embedding_gradient,
    momentum_step,
    relu,
    relu_gradient,
)
from common.reference.recurrent import sigmoid


def steps(network, weights, x, y, number, constants):
    """The weights after so many steps on a batch, and the loss before the last update. constants: LR, MOMENTUM, CLIP."""
    learned = [name for name in weights if "running" not in name]
    velocities = {name: np.zeros_like(weights[name]) for name in learned}
    for _ in range(number):
        logits, back = traced(network.layers, weights, x)
        classes = logits.shape[-1]
        loss = cross_entropy(logits.reshape(-1, classes), y.ravel())
        _, gradients = back(cross_entropy_gradient(logits.reshape(-1, classes), y.ravel()).reshape(logits.shape))
        if network.name == "lstm":
            gradients = clipped(network, gradients, constants["CLIP"])
        # Each copy of a bias has the same gradient, and moves as far
        gradients = {name: network.copies.get(name, 1) * g for name, g in gradients.items()}
        moved, velocities = momentum_step(
            {name: weights[name] for name in learned}, velocities, gradients, constants["LR"], constants["MOMENTUM"]
        )
        weights = dict(weights, **moved)
    return weights, loss


def clipped(network, gradients, largest):
    """The gradients with the norm of all together at most so large; copies of a bias count each."""
    squares = sum(network.copies.get(name, 1) * np.sum(g**2) for name, g in gradients.items())
    factor = min(1, largest / np.sqrt(squares))
    return {name: factor * g for name, g in gradients.items()}


def traced(layers, weights, x):
    """What layers compute in training, one after the other, and the way back: to (the gradient by x, those by weights, a dict)."""
    backs = []
    for layer in layers:
        if hasattr(layer, "branches"):
            x, back = branches(layer, weights, x)
        else:
            names = [layer.name + "." + name for name, _ in layer.weights()]
            x, back = single(layer, names, x, [weights[name] for name in names])
        backs.append(back)

    def back_through(dy):
        gradients = {}
        for back in reversed(backs):
            dy, own = back(dy)
            gradients.update(own)
        return dy, gradients

    return x, back_through


def single(layer, names, x, own):
    y, back = LAYERS[layer.kind](layer, x, *own)

    def named(dy):
        dx, *gradients = back(dy)
        return dx, dict(zip(names, gradients))

    return y, named


def branches(layer, weights, x):
    ends, backs = zip(*(traced(branch, weights, x) for branch in layer.branches))
    together = layer.kind == "concat"

    def back_through(dy):
        cuts = np.cumsum([end.shape[1] for end in ends])[:-1]
        parts = np.split(dy, cuts, axis=1) if together else [dy] * len(ends)
        found = [back(part) for back, part in zip(backs, parts)]
        return sum(dx for dx, _ in found), {name: g for _, own in found for name, g in own.items()}

    return np.concatenate(ends, axis=1) if together else sum(ends), back_through


def conv(layer, x, weight, bias=None):
    high, wide = pair(layer.padding)
    padded = np.pad(x, ((0, 0), (0, 0), (high, high), (wide, wide)), mode="constant")

    def back(dy):
        d_padded, d_weight = np.zeros_like(padded), np.empty_like(weight)
        for (i, j), place in zip(np.ndindex(*pair(layer.size)), network_layers.places(layer)):
            d_weight[:, :, i, j] = np.tensordot(dy, padded[place], axes=((0, 2, 3), (0, 2, 3)))
            d_padded[place] += np.tensordot(weight[:, :, i, j], dy, axes=(0, 1)).transpose(1, 0, 2, 3)
        dx = d_padded[:, :, high : high + x.shape[2], wide : wide + x.shape[3]]
        return [dx, d_weight] + ([] if bias is None else [dy.sum(axis=(0, 2, 3))])

    return network_layers.conv(layer, x, weight, 0 if bias is None else bias), back


def scattered(layer, x, of_windows):
    """Adds up what each pixel of each window, (pixels, n, channels, height, width), gives to the pixels of x."""
    (above, below), (left, right) = layer.edges()
    padded = np.zeros(x.shape[:2] + (x.shape[2] + above + below, x.shape[3] + left + right))
    for values, place in zip(of_windows, network_layers.places(layer)):
        padded[place] += values
    return padded[:, :, above : above + x.shape[2], left : left + x.shape[3]]


def max_pool(layer, x):
    """The gradient goes to the largest pixel of each window; where several are equal, to the first."""
    windows = network_layers.windows(layer, x, -np.inf)
    winners = windows.argmax(axis=0) == np.arange(len(windows)).reshape(-1, 1, 1, 1, 1)
    return windows.max(axis=0), lambda dy: [scattered(layer, x, winners * dy)]


def average_pool(layer, x):
    counts = network_layers.windows(layer, np.ones_like(x[:1, :1]), 0).sum(axis=0)
    size = np.prod(pair(layer.size))
    return network_layers.average_pool(layer, x), lambda dy: [scattered(layer, x, [dy / counts] * size)]


def global_average_pool(layer, x):
    pixels = x.shape[2] * x.shape[3]
    return x.mean(axis=(2, 3)), lambda dy: [np.broadcast_to(dy[:, :, None, None] / pixels, x.shape)]


def batch_norm(layer, x, scale, shift, mean, variance):
    """With the batch's own mean and variance; those that training gathers change nothing here."""
    axes = (0, 2, 3)
    deviation = np.sqrt(x.var(axis=axes, keepdims=True) + layer.epsilon)
    normal = (x - x.mean(axis=axes, keepdims=True)) / deviation

    def back(dy):
        d_scale, d_shift = (dy * normal).sum(axis=axes), dy.sum(axis=axes)
        n = dy.size / dy.shape[1]
        rest = dy - (d_shift / n)[:, None, None] - normal * (d_scale / n)[:, None, None]
        return [scale[:, None, None] / deviation * rest, d_scale, d_shift]

    return normal * scale[:, None, None] + shift[:, None, None], back


def local_response_norm(layer, x):
    y = network_layers.local_response_norm(layer, x)
    around = layer.size // 2

    def neighbours(values):
        padded = np.pad(values, ((0, 0), (around, around), (0, 0), (0, 0)), mode="constant")
        return sum(padded[:, i : i + x.shape[1]] for i in range(layer.size))

    def back(dy):
        base = 1 + layer.alpha * neighbours(x**2) / layer.size
        through = neighbours(dy * y / base)
        return [dy * base**-layer.beta - 2 * layer.alpha * layer.beta / layer.size * x * through]

    return y, back


def pad_channels(layer, x):
    def back(dy):
        dx = np.zeros_like(x)
        dx[:, :, :: layer.stride, :: layer.stride] = dy[:, : x.shape[1]]
        return [dx]

    return network_layers.pad_channels(layer, x), back


def dense_layer(layer, x, weight, bias):
    flat = x.reshape(-1, x.shape[-1])

    def back(dy):
        dx, d_weight, d_bias = dense_gradient(dy.reshape(-1, dy.shape[-1]), flat, weight)
        return [dx.reshape(x.shape), d_weight, d_bias]

    return dense(x, weight, bias), back


def relu_layer(layer, x):
    y = relu(x)
    return y, lambda dy: [relu_gradient(dy, y)]


def sigmoid_layer(layer, x):
    y = sigmoid(x)
    return y, lambda dy: [dy * y * (1 - y)]


def lstm(layer, x, weight_ih, weight_hh, bias):
    """Back through time: the gradient by a state comes from its output and from the step after it."""
    states, cells, gates = network_layers.lstm_states(layer, x, weight_ih, weight_hh, bias)

    def back(dy):
        d_gates = np.empty(x.shape[:2] + (4 * layer.units,))
        d_h, d_c = np.zeros((2, len(x), layer.units))
        for t in reversed(range(x.shape[1])):
            i, f, g, o = gates[t]
            before = cells[t]
            tanh_c = np.tanh(cells[t + 1])
            d_h = d_h + dy[:, t]
            d_c = d_c + d_h * o * (1 - tanh_c**2)
            parts = d_c * g * i * (1 - i), d_c * before * f * (1 - f), d_c * i * (1 - g**2), d_h * tanh_c * o * (1 - o)
            d_gates[:, t] = np.concatenate(parts, axis=1)
            d_h, d_c = np.matmul(d_gates[:, t], weight_hh), d_c * f
        earlier = np.concatenate([np.zeros_like(states[:, :1]), states[:, :-1]], axis=1)
        both = ((0, 1), (0, 1))
        d_weights = np.tensordot(d_gates, x, axes=both), np.tensordot(d_gates, earlier, axes=both)
        return [np.matmul(d_gates, weight_ih), *d_weights, d_gates.sum(axis=(0, 1))]

    return states, back


LAYERS = {
    "conv": conv,
    "max_pool": max_pool,
    "average_pool": average_pool,
    "global_average_pool": global_average_pool,
    "batch_norm": batch_norm,
    "local_response_norm": local_response_norm,
    "relu": relu_layer,
    "sigmoid": sigmoid_layer,
    "flatten": lambda layer, x: (x.reshape(len(x), -1), lambda dy: [dy.reshape(x.shape)]),
    "dense": dense_layer,
    "pad_channels": pad_channels,
    "embedding": lambda layer, x, weight: (weight[x], lambda dy: [None, embedding_gradient(dy, x, len(weight))]),
    "lstm": lstm,
}
