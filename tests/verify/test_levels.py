"""Each level of kind ``train`` sees what it is for. Pure arrays: no notebook runs here."""

import os
import re
from types import SimpleNamespace

import numpy as np
import pytest

from common.params.cifar10_cnn import EXPECTED
from common.reference import cifar10_cnn as network
from rosetta import catalog
from rosetta.verify import train
from rosetta.verify.proof import Judge, Outputs
from rosetta.verify.train import TOLERANCES

COUNT = EXPECTED["parameters"]


@pytest.fixture(scope="module")
def fresh():
    return {name: array.astype(np.float32) for name, array in network.initial_weights(seed=0).items()}


@pytest.mark.parametrize(
    "change, count, reason",
    [
        ({}, COUNT, None),
        ({"fc2.bias": None}, COUNT, "the tensor fc2.bias is missing"),
        ({"fc2.weight": np.zeros((512, 10), np.float32)}, COUNT, r"fc2.weight has the shape \(512, 10\)"),
        ({}, COUNT - 1, "3441591 parameters instead of 3441592"),
        ({}, None, "None parameters"),
    ],
)
def test_weights(fresh, change, count, reason):
    exported = {name: array for name, array in {**fresh, **change}.items() if array is not None}
    judge, record = Judge(1), SimpleNamespace(metrics=SimpleNamespace(parameters=count))
    assert Outputs(record, exported).fit(network, judge) == (not change)
    assert judge.finding.passed == (reason is None) and re.match(reason or "", judge.finding.reason or "")


@pytest.mark.parametrize(
    "name, change",
    [
        (None, None),
        ("conv1.weight", lambda w: w * 1.1),  # outside the bound
        ("conv2.weight", lambda w: w * 0.9),  # too small a variance
        ("fc2.weight", lambda w: np.abs(w)),  # not around 0
        ("fc1.weight", lambda w: np.random.RandomState(0).normal(size=w.shape) * w.std()),  # normal
        ("fc2.bias", lambda b: b + 0.01),
        ("fc1.weight", lambda w: w * np.nan),
    ],
)
def test_initial(fresh, name, change):
    changed = {name: change(fresh[name])} if name else {}
    finding = train.initial(fresh | changed, network.initial_bound, TOLERANCES)
    assert finding.passed == (name is None) and (name or "") in (finding.reason or "")


def probabilities(n=8):
    p = np.random.RandomState(0).uniform(size=(n, 10))
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "change, shift, accuracy, reason",
    [
        (lambda p: p + 1e-6, 0, 1.0, None),
        (lambda p: p + 2e-4, 0, 1.0, "test probabilities differ"),
        (lambda p: p * np.nan, 0, 1.0, "test probabilities differ"),
        (lambda p: p[:-1], 0, 1.0, "test probabilities of shape"),
        (lambda p: p, 0, 7 / 8, "the accuracy is not"),
        (lambda p: p, 1, 1.0, "the accuracy is not"),
    ],
)
def test_forward(change, shift, accuracy, reason):
    p = probabilities()
    finding = train.forward(change(p), p, (p.argmax(axis=1) + shift) % 10, accuracy, TOLERANCES)
    assert finding.passed == (reason is None) and (finding.reason or "").startswith(reason or "")


@pytest.mark.parametrize(
    "tensors, losses, reason",
    [
        ({}, [2.3, 2.2, 2.1], None),
        ({"a.bias": lambda a: a * (1 + 1.5e-5)}, [2.3, 2.2, 2.1], None),
        ({"a.bias": lambda a: a * (1 + 2e-4)}, [2.3, 2.2, 2.1], "a.bias differs"),
        ({"a.bias": lambda a: a * np.nan}, [2.3, 2.2, 2.1], "a.bias differs"),
        # Six thousandths of the change is too little to show in the weights themselves: weight decay is like that
        ({"a.weight": lambda a: a + 0.006 * 0.01}, [2.3, 2.2, 2.1], "the change of a.weight differs"),
        ({}, [2.3, 2.2, 2.1002], "the losses differ"),
    ],
)
def test_training(tensors, losses, reason):
    start = {"a.weight": np.full((100, 100), 2.0), "a.bias": np.full(100, 2.0)}
    after = {name: array + 0.01 for name, array in start.items()}
    wrong = after | {name: change(after[name]) for name, change in tensors.items()}
    finding = train.training(wrong, losses, start, after, [2.3, 2.2, 2.1], TOLERANCES)
    assert finding.passed == (reason is None) and (finding.reason or "").startswith(reason or "")


def draws(n, spread=0.1, mean=2.3, seed=0):
    return mean + spread * np.random.RandomState(seed).normal(size=n)


@pytest.mark.parametrize(
    "losses, offset, reason",
    [
        (draws(100, seed=1), 0, None),
        (draws(100, seed=1), 1e-3, "test probabilities differ"),
        (draws(100, spread=0.2), 0, "losses scatter by 0.2"),
        (draws(100, spread=0.05), 0, "losses scatter by 0.05"),
        (draws(100, mean=2.4), 0, "mean loss 2.4"),
        ([2.3] * 100, 0, "the losses are all the same: is dropout off in training, or are its masks"),
    ],
)
def test_dropout(losses, offset, reason):
    p = probabilities()
    judge = Judge(5, TOLERANCES)
    train.dropout(list(losses), draws(200), p + offset, p, judge)
    assert judge.finding.passed == (reason is None) and (judge.finding.reason or "").startswith(reason or "")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("task", ["cifar10_cnn", "imdb_gru"])
def test_orders_are_told_apart(task):
    """Else level 5 would take chance for a repeated order, or would look at nothing."""
    known = catalog.load()
    flavour = known.rows(task)[0].facts.flavour
    reference = train.Reference(known.task(task), flavour, synthetic=not os.environ.get("ROSETTA_DATA"))
    limit = (TOLERANCES | known.task(task).tolerances)["order"]
    assert train.told_apart(reference) > 4 * limit
