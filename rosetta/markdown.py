"""Markdown for the generated pages: text, tables, and generated blocks in pages that are written by hand.

A block stands between ``[//]: # (NAME)`` and ``[//]: # (end)``, Markdown that nothing shows.
"""

import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rosetta import files
from rosetta.errors import RosettaError
from rosetta.figures import Cell, Table
from rosetta.streams import printable

WIDTH = 118  # characters of a line of text
NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
INLINE = re.compile(r"[&<>|[\]`*\\~$]|(?<!\w)_|_(?!\w)")  # an underscore within a word is none of Markdown's
START = re.compile(r"^(\d*)(?=[#+=.)-]+(?:\s|$))", re.MULTILINE)  # what would make a line a heading or an item
UNQUOTED = "/,=+@"  # of a path, in an address
BLOCK = re.compile(r"(?P<begin>\[//\]: # \((?P<name>(?!end\))[^()\n]+)\)\n).*?(?P<end>\[//\]: # \(end\))", re.DOTALL)


# ---- Text


def escape(text: str) -> str:
    """Text of any kind as one line that is no markup: in a table, a heading, a paragraph or a link."""
    line = printable(text).replace("\n", " ")
    return INLINE.sub(lambda match: NAMED.get(match[0], f"&#{ord(match[0])};"), line)


def code(text: str) -> str:
    """Text of any kind as code."""
    return f"`{printable(text).replace('`', chr(39)).replace(chr(10), ' ')}`"


def wrapped(text: str) -> str:
    """A paragraph in lines of a page's width."""
    return paragraph(textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def paragraph(text: str) -> str:
    """Lines none of which begins anything else than text."""
    return START.sub(r"\1\\", text.strip())


def link(target: Path, base: Path) -> str:
    """The way to a file, relative to the folder of the page."""
    return Path(os.path.relpath(target, base)).as_posix()


def address(target: Path, base: Path) -> str:
    """The same as Markdown writes it, whatever the names of the folders."""
    return quote(link(target, base), UNQUOTED)


def joined(parts: Iterable[str]) -> str:
    """The text of a page whose parts are these."""
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


# ---- Tables


def table(heading: list[str], body: Iterable[list[str]], figures: bool | Sequence[bool] = True) -> str:
    """A table of cells that are Markdown. figures: which columns are set flush right; True for all but the first."""
    if isinstance(figures, bool):
        figures = [False, *[figures] * (len(heading) - 1)]
    rule = ["---:" if right else "---" for right in figures]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heading, rule, *body])


def render(of: Table, address: Callable[[Any], str | None] = lambda target: None) -> str:
    """A table as Markdown; columns with figures are set flush right. address: of what a cell leads to, or None."""
    right = [any(row[place].value is not None for row in of.rows) for place in range(len(of.headings))]
    body = [[_cell(cell, address) for cell in row] for row in of.rows]
    return table([escape(heading.text) for heading in of.headings], body, right)


def _cell(cell: Cell, address: Callable[[Any], str | None]) -> str:
    text = escape(cell.text)
    if cell.badge == "bad":
        text = f"**{text}**"
    # A figure's own link would make the page unreadable as text: its record is named in the last column
    target = None if cell.to is None or cell.value is not None else address(cell.to)
    return f"[{text}]({target})" if target else text


# ---- Generated blocks

Blocks = Mapping[str, Callable[[], str]]  # name of a block -> makes what stands in it, Markdown


def blocks(text: str) -> list[str]:
    """The names of a page's blocks."""
    return [match["name"] for match in BLOCK.finditer(text)]


def fill(text: str, made: Blocks) -> str:
    """The page's text with its blocks made anew. Raises RosettaError for a block that nothing makes."""

    def block(match: re.Match) -> str:
        if match["name"] not in made:
            raise RosettaError(f"there is no table {match['name']}; there are: {', '.join(made)}")
        return f"{match['begin']}\n{made[match['name']]() or 'Not measured yet.'}\n\n{match['end']}"

    return BLOCK.sub(block, text)


def write(page: Path, made: Blocks) -> Path:
    """Fill the blocks of a page; returns its path."""
    files.write_atomically(page, fill(page.read_text(encoding="utf-8"), made))
    return page
