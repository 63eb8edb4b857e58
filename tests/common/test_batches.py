"""The shuffled order is part of what makes runs comparable: it may depend on the seed and the epoch alone."""

import numpy as np
import pytest

from common.data import batches

X = np.arange(20).reshape(10, 2)
Y = np.arange(10)


def order(**arguments):
    return [int(label) for _, y in batches(X, Y, 4, **arguments) for label in y]


@pytest.mark.parametrize(
    "seed, epoch, expected",
    [
        (0, 0, [3, 7, 6, 4, 1, 0, 2, 8, 5, 9]),
        (0, 1, [9, 4, 0, 8, 1, 5, 3, 2, 6, 7]),
        (7, 0, [0, 1, 5, 7, 6, 9, 4, 3, 2, 8]),
    ],
)
def test_order_is_the_same_on_every_python_and_numpy(seed, epoch, expected):
    assert order(seed=seed, epoch=epoch) == expected


def test_no_seed_keeps_the_order_of_the_arrays():
    assert order() == list(range(10))


@pytest.mark.parametrize("seed", [None, 0])
def test_every_row_comes_once_with_its_label_and_the_last_batch_is_short(seed):
    parts = list(batches(X, Y, 4, seed=seed))
    assert [len(y) for _, y in parts] == [4, 4, 2]
    assert sorted(label for _, y in parts for label in y) == list(range(10))
    for x, y in parts:
        assert (x == X[y]).all()


def test_a_batch_larger_than_the_data_is_all_of_it():
    assert [len(y) for _, y in batches(X, Y, 64, seed=0)] == [10]


def test_lengths_that_differ_are_an_error():
    with pytest.raises(ValueError, match="x has 10 rows, y has 9"):
        list(batches(X, Y[:9], 4))


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_at_least_one_row(size):
    with pytest.raises(ValueError, match="batch size"):
        list(batches(X, Y, size))
