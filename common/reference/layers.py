"""Layers in plain NumPy, each with its derivative: what the references of the tasks are made of.

A derivative takes the gradient of the loss by the layer's output and returns that by its inputs. Everything is computed in
the precision of the arrays given. n: the inputs of a batch; y: their class numbers.
"""

import numpy as np

TAPS = [(row, column) for row in range(3) for column in range(3)]  # the positions of a 3x3 kernel


def conv(x, weight, bias):
    """3x3 convolution, stride 1, zero padding of 1 ("same"): (n, in, h, w) -> (n, out, h, w); weight (out, in, 3, 3).

    As everywhere in deep learning it is a correlation: the kernel is not mirrored.
    """
    n, _, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="constant")
    y = np.zeros((n, len(bias), h * w), x.dtype)
    for i, j in TAPS:
        y += np.matmul(weight[:, :, i, j], padded[:, :, i : i + h, j : j + w].reshape(n, -1, h * w))
    return y.reshape(n, -1, h, w) + bias[:, None, None]


def conv_gradient(dy, x, weight):
    """Gradients by x, weight and bias."""
    n, _, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="constant")
    d_padded, d_weight = np.zeros_like(padded), np.empty_like(weight)
    for i, j in TAPS:
        window = (slice(None), slice(None), slice(i, i + h), slice(j, j + w))
        d_weight[:, :, i, j] = np.tensordot(dy, padded[window], axes=((0, 2, 3), (0, 2, 3)))
        d_padded[window] += np.matmul(weight[:, :, i, j].T, dy.reshape(n, -1, h * w)).reshape(n, -1, h, w)
    return d_padded[:, :, 1:-1, 1:-1], d_weight, dy.sum(axis=(0, 2, 3))


def max_pool(x):
    """The largest of each 2x2 window, stride 2: (n, c, h, w) -> (n, c, h / 2, w / 2)."""
    return _windows(x).max(axis=-1)


def max_pool_gradient(dy, x):
    """The gradient goes to the largest of each window; where several are equal, to the first in reading order."""
    windows = _windows(x)
    winner = windows.argmax(axis=-1)
    d_windows = np.where(np.arange(4) == winner[..., None], dy[..., None], np.zeros((), dy.dtype))
    n, c, h, w = dy.shape
    return d_windows.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(x.shape)


def _windows(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)


def dense(x, weight, bias):
    """(n, in) -> (n, out); weight (out, in)."""
    return np.matmul(x, weight.T) + bias


def dense_gradient(dy, x, weight):
    """Gradients by x, weight and bias."""
    return np.matmul(dy, weight), np.matmul(dy.T, x), dy.sum(axis=0)


def relu(x):
    return np.maximum(x, 0)


def relu_gradient(dy, y):
    """y is ReLU's output; where that is 0 nothing passes."""
    return dy * (y > 0)


def softmax(logits):
    """Logits -> probabilities, both (n, classes)."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def cross_entropy(logits, y):
    """Softmax cross-entropy, the mean over the batch."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(y)), y])


def cross_entropy_gradient(logits, y):
    """Gradient by the logits."""
    d = softmax(logits)
    d[np.arange(len(y)), y] -= 1
    return d / len(y)  # the loss is a mean


def dropout_mask(shape, rate, rng, dtype=np.float64):
    """What dropout multiplies values by: 0 with the rate as its probability, else 1 / (1 - rate). rng: RandomState."""
    return ((rng.random_sample(shape) >= rate) / (1 - rate)).astype(dtype)


def momentum_step(weights, velocities, g, lr, momentum):
    """Classical momentum: v = momentum v + g; w = w - lr v. Returns new weights and velocities, dicts like ``g``."""
    velocities = {name: momentum * velocities[name] + g[name] for name in weights}
    return {name: weights[name] - lr * velocities[name] for name in weights}, velocities


def embedding_gradient(dy, numbers, rows):
    """Of looking up rows by their numbers, (n, steps) -> (n, steps, width): the gradient by all rows. A row that occurs twice gets both."""
    d = np.zeros((rows, dy.shape[-1]), dy.dtype)
    np.add.at(d, numbers, dy)
    return d


def adam_step(weights, means, squares, g, lr, t, betas, epsilon, hat=False, squared=None):
    """Adam (Kingma and Ba, 2015), step t from 1 on. means, squares: of the gradients so far, dicts like ``g``.

    epsilon stands outside the root, which is bias-corrected; hat: it stands beside the root that is not. squared: by the name of
    a weight, what enters its mean of squares in the place of g * g. Returns new weights, means and squares.
    """
    b1, b2 = betas
    squared = squared or {}
    means = {name: b1 * means[name] + (1 - b1) * g[name] for name in weights}
    squares = {name: b2 * squares[name] + (1 - b2) * squared.get(name, g[name] ** 2) for name in weights}
    root = np.sqrt(1 - b2**t)
    rate, epsilon = lr * root / (1 - b1**t), epsilon if hat else epsilon * root
    return (
        {name: w - rate * means[name] / (np.sqrt(squares[name]) + epsilon) for name, w in weights.items()},
        means,
        squares,
    )


def glorot_bound(shape):
    """Of Glorot (Xavier) uniform weights: sqrt(6 / (fan in + fan out)); a convolution's fans count its positions too."""
    return np.sqrt(6.0 / ((shape[0] + shape[1]) * int(np.prod(shape[2:]))))
