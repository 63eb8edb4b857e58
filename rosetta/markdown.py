"""Pieces of Markdown that the generated pages are made of."""

import os
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

WIDTH = 118  # characters of a line of text
ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "[": "&#91;", "]": "&#93;", "\n": " "})


def table(heading: list[str], body: Iterable[list[str]], figures: bool | Sequence[bool] = True) -> str:
    """A table. figures: which columns are set flush right; True for all but the first."""
    if isinstance(figures, bool):
        figures = [False, *[figures] * (len(heading) - 1)]
    rule = ["---:" if right else "---" for right in figures]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heading, rule, *body])


def wrapped(text: str) -> str:
    """A paragraph in lines of a page's width."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def link(target: Path, base: Path) -> str:
    """The address of a file, relative to the folder of the page."""
    return Path(os.path.relpath(target, base)).as_posix()


def escape(text: str) -> str:
    """Text that is no markup in a Markdown table."""
    return text.translate(ENTITIES)
