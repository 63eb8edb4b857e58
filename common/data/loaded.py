"""What data this process has loaded last, for the record: real or synthetic, and how much of it."""

_last = {}


def remember(name, synthetic, **sizes):
    """Called by a loader once the arrays are there. sizes: how many examples of each part, as ``train=5000``."""
    _last.update(name=name, synthetic=synthetic, sizes=sizes)


def description():
    """The facts of the last load: name, synthetic, sizes; empty when nothing was loaded."""
    return dict(_last)
