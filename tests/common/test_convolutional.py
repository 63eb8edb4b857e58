"""Layers of the convolutional reference against plain loops over their definitions."""

import numpy as np
import pytest

from common.reference.convolutional import batch_norm, conv2d, max_pool2d

RNG = np.random.RandomState(0)
IMAGES = RNG.normal(size=(2, 3, 7, 8))


@pytest.mark.parametrize("size, stride, padding", [(1, 1, 0), (1, 2, 0), (3, 1, 1), (3, 2, 1), (7, 2, 3)])
def test_convolution_is_a_correlation(size, stride, padding):
    kernel = RNG.normal(size=(4, 3, size, size))
    y = conv2d(IMAGES, kernel, stride, padding)
    padded = np.pad(IMAGES, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode="constant")
    assert y.shape[2:] == tuple((n + 2 * padding - size) // stride + 1 for n in (7, 8))
    for n, o, i, j in np.ndindex(*y.shape):
        window = padded[n, :, i * stride : i * stride + size, j * stride : j * stride + size]
        assert y[n, o, i, j] == pytest.approx(np.sum(kernel[o] * window))


@pytest.mark.parametrize("padding", [(1, 1), (0, 1), (0, 0)])
def test_pooling_counts_no_padding(padding):
    x = IMAGES - 10  # zeros in the padding would be the largest
    front, behind = padding
    y = max_pool2d(x, 3, 2, padding)
    assert y.shape[2:] == tuple((n + front + behind - 3) // 2 + 1 for n in (7, 8))
    for n, c, i, j in np.ndindex(*y.shape):
        top, left = 2 * i - front, 2 * j - front
        assert y[n, c, i, j] == x[n, c, max(top, 0) : top + 3, max(left, 0) : left + 3].max()


def test_batch_norm_divides_by_the_given_statistics():
    scale, shift, mean, variance = RNG.uniform(0.5, 1.5, size=(4, 3))
    y = batch_norm(IMAGES, scale, shift, mean, variance, epsilon=0.01)
    for c in range(3):
        expected = scale[c] * (IMAGES[:, c] - mean[c]) / np.sqrt(variance[c] + 0.01) + shift[c]
        assert np.allclose(y[:, c], expected)
