"""Mini-batches in an order that depends on the seed and the epoch alone, not on the framework."""

import numpy as np


def batches(x, y, size, seed=None, epoch=0):
    """Yield the arrays in mini-batches, shuffled anew each epoch.

    x, y: arrays of equal length N (first axis); size: rows a batch, the last batch may be smaller.
    seed: with the epoch (an int from 0) it fixes the order, on every Python and NumPy; None keeps the order of the arrays.
    Yields (x rows, y rows): copies when shuffled, views otherwise.
    """
    if len(x) != len(y):
        raise ValueError("x has %d rows, y has %d" % (len(x), len(y)))
    if size < 1:
        raise ValueError("batch size must be 1 or more, not %r" % (size,))
    if seed is None:
        for start in range(0, len(x), size):
            yield x[start : start + size], y[start : start + size]
        return
    # RandomState, not default_rng: its stream is frozen, and NumPy 1.16 has it
    order = np.random.RandomState([seed, epoch]).permutation(len(x))
    for start in range(0, len(x), size):
        rows = order[start : start + size]
        yield x[rows], y[rows]
