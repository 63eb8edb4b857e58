"""Pieces of Markdown that the generated pages are made of."""

import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from rosetta.printable import printable

WIDTH = 118  # characters of a line of text
NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
INLINE = re.compile(r"[&<>|[\]`*\\~$]|(?<!\w)_|_(?!\w)")  # an underscore within a word is none of Markdown's
BLOCK = re.compile(r"^(\d*)(?=[#+=.)-]+(?:\s|$))", re.MULTILINE)  # what would make a line a heading or an item
UNQUOTED = "/,=+@"  # of a path, in an address


def table(heading: list[str], body: Iterable[list[str]], figures: bool | Sequence[bool] = True) -> str:
    """A table. figures: which columns are set flush right; True for all but the first."""
    if isinstance(figures, bool):
        figures = [False, *[figures] * (len(heading) - 1)]
    rule = ["---:" if right else "---" for right in figures]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heading, rule, *body])


def wrapped(text: str) -> str:
    """A paragraph in lines of a page's width."""
    return paragraph(textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def paragraph(text: str) -> str:
    """Lines none of which begins anything else than text."""
    return BLOCK.sub(r"\1\\", text.strip())


def link(target: Path, base: Path) -> str:
    """The way to a file, relative to the folder of the page."""
    return Path(os.path.relpath(target, base)).as_posix()


def address(target: Path, base: Path) -> str:
    """The same as Markdown writes it, whatever the names of the folders."""
    return quote(link(target, base), UNQUOTED)


def escape(text: str) -> str:
    """Text of any kind as one line that is no markup: in a table, a heading, a paragraph or a link."""
    line = printable(text).replace("\n", " ")
    return INLINE.sub(lambda found: NAMED.get(found[0], f"&#{ord(found[0])};"), line)


def code(text: str) -> str:
    """Text of any kind as code."""
    return f"`{printable(text).replace('`', chr(39)).replace(chr(10), ' ')}`"
