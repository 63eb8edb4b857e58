"""The reference is itself checked: against central differences, and its pieces against plain loops."""

import numpy as np
import pytest

from common.params.cifar10_cnn import WEIGHT_SHAPES
from common.reference import cifar10_cnn as network


@pytest.fixture(scope="module")
def batch():
    rng = np.random.RandomState(0)
    return rng.uniform(size=(3, 3, 32, 32)), np.array([1, 9, 4])


@pytest.fixture(scope="module")
def weights():
    rng = np.random.RandomState(1)
    start = network.initial_weights(seed=2)
    return {name: a if a.ndim > 1 else rng.uniform(-0.1, 0.1, a.shape) for name, a in start.items()}


@pytest.fixture(scope="module")
def masks():
    return network.dropout_masks(3, np.random.RandomState(3))


@pytest.fixture(scope="module")
def analytic(weights, batch, masks):
    return {
        with_dropout: network.gradients(weights, *batch, masks=masks if with_dropout else None)[1]
        for with_dropout in (False, True)
    }


@pytest.mark.parametrize("with_dropout", [False, True])
@pytest.mark.parametrize("name", WEIGHT_SHAPES)
def test_gradient_by_central_differences(weights, batch, masks, analytic, name, with_dropout):
    """Along the gradient itself, with a random half of its entries left out: every entry counts as much as it weighs."""
    g = analytic[with_dropout][name]
    direction = g * np.random.RandomState(4).randint(0, 2, g.shape)
    direction /= np.linalg.norm(direction)
    x, y = batch
    losses = []
    for step in (1e-7, -1e-7):  # short, so that hardly a ReLU changes sides
        moved = dict(weights, **{name: weights[name] + step * direction})
        losses.append(network.cross_entropy(network.forward(moved, x, masks if with_dropout else None)[0], y))
    numeric, expected = (losses[0] - losses[1]) / 2e-7, np.sum(g * direction)
    assert expected > 0
    assert abs(numeric - expected) / expected <= 1e-6


def test_convolution_is_same_size_correlation():
    rng = np.random.RandomState(5)
    x, weight, bias = rng.normal(size=(1, 2, 4, 5)), rng.normal(size=(3, 2, 3, 3)), rng.normal(size=3)
    padded = np.zeros((2, 6, 7))
    padded[:, 1:-1, 1:-1] = x[0]
    y = network.conv(x, weight, bias)
    assert y.shape == (1, 3, 4, 5)
    for o, i, j in np.ndindex(3, 4, 5):
        assert y[0, o, i, j] == pytest.approx(bias[o] + np.sum(weight[o] * padded[:, i : i + 3, j : j + 3]))


def test_pooling_and_its_gradient_take_the_first_of_equals():
    x = np.array([[1.0, 5, 2, 2], [5, 0, 2, 2]])[None, None]
    assert network.max_pool(x).tolist() == [[[[5, 2]]]]
    assert network.max_pool_gradient(np.array([[[[3.0, 4]]]]), x).tolist() == [[[[0, 3, 4, 0], [0, 0, 0, 0]]]]


def test_momentum_is_classical():
    w, v = {"w": np.array([1.0])}, {"w": np.array([0.0])}
    for _ in range(2):
        w, v = network.momentum_step(w, v, {"w": np.array([2.0])}, lr=0.1, momentum=0.9)
    assert v["w"][0] == pytest.approx(3.8) and w["w"][0] == pytest.approx(1 - 0.2 - 0.38)


def test_probabilities_do_not_depend_on_the_batches(weights, batch):
    whole = network.probabilities(weights, batch[0])
    assert np.allclose(whole.sum(axis=1), 1)
    assert np.allclose(whole, network.probabilities(weights, batch[0], size=2), atol=1e-12)


def test_loss_is_the_mean_of_minus_log_probability(weights, batch):
    x, y = batch
    expected = -np.log(network.probabilities(weights, x)[np.arange(3), y]).mean()
    assert network.cross_entropy(network.forward(weights, x)[0], y) == pytest.approx(expected)


def test_dropout_keeps_the_mean():
    rates = [rate for _, rate in network.DROPOUT]
    for mask, rate in zip(network.dropout_masks(20, np.random.RandomState(6)), rates):
        assert set(np.unique(mask)) == {0, 1 / (1 - rate)}
        assert mask.mean() == pytest.approx(1, abs=0.05)


def test_dropout_losses_are_those_of_the_network(weights, batch):
    x, y = batch
    losses = network.dropout_losses(weights, x, y, 2, np.random.RandomState(7))
    rng = np.random.RandomState(7)
    for loss in losses:
        logits, _ = network.forward(weights, x, network.dropout_masks(len(x), rng))
        assert loss == pytest.approx(network.cross_entropy(logits, y))


def test_training_lowers_the_loss_and_keeps_the_start(weights, batch):
    before = {name: array.copy() for name, array in weights.items()}
    trained, losses = network.train(weights, [batch] * 4, lr=0.01, momentum=0.9)
    assert losses[-1] < losses[0]
    assert all(np.array_equal(weights[name], before[name]) for name in weights)
    assert all(not np.array_equal(trained[name], weights[name]) for name in weights)


def test_initial_weights_are_glorot():
    for name, array in network.initial_weights(seed=0).items():
        assert array.shape == WEIGHT_SHAPES[name]
        if array.ndim == 1:
            assert not array.any()
        else:
            bound = np.sqrt(6.0 / (sum(array.shape[:2]) * np.prod(array.shape[2:])))
            assert 0.99 * bound < np.abs(array).max() <= bound
