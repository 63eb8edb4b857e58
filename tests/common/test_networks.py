"""The networks of the benchmarks: their counts are the published ones, and their layers compute what their definitions say."""

import numpy as np
import pytest

from common.layers import (
    LSTM,
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Conv,
    Dense,
    Embedding,
    Flatten,
    GlobalAveragePool,
    LocalResponseNorm,
    MaxPool,
    PadChannels,
    Relu,
    Sigmoid,
    connect,
    pair,
)
from common.params import networks as lists
from common.reference import network_layers, network_training, networks

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
    network = networks.of("one bias").network(name)
    parameters, billions = TORCHVISION.get(name) or (OTHERS[name], None)
    assert parameters == network.PARAMETERS
    assert billions is None or round(network.MULTIPLY_ADDS / 1e9, 2) == billions


@pytest.mark.parametrize("name", ["fcn_r", "alexnet_r", "resnet56", "lstm", "googlenet"])
def test_activations_stay_in_range(name):
    network = networks.of("one bias").network(name)
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
    y = network_layers.run([layer], {}, x)
    assert y.shape[1:] == layer.out_shape
    for n, c, i, j in np.ndindex(*y.shape):
        top, left = stride * i - padding, stride * j - padding
        window = x[n, c, max(top, 0) : top + size, max(left, 0) : left + size]
        assert y[n, c, i, j] == pytest.approx(mean_of(window))


def test_response_is_normalised_by_the_channels_around():
    x = RNG.normal(size=(2, 5, 3, 3))
    (layer,) = connect([LocalResponseNorm(3, 0.5, 0.75)], x.shape[1:])
    y = network_layers.run([layer], {}, x)
    for c in range(5):
        mean = (x[:, max(c - 1, 0) : c + 2] ** 2).sum(axis=1) / 3
        assert np.allclose(y[:, c], x[:, c] / (1 + 0.5 * mean) ** 0.75)


def test_shortcut_without_parameters():
    x = RNG.normal(size=(2, 3, 5, 5))
    (layer,) = connect([PadChannels(8, 2)], x.shape[1:])
    y = network_layers.run([layer], {}, x)
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
    assert np.allclose(network_layers.run([layer], weights, np.array([x])[..., None]), [states])


def test_windows_are_as_high_and_wide_as_they_are_told():
    assert pair(3) == (3, 3) and pair((1, 7)) == (1, 7)
    network = lists.network("inception_v3")
    kernels = {shape[2:] for shape in network.WEIGHT_SHAPES.values() if len(shape) == 4}
    assert kernels == {(1, 1), (1, 3), (3, 1), (3, 3), (5, 5), (1, 7), (7, 1)}


CHAINS = {
    "convolutions": (
        [Conv(4, (3, 2), 2, (1, 0)), BatchNorm(), Relu(), LocalResponseNorm(3, 0.5, 0.75)]
        + [Add([Conv(6, 3, 2, 1)], [PadChannels(6, 2)]), Sigmoid(), GlobalAveragePool(), Dense(3)],
        (3, 9, 8),
    ),
    "windows": (
        [AveragePool(3, 2, 1, True), MaxPool(2, 1), Concat([], [Conv(2, 1, bias=False)]), Flatten(), Dense(3)],
        (3, 9, 8),
    ),
    "states": ([LSTM(3), Dense(2)], (5, 4)),
    "words": ([Embedding(7, 3), LSTM(3)], (5,)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_gradients_are_what_small_changes_make(name):
    layers, shape = CHAINS[name]
    layers = connect(layers, shape)
    x = RNG.randint(7, size=(2,) + shape) if name == "words" else RNG.normal(size=(2,) + shape)
    parts = [part for layer in layers for part in layer.parts()]
    shapes = {part.name + "." + tensor: size for part in parts for tensor, size in part.weights()}
    weights = {tensor: RNG.uniform(0.5, 1.5, size) for tensor, size in shapes.items()}
    y, back = network_training.traced(layers, weights, x)
    dy = RNG.normal(size=y.shape)
    dx, gradients = back(dy)

    def rate(changed, by):
        """Of sum(y dy), in the direction of a change of the weights or of x."""
        ends = [network_training.traced(layers, *changed(sign * 1e-6 * by))[0] for sign in (1, -1)]
        return ((ends[0] - ends[1]) * dy).sum() / 2e-6

    assert set(gradients) == {tensor for tensor in shapes if "running" not in tensor}
    for tensor, gradient in gradients.items():
        by = RNG.normal(size=gradient.shape)
        found = rate(lambda change, tensor=tensor: (dict(weights, **{tensor: weights[tensor] + change}), x), by)
        assert found == pytest.approx((gradient * by).sum(), rel=1e-5, abs=1e-7)
    if dx is not None:  # numbers of words have none
        by = RNG.normal(size=x.shape)
        assert rate(lambda change: (weights, x + change), by) == pytest.approx((dx * by).sum(), rel=1e-5, abs=1e-7)


def test_copies_of_a_bias_move_as_one_that_moves_twice_as_far():
    constants = {"LR": 1.0, "MOMENTUM": 0.9, "CLIP": 1e9}
    one, two = (networks.of(flavour).network("lstm") for flavour in ("one bias", "two biases"))
    start = one.initial_weights(seed=1)
    (once, _), (twice, _) = (each.trained(start, 2, 1, constants, False) for each in (one, two))
    assert np.allclose(twice["1.bias"] - start["1.bias"], 2 * (once["1.bias"] - start["1.bias"]))
    assert np.array_equal(twice["1.weight_hh"], once["1.weight_hh"]) and two.PARAMETERS == one.PARAMETERS + 2 * 1024


def test_gradient_is_clipped_by_the_norm_of_all_weights():
    network = networks.of("one bias").network("lstm")
    start = network.initial_weights(seed=1)
    ends, _ = network.trained(start, 2, 1, {"LR": 1.0, "MOMENTUM": 0.9, "CLIP": 0.05}, False)
    assert np.sqrt(sum(np.sum((ends[name] - start[name]) ** 2) for name in start)) == pytest.approx(0.05)
