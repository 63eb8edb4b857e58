"""The reference of resnet50_features: its flavours, and the weights that it draws."""

import numpy as np
import pytest

from common.data import images
from common.params.resnet50_features import EXPECTED, FLAVOURS, WEIGHT_SHAPES
from common.reference import resnet50_features

STRIDES = {
    "v1": [
        [[1, 1, 1]] * 3,
        [[2, 1, 1]] + [[1, 1, 1]] * 3,
        [[2, 1, 1]] + [[1, 1, 1]] * 5,
        [[2, 1, 1]] + [[1, 1, 1]] * 2,
    ],
    "v1.5": [
        [[1, 1, 1]] * 3,
        [[1, 2, 1]] + [[1, 1, 1]] * 3,
        [[1, 2, 1]] + [[1, 1, 1]] * 5,
        [[1, 2, 1]] + [[1, 1, 1]] * 2,
    ],
    "v1, epsilon 1.001e-5, stride and pool to the end": [
        [[1, 1, 1]] * 2 + [[1, 2, 1]],
        [[1, 1, 1]] * 3 + [[1, 2, 1]],
        [[1, 1, 1]] * 5 + [[1, 2, 1]],
        [[1, 1, 1]] * 3,
    ],
}


@pytest.mark.parametrize("flavour", STRIDES)
def test_strides(flavour):
    network = resnet50_features.of(flavour)
    blocks = [[network.strides(stage, block) for block in range(n)] for stage, n in enumerate((3, 4, 6, 3))]
    assert blocks == STRIDES[flavour]


def test_weights_are_those_of_torchvision():
    """Its own counts: 25,557,032 with the classifier of 2,048,000 + 1,000; 53 convolutions, each with a batch norm."""
    assert EXPECTED["v1.5"]["parameters"] == 25557032 - 2049000
    assert len(WEIGHT_SHAPES) == 53 * 5
    assert list(WEIGHT_SHAPES)[:6] == [
        "conv1.weight",
        "bn1.weight",
        "bn1.bias",
        "bn1.running_mean",
        "bn1.running_var",
        "layer1.0.conv1.weight",
    ]
    assert WEIGHT_SHAPES["layer4.0.downsample.0.weight"] == (2048, 1024, 1, 1)


def test_counts_of_biases():
    """Keras publishes 23,587,712 without the classifier, 53,120 of them statistics."""
    assert EXPECTED["v1, epsilon 1.001e-5, biases"]["parameters"] == 23587712 - 53120
    assert all(EXPECTED[flavour]["parameters"] >= 23508032 for flavour in FLAVOURS)


def test_drawn_weights_keep_activations_in_range_and_tell_images_apart():
    network = resnet50_features.of("v1")
    weights = network.initial_weights(seed=1)
    assert {name: array.shape for name, array in weights.items()} == WEIGHT_SHAPES
    features = network.outputs({name: array.astype(np.float32) for name, array in weights.items()}, images.generate(2))
    assert features.shape == (2, 2048) and features.dtype == np.float32
    assert 0.1 < features.mean() < 10 and (features >= 0).all()
    apart = np.linalg.norm(features[0] - features[1]) / np.linalg.norm(features[0])
    assert apart > 0.02, "a mistake in one image would hide"
