"""The layers of the references: their derivatives against central differences, their values against plain loops."""

import numpy as np
import pytest

from common.reference import layers

RNG = np.random.RandomState(0)
IMAGES, KERNEL, BIAS = RNG.normal(size=(2, 3, 4, 6)), RNG.normal(size=(5, 3, 3, 3)), RNG.normal(size=5)
ROWS, MATRIX = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
LABELS = np.array([0, 2, 1, 2])

# name: the layer of its inputs, these, and the gradients by them for a gradient dy by the output
CASES = {
    "convolution": (layers.conv, (IMAGES, KERNEL, BIAS), lambda dy: layers.conv_gradient(dy, IMAGES, KERNEL)),
    "max-pooling": (layers.max_pool, (IMAGES,), lambda dy: [layers.max_pool_gradient(dy, IMAGES)]),
    "dense": (layers.dense, (ROWS, MATRIX, BIAS), lambda dy: layers.dense_gradient(dy, ROWS, MATRIX)),
    "ReLU": (layers.relu, (ROWS,), lambda dy: [layers.relu_gradient(dy, layers.relu(ROWS))]),
    "cross-entropy": (
        lambda logits: layers.cross_entropy(logits, LABELS),
        (ROWS,),
        lambda dy: [dy * layers.cross_entropy_gradient(ROWS, LABELS)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_by_central_differences(name):
    layer, inputs, gradient = CASES[name]
    dy = np.random.RandomState(1).normal(size=np.shape(layer(*inputs)))
    analytic = gradient(dy)
    assert len(analytic) == len(inputs)
    for place, array in enumerate(inputs):
        assert analytic[place].shape == array.shape
        for index in np.ndindex(array.shape):
            sums = []
            for step in (1e-6, -1e-6):
                moved = array.copy()
                moved[index] += step
                sums.append(np.sum(dy * layer(*inputs[:place], moved, *inputs[place + 1 :])))
            assert (sums[0] - sums[1]) / 2e-6 == pytest.approx(analytic[place][index], abs=1e-7)


def test_convolution_is_same_size_correlation():
    padded = np.zeros((3, 6, 8))
    padded[:, 1:-1, 1:-1] = IMAGES[0]
    y = layers.conv(IMAGES, KERNEL, BIAS)
    assert y.shape == (2, 5, 4, 6)
    for o, i, j in np.ndindex(5, 4, 6):
        assert y[0, o, i, j] == pytest.approx(BIAS[o] + np.sum(KERNEL[o] * padded[:, i : i + 3, j : j + 3]))


def test_pooling_and_its_gradient_take_the_first_of_equals():
    x = np.array([[1.0, 5, 2, 2], [5, 0, 2, 2]])[None, None]
    assert layers.max_pool(x).tolist() == [[[[5, 2]]]]
    assert layers.max_pool_gradient(np.array([[[[3.0, 4]]]]), x).tolist() == [[[[0, 3, 4, 0], [0, 0, 0, 0]]]]


def test_loss_is_the_mean_of_minus_log_probability():
    expected = -np.log(layers.softmax(ROWS)[np.arange(4), LABELS]).mean()
    assert layers.cross_entropy(ROWS, LABELS) == pytest.approx(expected)


def test_momentum_is_classical():
    w, v = {"w": np.array([1.0])}, {"w": np.array([0.0])}
    for _ in range(2):
        w, v = layers.momentum_step(w, v, {"w": np.array([2.0])}, lr=0.1, momentum=0.9)
    assert v["w"][0] == pytest.approx(3.8) and w["w"][0] == pytest.approx(1 - 0.2 - 0.38)
