"""What each known mistake of training on several devices moves."""

import pytest

from common.reference import densenet_parallel_mistakes as mistakes
from rosetta import catalog
from rosetta.verify.train import TOLERANCES, Reference, training

TASK = catalog.load().task("densenet_parallel")
FLAVOURS = ("of each device, kept unbiased", "of each device, kept as their mean, epsilon hat", "of all devices")
CASES = [(flavour, mistake) for flavour in FLAVOURS for mistake in mistakes.of(flavour).TRAINING]


@pytest.fixture(scope="module")
def right():
    """For each flavour: the proof's constants, weights, images, and what training makes of them."""
    found = {}
    for flavour in FLAVOURS:
        known = Reference(TASK, flavour)
        x, y, _, _ = known.data(known.sizes["N_TRAIN"], 1)
        epochs = [(x, y)] * known.sizes["EPOCHS"]
        found[flavour] = known, epochs, known.network.train(known.start, epochs, known.constants)
    return found


@pytest.mark.drawn(4)
@pytest.mark.parametrize("flavour, mistake", CASES)
def test_each_known_mistake_fails_the_proof(right, flavour, mistake):
    known, epochs, (weights, losses) = right[flavour]
    wrong, told = mistakes.of(flavour).TRAINING[mistake].train(known.start, epochs, known.constants)
    assert training(weights, losses, known.start, weights, losses, TOLERANCES).passed
    assert not training(wrong, told, known.start, weights, losses, TOLERANCES).passed
