"""Which data this process is to load, real or synthetic, and what it has loaded last, for the record."""

import os

VARIABLE, SYNTHETIC = "ROSETTA_DATA", "synthetic"

_last = {}


def is_synthetic():
    """Whether ``ROSETTA_DATA`` asks for generated data in place of a folder."""
    return os.environ.get(VARIABLE) == SYNTHETIC


def remember(name, synthetic, **sizes):
    """Called by a loader once the arrays are there. sizes: how many examples of each part, as ``train=5000``."""
    _last.update(name=name, synthetic=synthetic, sizes=sizes)


def description():
    """The facts of the last load: name, synthetic, sizes; empty when nothing was loaded."""
    return dict(_last)
