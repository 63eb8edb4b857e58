"""What data this process has loaded last, for the record: real or synthetic, and how much of it."""

_last = {}


def remember(**facts):
    """Called by a loader once the arrays are there."""
    _last.clear()
    _last.update(facts)


def description():
    """The facts of the last load: name, synthetic, n_train, n_test; empty when nothing was loaded."""
    return dict(_last)
