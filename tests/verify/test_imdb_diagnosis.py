"""The mistakes of imdb_gru fail their level and are named, and level 5 sees what the order of the examples shows. No notebook runs."""

from types import SimpleNamespace

import numpy as np
import pytest

from common.reference import imdb_gru
from rosetta import catalog
from rosetta.verify import train
from rosetta.verify.proof import Judge, Outputs, tolerances
from rosetta.verify.train import BATCH, BATCHSIZE, STEPS, TOLERANCES, Reference, Size

KNOWN = catalog.load()
ROW = KNOWN.select(["pytorch"], "imdb_gru")[0]
SMALL = Size(n_test=20, drop_steps=1, n_drop_test=20)
RIGHT = imdb_gru.of("reset_after")
LIMITS = tolerances(TOLERANCES, KNOWN.task("imdb_gru"), ROW)


@pytest.fixture(scope="module")
def reference():
    return Reference(KNOWN.task("imdb_gru"), "reset_after", synthetic=True)


def run(reference, feed=lambda x: x, predict=RIGHT.probabilities, network=RIGHT, labels=lambda y: y):
    """What a notebook leaves of ``trained``, with a mistake in one of its parts, and what the levels say."""
    x, y, xt, yt = reference.data(BATCH, SMALL.n_test)
    weights, losses = network.train(reference.start, [(feed(x), labels(y))] * STEPS, {"LR": 0.001})
    outputs = predict({name: array.astype(np.float32) for name, array in weights.items()}, feed(xt))
    metrics = SimpleNamespace(
        loss=losses, accuracy=float((outputs.argmax(axis=1) == labels(yt)).mean()), parameters=3818302
    )
    params = {"N_TRAIN": BATCH, "N_TEST": SMALL.n_test, "BATCHSIZE": BATCHSIZE}
    left = Outputs(SimpleNamespace(params=params, metrics=metrics), weights, outputs)
    findings, _ = train.trained(lambda parameters: left, reference, TOLERANCES, SMALL)
    return {each.level: each for each in findings}, train.diagnose(findings, left, reference, ROW)


def ordered(*places):
    """The network with the gates r, z, n read from other places of each matrix and bias."""
    rows = np.concatenate([np.arange(100 * place, 100 * place + 100) for place in places])

    def predict(weights, x):
        read = {name: w[rows] if name.startswith("gru") else w for name, w in weights.items()}
        return RIGHT.probabilities(read, x)

    return predict


def negated_update_gate(weights, x):
    signs = np.repeat([1, -1, 1], 100).astype(np.float32)
    read = {name: (w.T * signs).T if name.startswith("gru") else w for name, w in weights.items()}
    return RIGHT.probabilities(read, x)


def front(x):
    return np.array([[0] * list(row).count(0) + [word for word in row if word] for row in x])


def unmarked(x):
    return np.array([list(row[1:]) + [0] if row[0] == 1 else row for row in x])


def adam(corrected=True, inside=False, lazy=False, reset=False):
    """A network with another Adam, written anew."""
    network = imdb_gru.of("reset_after")

    def step(w, m, v, g, lr, t, squared):
        if reset and t % 2:  # a new optimizer in every epoch of two batches
            m, v = ({name: 0 * array for name, array in w.items()} for _ in "mv")
        t = 2 - t % 2 if reset else t
        c1, c2 = (1 - 0.9**t, 1 - 0.999**t) if corrected else (1, 1)
        new = ({}, {}, {})
        for name in w:
            slope = g[name]
            mean, square = 0.9 * m[name] + 0.1 * slope, 0.999 * v[name] + 0.001 * slope * slope
            by = np.sqrt(square / c2 + 1e-8) if inside else np.sqrt(square / c2) + 1e-8
            moved = w[name] - lr * mean / c1 / by
            if lazy and name == "embedding.weight":
                still = ~slope.any(axis=1)
                moved[still], mean[still], square[still] = w[name][still], m[name][still], v[name][still]
            new[0][name], new[1][name], new[2][name] = moved, mean, square
        return new

    network.step = step
    return network


def test_the_network_itself_passes(reference):
    findings, about = run(reference)
    assert all(finding.passed for finding in findings.values()) and about == {}
    assert all(finding.passed for finding in run(reference, network=adam())[0].values()), "the Adam of this test"


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    "level, name, mistake",
    [
        (3, "gates in the order z, r, n", {"predict": ordered(1, 0, 2)}),
        (3, "gates in the order n, z, r", {"predict": ordered(2, 1, 0)}),
        (3, "z and 1 - z exchanged", {"predict": negated_update_gate}),
        (3, "the other GRU (reset_before)", {"predict": imdb_gru.of("reset_before").probabilities}),
        (3, "the state after the first step", {"predict": lambda weights, x: RIGHT.probabilities(weights, x[:, :1])}),
        (3, "reviews padded at the front, or padding that is skipped", {"feed": front}),
        (3, "reading reviews from their end to their start", {"feed": lambda x: x[:, ::-1]}),
        (3, "a missing start mark", {"feed": unmarked}),
        (3, "ranks without the offset of 3", {"feed": lambda x: np.where(x > 3, x - 3, x % 3)}),
        (4, "Adam without the correction of its means", {"network": adam(corrected=False)}),
        (4, "Adam's epsilon inside the root", {"network": adam(inside=True)}),
        (4, "exchanged labels", {"labels": lambda y: 1 - y}),
    ],
)
def test_mistake_is_named(reference, level, name, mistake):
    findings, about = run(reference, **mistake)
    assert not findings[level].passed and f"this is what happens with {name} (" in about[level], about


def test_cut_at_the_wrong_end_fails(reference):
    """What the rest of a review said nobody knows any more, so this has no name."""
    findings, _ = run(reference, feed=lambda x: np.roll(x, 20, axis=1))
    assert not findings[3].passed


def shuffled(reference, orders, network=RIGHT, keep=lambda batch: True, weighted=True):
    """What level 5 finds of training with these orders of the examples, one an epoch."""
    x, y, _, _ = reference.data(train.EXAMPLES, n_test=1)
    batches = [batch for order in orders for batch in np.split(np.array(order), [train.LONG_BATCH]) if keep(batch)]
    weights, losses = network.train(reference.start, [(x[batch], y[batch]) for batch in batches], {"LR": 0.001})
    counts = np.reshape([len(batch) if weighted else 1 for batch in batches], (len(orders), -1))
    means = np.average(np.reshape(losses, counts.shape), axis=1, weights=counts)
    judge = Judge(5, LIMITS)
    train.order(list(means), reference, judge)
    return judge.finding


@pytest.mark.long
def test_orders_of_the_examples(reference):
    rng = np.random.RandomState(0)
    drawn = [rng.permutation(train.EXAMPLES) for _ in range(train.EPOCHS)]
    assert shuffled(reference, drawn).measured["order"] < 1e-9
    for orders, said in (
        ([range(train.EXAMPLES)] * train.EPOCHS, "the order that they are stored in"),
        ([range(train.EXAMPLES)[::-1]] * train.EPOCHS, "in the same order: are they shuffled anew"),
    ):
        assert said in shuffled(reference, orders).reason
    twice = [order[[0, 1, 2, 3, 3]] for order in drawn]
    for mistake in (
        {"keep": lambda batch: len(batch) == train.LONG_BATCH},
        {"weighted": False},
        {"network": adam(lazy=True)},
        {"network": adam(reset=True)},
    ):
        found = shuffled(reference, drawn, **mistake)
        assert "leads to the loss" in found.reason and found.measured["order"] > 3 * LIMITS["order"], mistake
    assert "taken twice" in shuffled(reference, twice).reason
