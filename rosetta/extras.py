"""Packages that only some commands need, and that the plain installation lacks."""

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
        raise RosettaError(f"this needs {error.name}: uv run --extra site run_all.py {command}") from None
