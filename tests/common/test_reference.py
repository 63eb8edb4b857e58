"""The reference of cifar10_cnn is itself checked: its gradients against central differences."""

import numpy as np
import pytest

from common.data import batches, cifar10
from common.params.cifar10_cnn import LR, MOMENTUM, WEIGHT_SHAPES
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


def test_probabilities_do_not_depend_on_the_batches(weights, batch):
    whole = network.probabilities(weights, batch[0])
    assert np.allclose(whole.sum(axis=1), 1)
    assert np.allclose(whole, network.probabilities(weights, batch[0], size=2), atol=1e-12)


def test_masks_have_the_rates_of_their_layers():
    for mask, (shape, rate) in zip(network.dropout_masks(20, np.random.RandomState(6)), network.DROPOUT):
        assert mask.shape == (20,) + shape
        assert set(np.unique(mask)) == {0, 1 / (1 - rate)}


def test_dropout_losses_are_those_of_the_network(weights, batch):
    x, y = batch
    losses = network.dropout_losses(weights, x, y, 2, np.random.RandomState(7))
    rng = np.random.RandomState(7)
    for loss in losses:
        logits, _ = network.forward(weights, x, network.dropout_masks(len(x), rng))
        assert loss == pytest.approx(network.cross_entropy(logits, y))


def test_training_lowers_the_loss_and_keeps_the_start(weights, batch):
    before = {name: array.copy() for name, array in weights.items()}
    trained, losses = network.train(weights, [batch] * 4, {"LR": 0.01, "MOMENTUM": 0.9})
    assert losses[-1] < losses[0]
    assert all(np.array_equal(weights[name], before[name]) for name in weights)
    assert all(not np.array_equal(trained[name], weights[name]) for name in weights)


@pytest.mark.long
def test_generated_images_tell_a_network_that_learns():
    """24 steps of 32 suffice; float32, because a step takes seconds."""
    x_train, y_train, x_test, y_test = cifar10.load(n_train=768, n_test=200, synthetic=True)
    start = {name: array.astype(np.float32) for name, array in network.initial_weights(seed=0).items()}
    steps = batches(x_train, y_train, size=32, seed=0)
    trained, _ = network.train(start, steps, {"LR": LR, "MOMENTUM": MOMENTUM})
    before, after = ((network.probabilities(w, x_test).argmax(axis=1) == y_test).mean() for w in (start, trained))
    assert before < 0.3 and 0.6 <= after <= 0.95


def test_initial_weights_are_glorot():
    for name, array in network.initial_weights(seed=0).items():
        assert array.shape == WEIGHT_SHAPES[name]
        if array.ndim == 1:
            assert network.initial_bound(name) == 0 and not array.any()
        else:
            bound = np.sqrt(6.0 / (sum(array.shape[:2]) * np.prod(array.shape[2:])))
            assert network.initial_bound(name) == pytest.approx(bound)
            assert 0.99 * bound < np.abs(array).max() <= bound
