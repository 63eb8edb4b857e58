"""The networks of the benchmarks: their counts are the published ones, and their layers compute what their definitions say."""

import numpy as np
import pytest

from common.layers import LSTM, AveragePool, LocalResponseNorm, MaxPool, PadChannels, connect, pair
from common.params import networks as lists
from common.reference import networks

RNG = np.random.RandomState(0)

# Parameters; billions of multiply-adds. torchvision's page of models tells both (its GFLOPS are multiply-adds)
TORCHVISION = {
    "vgg16": (138357544, 15.47),
    "resnet50": (25557032, 4.09),
    "resnet101": (44549160, 7.80),
    "resnet152": (60192808, 11.51),
    "densenet121": (7978856, 2.83),
    "inception_v3": (27161264 - 3326696, 5.71),  # without the classifier on the way
}
OTHERS = {
    "fcn_r": 785 * 2048 + 2049 * 4096 + 4097 * 1024 + 1025 * 10,
    "fcn_s": 26753 * 2048 + 2 * 2049 * 2048 + 2049 * 26752,
    "alexnet_r": 89578,  # Caffe's examples/cifar10/cifar10_full
    "resnet56": 853018,  # 0.85 million (He et al., 2015, table 6)
    "lstm": 10000 * 256 + 2 * 4 * 256 * (256 + 256 + 1) + 257 * 10000,
    "alexnet": 62378344,
    "overfeat": 145920872,  # 145 million (Sermanet et al., 2013, table 4)
    "googlenet": 6998552,  # Caffe's models/bvlc_googlenet without its two classifiers on the way
}


@pytest.mark.parametrize("name", lists.NETWORKS)
def test_counts_are_the_published_ones(name):
    network = networks.network(name)
    parameters, billions = TORCHVISION.get(name) or (OTHERS[name], None)
    assert parameters == network.PARAMETERS
    assert billions is None or round(network.MULTIPLY_ADDS / 1e9, 2) == billions


@pytest.mark.parametrize("name", ["fcn_r", "alexnet_r", "resnet56", "lstm", "googlenet"])
def test_activations_stay_in_range(name):
    network = networks.network(name)
    x = RNG.randint(10000, size=(2, 32)) if name == "lstm" else RNG.normal(size=(2,) + network.input_shape)
    y = network.outputs(network.initial_weights(seed=1), x)
    assert y.shape == (2,) + network.layers[-1].out_shape
    assert 0.01 < np.abs(y).mean() < 100 and np.abs(y[0] - y[1]).max() > 1e-3


@pytest.mark.parametrize(
    "size, stride, padding, ceil", [(2, 2, 0, False), (3, 2, 0, True), (3, 2, 1, False), (3, 1, 1, True)]
)
@pytest.mark.parametrize("kind, mean_of", [(MaxPool, np.max), (AveragePool, np.mean)])
def test_windows_count_no_padding(kind, mean_of, size, stride, padding, ceil):
    x = RNG.normal(size=(2, 3, 7, 8)) - 10  # zeros in the padding would be the largest
    (layer,) = connect([kind(size, stride, padding, ceil)], x.shape[1:])
    y = networks.run([layer], {}, x)
    assert y.shape[1:] == layer.out_shape
    for n, c, i, j in np.ndindex(*y.shape):
        top, left = stride * i - padding, stride * j - padding
        window = x[n, c, max(top, 0) : top + size, max(left, 0) : left + size]
        assert y[n, c, i, j] == pytest.approx(mean_of(window))


def test_response_is_normalised_by_the_channels_around():
    x = RNG.normal(size=(2, 5, 3, 3))
    (layer,) = connect([LocalResponseNorm(3, 0.5, 0.75)], x.shape[1:])
    y = networks.run([layer], {}, x)
    for c in range(5):
        mean = (x[:, max(c - 1, 0) : c + 2] ** 2).sum(axis=1) / 3
        assert np.allclose(y[:, c], x[:, c] / (1 + 0.5 * mean) ** 0.75)


def test_shortcut_without_parameters():
    x = RNG.normal(size=(2, 3, 5, 5))
    (layer,) = connect([PadChannels(8, 2)], x.shape[1:])
    y = networks.run([layer], {}, x)
    assert y.shape[1:] == layer.out_shape == (8, 3, 3)
    assert np.array_equal(y[:, :3], x[:, :, ::2, ::2]) and not y[:, 3:].any()


def test_lstm_of_one_unit():
    (layer,) = connect([LSTM(1)], (2, 1))
    weights = {"0.weight_ih": np.array([[1.0], [2], [3], [4]]), "0.weight_hh": np.array([[0.5], [0.6], [0.7], [0.8]])}
    weights["0.bias"] = np.array([0.1, 0.2, 0.3, 0.4])
    x, h, c, states = [0.3, -0.2], 0.0, 0.0, []
    for value in x:
        i, f, g, o = (
            weights["0.weight_ih"][:, 0] * value + weights["0.weight_hh"][:, 0] * h + weights["0.bias"]
        ).tolist()
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        states.append([h])
    assert np.allclose(networks.run([layer], weights, np.array([x])[..., None]), [states])


def test_windows_are_as_high_and_wide_as_they_are_told():
    assert pair(3) == (3, 3) and pair((1, 7)) == (1, 7)
    network = networks.network("inception_v3")
    kernels = {shape[2:] for shape in network.WEIGHT_SHAPES.values() if len(shape) == 4}
    assert kernels == {(1, 1), (1, 3), (3, 1), (3, 3), (5, 5), (1, 7), (7, 1)}
