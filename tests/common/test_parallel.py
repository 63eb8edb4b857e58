"""The task ``densenet_parallel``: its metric and its network."""

import numpy as np
import pytest

from common.layers import Dense
from common.parallel import mean_auc
from common.params import densenet_parallel as params
from common.params import networks
from common.reference import densenet_parallel as reference

RNG = np.random.RandomState(0)


def test_mean_auc_is_the_chance_that_an_image_with_the_label_is_ranked_higher():
    labels = RNG.random_sample((40, 3)) < 0.3
    scores = RNG.randint(0, 6, labels.shape) / 6.0  # with ties
    areas = [
        np.mean([(a > b) + 0.5 * (a == b) for a in column[has] for b in column[~has]])
        for column, has in zip(scores.T, labels.T)
    ]
    assert mean_auc(scores, labels) == pytest.approx(np.mean(areas))
    with_one_of_all = np.concatenate([labels, np.ones((40, 1), bool)], axis=1)
    assert mean_auc(np.concatenate([scores, scores[:, :1]], axis=1), with_one_of_all) == pytest.approx(np.mean(areas))


def test_mean_auc_refuses_what_has_no_meaning():
    with pytest.raises(ValueError, match="no label that some of the 4 images have"):
        mean_auc(np.zeros((4, 2)), np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"probabilities of shape \(4, 2\), labels of shape \(4, 3\)"):
        mean_auc(np.zeros((4, 2)), np.ones((4, 3)))


def settings(layers):
    return [
        (layer.kind, [settings(part) for part in layer.branches])
        if layer.kind == "concat"
        else (layer.kind, vars(layer))
        for layer in layers
    ]


def test_the_network_is_that_of_the_benchmarks_with_other_logits():
    blocks = [int(number) for number in params.BLOCKS.split(",")]
    ours, (theirs, _) = params.densenet(blocks), networks.densenet121()
    assert settings(ours[:-1]) == settings(theirs[:-1]) and settings(ours[-1:]) == settings([Dense(len(params.LABELS))])


def test_the_whole_network_has_the_numbers_that_are_told():
    shapes = params.network(params.BLOCKS).WEIGHT_SHAPES
    statistics = sum(int(np.prod(shape)) for name, shape in shapes.items() if "running" in name)
    trained = sum(int(np.prod(shape)) for shape in shapes.values()) - statistics
    assert (trained, statistics) == (6968206, 83648)
    assert {expected["parameters"] for expected in params.EXPECTED.values()} == {trained}


def test_the_reference_computes_the_loss_of_its_gradients():
    """By differences, in the flavour where one gradient is of all devices' images."""
    network = reference.of("of all devices")
    weights = network.given_weights(1)
    x, y, _, _ = network.data(8, 1)
    _, gradients, _ = network.gradients(weights, x, y)
    for name in ("0.weight", "4.1.3.weight", next(n for n in weights if n.endswith("bias"))):
        direction = RNG.normal(size=weights[name].shape)
        up, down = (
            network.gradients(dict(weights, **{name: weights[name] + step * direction}), x, y)[0]
            for step in (1e-9, -1e-9)
        )
        assert (up - down) / 2e-9 == pytest.approx((gradients[name] * direction).sum(), rel=1e-4, abs=1e-6), name
