"""Packages that only some commands need. ``python3 run_all.py`` brings them; an interpreter of the user's may lack them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rosetta.errors import RosettaError


@contextmanager
def needs_extra(command: str) -> Iterator[None]:
    """One line about what is not installed, for a command that needs the extra ``site``."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("rosetta"):
            raise
        raise RosettaError(
            f"{command} needs {error.name}, which this Python lacks: {sys.executable} -m pip install {error.name}, or "
            f"uv run --extra site run_all.py {command}"
        ) from None
