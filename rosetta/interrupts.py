"""How a batch is stopped by the user or a scheduler."""

import signal
from contextlib import contextmanager


@contextmanager
def terminate_as_interrupt():
    """SIGTERM, as schedulers send it, ends a batch as orderly as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
