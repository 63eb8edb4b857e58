"""What ``cifar10.load`` returns, and what it says of files that are missing or damaged."""

import os

import numpy as np
import pytest

from common.data import DataError, cifar10, loaded


def pixels(folder, name):
    """The pixels of a file, read the slow and plain way: (n, 3, 32, 32) uint8."""
    return np.frombuffer((folder / name).read_bytes(), np.uint8).reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32)


def test_pixels_are_exactly_a_255th(cifar):
    x_train, _, x_test, _ = cifar10.load("NCHW", data_dir=cifar)
    assert x_train.shape == (100, 3, 32, 32) and x_test.shape == (20, 3, 32, 32)
    assert x_test.dtype == np.float32 and x_test.flags.c_contiguous
    assert (x_test == pixels(cifar, "test_batch.bin").astype(np.float32) / np.float32(255)).all()


def test_nhwc_is_the_transpose_not_a_reshape(cifar):
    nchw, nhwc = (cifar10.load(layout, data_dir=cifar)[0] for layout in cifar10.LAYOUTS)
    assert nhwc.shape == (100, 32, 32, 3) and nhwc.flags.c_contiguous
    assert (nhwc == nchw.transpose(0, 2, 3, 1)).all()
    assert nhwc[5, 7, 30, 2] == np.float32(pixels(cifar, "data_batch_1.bin")[5, 2, 7, 30]) / np.float32(255)


def test_labels_are_int64_in_the_order_of_the_files_or_one_hot(cifar):
    _, y_train, _, y_test = cifar10.load("NCHW", data_dir=cifar)
    assert y_train.dtype == y_test.dtype == np.int64
    assert (y_train == np.tile(np.arange(10), 10)).all()
    _, _, _, one_hot = cifar10.load("NCHW", data_dir=cifar, one_hot=True)
    assert one_hot.dtype == np.float32 and (one_hot == np.eye(10)[y_test]).all()


@pytest.mark.parametrize("n_train", [1, 20, 21, 100])
def test_a_subset_is_the_start_of_the_whole(cifar, n_train):
    whole = cifar10.load("NCHW", data_dir=cifar)
    part = cifar10.load("NCHW", data_dir=cifar, n_train=n_train, n_test=3)
    for some, every, n in zip(part, whole, (n_train, n_train, 3, 3)):
        assert len(some) == n and (some == every[:n]).all()


def test_a_subset_reads_no_file_it_does_not_need(cifar):
    second = cifar / "data_batch_2.bin"
    second.write_bytes(b"\x0a" * second.stat().st_size)
    assert len(cifar10.load("NCHW", data_dir=cifar, n_train=20)[0]) == 20


@pytest.mark.parametrize("synthetic", [False, True])
def test_the_record_learns_what_was_loaded(cifar, synthetic):
    cifar10.load("NCHW", data_dir=cifar, n_train=30, n_test=5, synthetic=synthetic)
    assert loaded.description() == {"name": "CIFAR-10", "synthetic": synthetic, "sizes": {"train": 30, "test": 5}}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"layout": "CHWN"}, "layout must be NCHW or NHWC, not 'CHWN'"),
        ({"n_train": 0}, "n_train must be between 1 and 50000, not 0"),
        ({"n_train": 50001}, "n_train must be between 1 and 50000, not 50001"),
        ({"n_test": -1}, "n_test must be between 1 and 10000, not -1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError) as error:
        cifar10.load(**arguments)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda content: content[:-1], "has 61459 bytes instead of 61460"),
        (lambda content: content + b"\0", "has 61461 bytes instead of 61460"),
        (lambda content: b"\x0a" + content[1:], "holds the label 10"),
        (None, "lacks data_batch_3.bin"),
    ],
)
def test_damaged_files_are_one_line_that_names_the_file(cifar, damage, message):
    path = cifar / "data_batch_3.bin"
    content = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(content))
    with pytest.raises(DataError) as error:
        cifar10.load("NCHW", data_dir=cifar)
    assert message in str(error.value) and "data_batch_3.bin" in str(error.value)
    assert "\n" not in str(error.value)


def test_synthetic_images_are_the_same_every_time_in_both_layouts_and_on_every_python():
    first, again = (cifar10.load("NCHW", n_train=50, n_test=20, synthetic=True) for _ in range(2))
    nhwc = cifar10.load("NHWC", n_train=50, n_test=20, synthetic=True)
    for a, b in zip(first, again):
        assert (a == b).all()
    x, y, x_test, _ = first
    assert (nhwc[0] == x.transpose(0, 2, 3, 1)).all() and nhwc[0].flags.c_contiguous
    assert x.dtype == np.float32 and y.dtype == np.int64 and x.min() >= 0 and x.max() <= 1
    assert not set(map(bytes, x)) & set(map(bytes, x_test)), "images of the test are others"
    x, y, _, _ = cifar10.load("NCHW", n_train=10, n_test=10, synthetic=True)
    assert y.tolist() == [2, 9, 6, 4, 0, 3, 1, 7, 8, 5]
    assert x[0, 0, 0, :3].tolist() == pytest.approx([0.486219, 0.477021, 0.503176], abs=1e-6)


def test_synthetic_images_can_be_learned():
    x_train, y_train, x_test, y_test = cifar10.load("NCHW", n_train=500, n_test=200, synthetic=True)
    centroids = np.stack([x_train[y_train == c].mean(axis=0).ravel() for c in range(10)])
    distances = ((x_test.reshape(200, 1, -1) - centroids) ** 2).sum(axis=2)
    assert 0.85 < (distances.argmin(axis=1) == y_test).mean() < 0.95, "one label in ten is wrong"
    assert not (x_train[:200] == x_test).all(axis=(1, 2, 3)).any()


@pytest.mark.skipif(not os.environ.get("ROSETTA_DATA"), reason="ROSETTA_DATA names no folder with the real images")
def test_the_real_images():
    x_train, y_train, x_test, y_test = cifar10.load("NCHW")
    assert x_train.shape == (50000, 3, 32, 32) and x_test.shape == (10000, 3, 32, 32)
    assert x_train.mean(axis=(0, 2, 3), dtype=np.float64) == pytest.approx((0.4914, 0.4822, 0.4465), abs=5e-5)
    assert np.bincount(y_train).tolist() == [5000] * 10 and np.bincount(y_test).tolist() == [1000] * 10


def test_the_variable_asks_for_synthetic_data(monkeypatch):
    monkeypatch.setenv("ROSETTA_DATA", "synthetic")
    by_variable, by_argument = cifar10.load(n_train=20, n_test=5), cifar10.load(n_train=20, n_test=5, synthetic=True)
    assert loaded.description()["synthetic"] is True
    assert all(np.array_equal(one, other) for one, other in zip(by_variable, by_argument))
