"""The reference of imdb_gru is itself checked: its gradients against central differences, its parts against plain loops."""

import numpy as np
import pytest

from common.data import batches, imdb
from common.params.imdb_gru import ADAMS, BATCHSIZE, EXPECTED, FLAVOURS, GRUS, LR
from common.reference import imdb_gru, layers
from common.reference.recurrent import gru, sigmoid

RNG = np.random.RandomState(0)
REVIEWS = np.concatenate(
    [RNG.randint(1, 30, (3, 100)), np.zeros((3, 50), int)], axis=1
)  # words repeat; padded at the end
LABELS = np.array([0, 1, 1])


def started(flavour):
    network = imdb_gru.of(flavour)
    rng, start = np.random.RandomState(1), network.initial_weights(seed=2)
    return network, {name: a if a.ndim > 1 else rng.uniform(-0.1, 0.1, a.shape) for name, a in start.items()}


@pytest.mark.parametrize("flavour", GRUS)
def test_gradients_by_central_differences(flavour):
    """Along the gradient itself, with a random half of its entries left out: every entry counts as much as it weighs."""
    network, weights = started(flavour)
    _, gradients, _ = network.gradients(weights, REVIEWS, LABELS)
    assert list(gradients) == list(network.WEIGHT_SHAPES)
    for name, g in gradients.items():
        direction = g * np.random.RandomState(4).randint(0, 2, g.shape)
        direction.flat[0] = g.flat[0]  # a bias of two may have lost both
        direction /= np.linalg.norm(direction)
        losses = []
        for step in (1e-5, -1e-5):
            moved = dict(weights, **{name: weights[name] + step * direction})
            losses.append(layers.cross_entropy(network.forward(moved, REVIEWS)[0], LABELS))
        numeric, expected = (losses[0] - losses[1]) / 2e-5, np.sum(g * direction)
        assert expected > 0 and numeric == pytest.approx(expected, rel=1e-5), name


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


@pytest.mark.long
def test_generated_reviews_tell_a_network_that_learns():
    """One epoch, as quick has it."""
    x_train, y_train, x_test, y_test = imdb.load(n_train=5000, n_test=1000, synthetic=True)
    network = imdb_gru.of("reset_after")
    start = network.initial_weights(seed=0)
    trained, _ = network.train(start, list(batches(x_train, y_train, BATCHSIZE, seed=0)), {"LR": LR})
    before, after = ((network.probabilities(w, x_test).argmax(axis=1) == y_test).mean() for w in (start, trained))
    assert 0.4 < before < 0.6 <= after <= 0.95


def test_flavours_are_different_networks():
    after, weights = started("reset_after")
    before, _ = started("reset_before")
    of_n, _ = started("reset_after, bias of n")
    logits = after.forward(weights, REVIEWS)[0]
    assert not np.allclose(logits, before.forward(weights, REVIEWS)[0], atol=1e-6)
    weights["gru.bias_hh"][:200] = 0
    expected = after.forward(weights, REVIEWS)[0]
    weights["gru.bias_hn"] = weights.pop("gru.bias_hh")[200:]
    assert np.allclose(of_n.forward(weights, REVIEWS)[0], expected)


@pytest.mark.parametrize("adam", ADAMS)
def test_adam_is_that_of_its_formula(adam):
    network, start = started(", ".join(filter(None, ("reset_before", adam))))
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
    network, start = started("reset_after")
    other = REVIEWS + 100
    once, _ = network.train(start, [(REVIEWS, LABELS)], {"LR": LR})
    then, _ = network.train(start, [(REVIEWS, LABELS), (other, LABELS)], {"LR": LR})
    assert (once["embedding.weight"][REVIEWS[0, 0]] != then["embedding.weight"][REVIEWS[0, 0]]).all()


def test_probabilities_do_not_depend_on_the_batches():
    network, weights = started("reset_after, one bias")
    whole = network.probabilities(weights, REVIEWS)
    assert np.allclose(whole.sum(axis=1), 1)
    assert np.allclose(whole, network.probabilities(weights, REVIEWS, size=2), atol=1e-12)


@pytest.mark.parametrize("flavour", GRUS)
def test_initial_weights_lie_within_their_bounds(flavour):
    network = imdb_gru.of(flavour)
    start = network.initial_weights(seed=0)
    assert sum(array.size for array in start.values()) == EXPECTED[flavour]["parameters"]
    for name, array in start.items():
        bound = {
            "embedding.weight": 0.05,
            "gru.weight_ih": 6 / 225,
            "gru.weight_hh": 6 / 200,
            "fc.weight": 6 / 102,
        }.get(name, 0)
        bound = bound if name.startswith("emb") else np.sqrt(bound)
        assert network.initial_bound(name) == pytest.approx(bound)
        assert 0.97 * bound <= np.abs(array).max() <= bound


def test_every_flavour_has_a_network():
    assert set(FLAVOURS) == set(EXPECTED) and len(FLAVOURS) == 12
