"""Canonical weights: what is written is read again, and what does not fit is named."""

import os

import numpy as np
import pytest

from common.params.cifar10_cnn import EXPECTED, FLATTENED, WEIGHT_SHAPES
from common.weights import (
    WeightsError,
    check_weights,
    from_channels_last,
    load_weights,
    save_weights,
    to_channels_last,
)

SHAPES = {"conv1.weight": (2, 3, 3, 3), "conv1.bias": (2,)}


def weights():
    rng = np.random.RandomState(0)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def test_shapes_of_the_task_count_all_parameters():
    assert sum(int(np.prod(shape)) for shape in WEIGHT_SHAPES.values()) == EXPECTED["parameters"]


def test_saved_and_loaded_again(tmp_path):
    written = weights()
    save_weights(str(tmp_path / "w.npz"), {name: written[name].astype(np.float64) for name in reversed(list(written))})
    read = load_weights(str(tmp_path / "w.npz"), SHAPES)
    assert list(read) == list(SHAPES)
    for name in SHAPES:
        assert read[name].dtype == np.float32 and read[name].flags.c_contiguous
        np.testing.assert_array_equal(read[name], written[name])
    with np.load(str(tmp_path / "w.npz")) as saved:
        assert saved["conv1.bias"].dtype == np.float32


def test_channels_last_and_back():
    canonical = {name: np.random.RandomState(1).normal(size=shape) for name, shape in WEIGHT_SHAPES.items()}
    turned = to_channels_last(canonical, FLATTENED)
    assert turned["conv2.weight"].shape == (3, 3, 50, 50) and turned["fc2.weight"].shape == (512, 10)
    again = from_channels_last(turned.values(), WEIGHT_SHAPES, FLATTENED)
    for name, array in canonical.items():
        np.testing.assert_array_equal(again[name], array)


def test_a_dense_layer_behind_an_image_gives_the_same_with_channels_last():
    weight = np.random.RandomState(2).normal(size=WEIGHT_SHAPES["fc1.weight"])
    image = np.random.RandomState(3).normal(size=(100, 8, 8))
    turned = to_channels_last({"fc1.weight": weight}, FLATTENED)["fc1.weight"]
    np.testing.assert_allclose(image.transpose(1, 2, 0).ravel() @ turned, weight @ image.ravel())


def test_float64_becomes_float32():
    checked = check_weights({name: array.astype(np.float64) for name, array in weights().items()}, SHAPES)
    assert {array.dtype for array in checked.values()} == {np.dtype(np.float32)}


def changed(**arrays):
    return dict(weights(), **{name.replace("_", "."): array for name, array in arrays.items()})


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"conv1.weight": weights()["conv1.weight"]}, "the tensor conv1.bias is missing"),
        (changed(conv1_bias=np.zeros(3)), r"conv1.bias has the shape \(3,\) instead of \(2,\)"),
        (changed(conv9_bias=np.zeros(2)), "there is no tensor conv9.bias in this network; it has conv1.weight, "),
        (changed(conv1_bias=np.array([0, np.nan])), r"conv1.bias holds numbers that are no finite float32 \(1\)"),
        (changed(conv1_bias=np.full(2, 1e300)), r"conv1.bias holds numbers that are no finite float32 \(2\)"),
        (changed(conv1_bias=np.zeros(2, int)), "conv1.bias holds int64 instead of floating-point numbers"),
    ],
)
def test_tensor_that_does_not_fit_is_named(tmp_path, wrong, message):
    with pytest.raises(WeightsError, match=message):
        check_weights(wrong, SHAPES)
    np.savez(str(tmp_path / "w.npz"), **wrong)
    with pytest.raises(WeightsError, match="w.npz: " + message):
        load_weights(str(tmp_path / "w.npz"), SHAPES)


class Trap(object):
    """Who reads its pickle makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def archive_of_pickles(path):
    np.savez(path, **{"conv1.weight": np.array([Trap(path + ".read")], dtype=object)})


def single_array(path):
    np.save(path + ".npy", np.zeros(3))
    os.rename(path + ".npy", path)


def truncated(path):
    save_weights(path, weights())
    os.truncate(path, 200)


def absent(path):
    pass


@pytest.mark.parametrize("make", [archive_of_pickles, single_array, truncated, absent])
def test_file_that_holds_no_weights(tmp_path, make):
    make(str(tmp_path / "w.npz"))
    with pytest.raises(WeightsError, match="cannot use the weights in .*w.npz: ") as caught:
        load_weights(str(tmp_path / "w.npz"), SHAPES)
    assert len(str(caught.value).splitlines()) == 1 and not (tmp_path / "w.npz.read").exists()
