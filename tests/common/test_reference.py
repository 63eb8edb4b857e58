"""The references that train are themselves checked: their gradients against central differences, their parts against their formulas."""

import numpy as np
import pytest

from common.data import batches, cifar10, imdb
from common.params import cifar10_cnn as of_images
from common.params import imdb_gru as of_reviews
from common.params.imdb_gru import ADAMS, EXPECTED, FLAVOURS, GRUS, LR
from common.reference import cifar10_cnn, imdb_gru, layers
from common.reference.recurrent import gru, sigmoid

RNG = np.random.RandomState(0)
IMAGES, CLASSES = RNG.uniform(size=(3, 3, 32, 32)), np.array([1, 9, 4])
MASKS = cifar10_cnn.dropout_masks(3, np.random.RandomState(3))
REVIEWS = np.concatenate(
    [RNG.randint(1, 30, (3, 100)), np.zeros((3, 50), int)], axis=1
)  # words repeat; padded at the end
LABELS = np.array([0, 1, 1])

# name: a network, its inputs, more for its forward pass; the step of the differences, and how near they come
CASES = {
    # A step so short that hardly a ReLU changes sides
    "cifar10_cnn": (cifar10_cnn, (IMAGES, CLASSES), (), 1e-7, 1e-6),
    "cifar10_cnn with dropout": (cifar10_cnn, (IMAGES, CLASSES), (MASKS,), 1e-7, 1e-6),
}
CASES.update({flavour: (imdb_gru.of(flavour), (REVIEWS, LABELS), (), 1e-5, 1e-5) for flavour in GRUS})


def started(network):
    """Its initial weights, with biases that are not 0."""
    rng, start = np.random.RandomState(1), network.initial_weights(seed=2)
    return {name: a if a.ndim > 1 else rng.uniform(-0.1, 0.1, a.shape) for name, a in start.items()}


@pytest.mark.parametrize("case", CASES)
def test_gradients_by_central_differences(case):
    """Along the gradient itself, with a random half of its entries left out: every entry counts as much as it weighs."""
    network, (x, y), more, step, near = CASES[case]
    weights = started(network)
    gradients = network.gradients(weights, x, y, *more)[1]
    assert set(gradients) == set(network.WEIGHT_SHAPES)
    for name, g in gradients.items():
        direction = g * np.random.RandomState(4).randint(0, 2, g.shape)
        direction.flat[0] = g.flat[0]  # a bias of two may have lost both
        direction /= np.linalg.norm(direction)
        losses = []
        for sign in (1, -1):
            moved = dict(weights, **{name: weights[name] + sign * step * direction})
            losses.append(layers.cross_entropy(network.forward(moved, x, *more)[0], y))
        numeric, expected = (losses[0] - losses[1]) / (2 * step), np.sum(g * direction)
        assert expected > 0 and numeric == pytest.approx(expected, rel=near), name


@pytest.mark.parametrize("case", ["cifar10_cnn", "reset_after, one bias"])
def test_probabilities_do_not_depend_on_the_batches(case):
    network, (x, _) = CASES[case][:2]
    weights = started(network)
    whole = network.probabilities(weights, x)
    assert np.allclose(whole.sum(axis=1), 1)
    assert np.allclose(whole, network.probabilities(weights, x, size=2), atol=1e-12)


# Images: 24 steps of 32 suffice, in float32, because a step takes seconds. Reviews: one epoch, as quick has it
@pytest.mark.long
@pytest.mark.parametrize(
    "network, data, n_train, n_test, size, dtype, params, chance",
    [
        (cifar10_cnn, cifar10, 768, 200, 32, np.float32, of_images, (0, 0.3)),
        (imdb_gru.of("reset_after"), imdb, 5000, 1000, of_reviews.BATCHSIZE, np.float64, of_reviews, (0.4, 0.6)),
    ],
    ids=["images", "reviews"],
)
def test_generated_data_tell_a_network_that_learns(network, data, n_train, n_test, size, dtype, params, chance):
    x_train, y_train, x_test, y_test = data.load(n_train=n_train, n_test=n_test, synthetic=True)
    start = {name: array.astype(dtype) for name, array in network.initial_weights(seed=0).items()}
    trained, _ = network.train(start, list(batches(x_train, y_train, size, seed=0)), vars(params))
    before, after = ((network.probabilities(w, x_test).argmax(axis=1) == y_test).mean() for w in (start, trained))
    assert chance[0] <= before < chance[1] and 0.6 <= after <= 0.95


# The network of images


def test_masks_have_the_rates_of_their_layers():
    for mask, (shape, rate) in zip(cifar10_cnn.dropout_masks(20, np.random.RandomState(6)), cifar10_cnn.DROPOUT):
        assert mask.shape == (20,) + shape
        assert set(np.unique(mask)) == {0, 1 / (1 - rate)} and mask.mean() == pytest.approx(1, abs=0.05)


def test_dropout_losses_are_those_of_the_network():
    weights = started(cifar10_cnn)
    losses = cifar10_cnn.dropout_losses(weights, IMAGES, CLASSES, 2, np.random.RandomState(7))
    rng = np.random.RandomState(7)
    for loss in losses:
        logits, _ = cifar10_cnn.forward(weights, IMAGES, cifar10_cnn.dropout_masks(len(IMAGES), rng))
        assert loss == pytest.approx(layers.cross_entropy(logits, CLASSES))


def test_examples_are_alike_where_masks_are_looked_at():
    weights = cifar10_cnn.weights_for_masks(started(cifar10_cnn), CLASSES)
    masks = cifar10_cnn.dropout_masks(1, np.random.RandomState(8))
    logits, _ = cifar10_cnn.forward(weights, IMAGES, masks)
    losses = [layers.cross_entropy(logits[[i]], CLASSES[[i]]) for i in range(len(IMAGES))]
    assert len(IMAGES) > 1 and np.ptp(losses) < 1e-12
    assert np.ptp(cifar10_cnn.dropout_losses(weights, IMAGES, CLASSES, 5, np.random.RandomState(9))) > 1e-3


def test_training_lowers_the_loss_and_keeps_the_start():
    weights = started(cifar10_cnn)
    before = {name: array.copy() for name, array in weights.items()}
    trained, losses = cifar10_cnn.train(weights, [(IMAGES, CLASSES)] * 4, {"LR": 0.01, "MOMENTUM": 0.9})
    assert losses[-1] < losses[0]
    assert all(np.array_equal(weights[name], before[name]) for name in weights)
    assert all(not np.array_equal(trained[name], weights[name]) for name in weights)


def test_initial_weights_are_glorot():
    for name, array in cifar10_cnn.initial_weights(seed=0).items():
        assert array.shape == of_images.WEIGHT_SHAPES[name]
        if array.ndim == 1:
            assert cifar10_cnn.initial_bound(name) == 0 and not array.any()
        else:
            bound = np.sqrt(6.0 / (sum(array.shape[:2]) * np.prod(array.shape[2:])))
            assert cifar10_cnn.initial_bound(name) == pytest.approx(bound)
            assert 0.99 * bound < np.abs(array).max() <= bound


# The networks of reviews


@pytest.mark.parametrize("reset_after", [True, False])
def test_gru_is_that_of_its_formula(reset_after):
    x, w, u = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(15, 4)), RNG.normal(size=(15, 5))
    b, c = RNG.normal(size=15), RNG.normal(size=15)
    states, _ = gru(x, w, u, b, c, reset_after)
    for example in range(2):
        h = np.zeros(5)
        for t in range(3):
            a = w.dot(x[example, t]) + b
            r, z = sigmoid(a[:5] + u[:5].dot(h) + c[:5]), sigmoid(a[5:10] + u[5:10].dot(h) + c[5:10])
            state = r * (u[10:].dot(h) + c[10:]) if reset_after else u[10:].dot(r * h) + c[10:]
            h = (1 - z) * np.tanh(a[10:] + state) + z * h
            assert states[t + 1, example] == pytest.approx(h)


def test_flavours_are_different_networks():
    after, before, of_n = map(imdb_gru.of, ("reset_after", "reset_before", "reset_after, bias of n"))
    weights = started(after)
    logits = after.forward(weights, REVIEWS)[0]
    assert not np.allclose(logits, before.forward(weights, REVIEWS)[0], atol=1e-6)
    weights["gru.bias_hh"][:200] = 0
    expected = after.forward(weights, REVIEWS)[0]
    weights["gru.bias_hn"] = weights.pop("gru.bias_hh")[200:]
    assert np.allclose(of_n.forward(weights, REVIEWS)[0], expected)


@pytest.mark.parametrize("adam", ADAMS)
def test_adam_is_that_of_its_formula(adam):
    network = imdb_gru.of(", ".join(filter(None, ("reset_before", adam))))
    start = started(network)
    trained, losses = network.train(start, [(REVIEWS, LABELS)] * 2, {"LR": LR})
    assert losses[1] < losses[0]
    m, v, w = 0, 0, start
    for t in (1, 2):
        _, gradients, d_words = network.gradients(w, REVIEWS, LABELS)
        g = gradients["embedding.weight"]
        square = g**2
        if adam.endswith("occurrences"):
            square = np.zeros_like(g)
            for word, d in zip(REVIEWS.ravel(), d_words.reshape(-1, 125)):
                square[word] += d**2
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * square
        rate, root = 1 / (1 - 0.9**t), np.sqrt(1 - 0.999**t)
        by = np.sqrt(v) + 1e-8 if adam else np.sqrt(v) + 1e-8 * root
        moved = w["embedding.weight"] - LR * rate * root * m / by
        w, _ = network.train(start, [(REVIEWS, LABELS)] * t, {"LR": LR})
        assert np.allclose(w["embedding.weight"], moved, rtol=0, atol=1e-12)
    assert np.array_equal(trained["embedding.weight"][40:], start["embedding.weight"][40:]), "a word that never occurs"


def test_words_move_by_their_means_where_they_do_not_occur():
    network, other = imdb_gru.of("reset_after"), REVIEWS + 100
    start = started(network)
    once, _ = network.train(start, [(REVIEWS, LABELS)], {"LR": LR})
    then, _ = network.train(start, [(REVIEWS, LABELS), (other, LABELS)], {"LR": LR})
    assert (once["embedding.weight"][REVIEWS[0, 0]] != then["embedding.weight"][REVIEWS[0, 0]]).all()


@pytest.mark.parametrize("flavour", GRUS)
def test_initial_weights_lie_within_their_bounds(flavour):
    network = imdb_gru.of(flavour)
    start = network.initial_weights(seed=0)
    assert sum(array.size for array in start.values()) == EXPECTED[flavour]["parameters"]
    squares = {"embedding.weight": 0.05**2, "gru.weight_ih": 6 / 225, "gru.weight_hh": 6 / 200, "fc.weight": 6 / 102}
    for name, array in start.items():
        bound = np.sqrt(squares.get(name, 0))
        assert network.initial_bound(name) == pytest.approx(bound)
        assert 0.97 * bound <= np.abs(array).max() <= bound


def test_every_flavour_has_a_network():
    assert set(FLAVOURS) == set(EXPECTED) and len(FLAVOURS) == 12
