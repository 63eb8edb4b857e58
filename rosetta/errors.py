"""The errors that a user sees as one line."""

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class RosettaError(Exception):
    """Something the user can mend; the message is one line: what is wrong and what to do."""

    def __init__(self, message: object = ""):
        super().__init__(" ".join(str(message).splitlines()))  # what it quotes may have several


class Unavailable(RosettaError):
    """An environment that cannot be had on this machine; its rows are skipped with this reason."""


class SlotLost(RosettaError):
    """A GPU that was there no longer answers; its runs go elsewhere, or fail with this reason."""


def unknown(what: str, name: str, known: Iterable[str]) -> RosettaError:
    """The error for a name that does not exist, with the nearest one that does."""
    hint = meant(name, known) or f"there are: {', '.join(sorted(known)) or 'none'}"
    return RosettaError(f"unknown {what} {name}; {hint}")


def meant(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """A question for the nearest of the known names; None where none is near."""
    by_case = {one.lower(): one for one in sorted(known)}
    near = difflib.get_close_matches(name.lower(), by_case, n=1, cutoff=cutoff)
    return f"did you mean {by_case[near[0]]}?" if near else None


@contextmanager
def needs_extra(command: str) -> Iterator[None]:
    """Tells in one line what a command needs that this Python lacks; ``python3 run_all.py`` brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("rosetta"):
            raise
        raise RosettaError(
            f"{command} needs {error.name}, which this Python lacks: {sys.executable} -m pip install {error.name}, or "
            f"uv run --extra site run_all.py {command}"
        ) from None
