"""More layers of convolutional networks in plain NumPy: see ``layers.py``. Images are (n, channels, height, width)."""

import numpy as np


def conv2d(x, weight, stride=1, padding=0):
    """Convolution without a bias; weight (out, in, height, width); padding: zeros on each side."""
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode="constant")
    kernel = weight.shape[2:]
    height, width = ((size - taps) // stride + 1 for size, taps in zip(padded.shape[2:], kernel))
    y = np.zeros((len(x), len(weight), height * width), x.dtype)
    for i, j in np.ndindex(*kernel):
        window = padded[:, :, i : i + stride * height : stride, j : j + stride * width : stride]
        y += np.matmul(weight[:, :, i, j], window.reshape(len(x), weight.shape[1], -1))
    return y.reshape(len(x), len(weight), height, width)


def max_pool2d(x, size, stride, padding):
    """The largest of each window of size x size; padding: (in front, behind) of each axis, where nothing counts."""
    edges = tuple(padding)
    padded = np.pad(x, ((0, 0), (0, 0), edges, edges), mode="constant", constant_values=-np.inf)
    height, width = ((n - size) // stride + 1 for n in padded.shape[2:])
    windows = [
        padded[:, :, i : i + stride * height : stride, j : j + stride * width : stride]
        for i, j in np.ndindex(size, size)
    ]
    return np.max(windows, axis=0)


def batch_norm(x, scale, shift, mean, variance, epsilon):
    """At inference: with the statistics that training has gathered, each (channels,)."""
    factor = scale / np.sqrt(variance + epsilon)
    return x * factor[:, None, None] + (shift - mean * factor)[:, None, None]
