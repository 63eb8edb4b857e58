"""Which data this process is to load, real or synthetic, and what it has loaded last, for the record."""

import os

VARIABLE, SYNTHETIC = "ROSETTA_DATA", "synthetic"

_last = {}


def is_synthetic():
    """Whether ``ROSETTA_DATA`` asks for generated data in place of a folder."""
    return os.environ.get(VARIABLE) == SYNTHETIC


def count(n, name, most):
    """How many examples a loader shall return: n, or all where it is None. Raises ValueError for a number there is not."""
    if n is None:
        return most
    if not 1 <= n <= most:
        raise ValueError("%s must be between 1 and %d, not %r" % (name, most, n))
    return int(n)


def remember(name, synthetic, **sizes):
    """Called by a loader once the arrays are there. sizes: how many examples of each part, as ``train=5000``."""
    _last.update(name=name, synthetic=synthetic, sizes=sizes)


def description():
    """The facts of the last load: name, synthetic, sizes; empty when nothing was loaded."""
    return dict(_last)
