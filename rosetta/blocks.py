"""Generated tables in hand-written pages: one stands between ``[//]: # (NAME)`` and ``[//]: # (end)``, Markdown that nothing shows."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from rosetta import files
from rosetta.errors import RosettaError

BLOCK = re.compile(r"(?P<begin>\[//\]: # \((?P<name>(?!end\))[^()\n]+)\)\n).*?(?P<end>\[//\]: # \(end\))", re.DOTALL)

Tables = Mapping[str, Callable[[], str]]  # name of a block -> makes what stands in it, Markdown


def names(text: str) -> list[str]:
    """The blocks of a page."""
    return [match["name"] for match in BLOCK.finditer(text)]


def fill(text: str, tables: Tables) -> str:
    """The page's text with its blocks made anew. Raises RosettaError for a block that has no table."""

    def block(match: re.Match) -> str:
        if match["name"] not in tables:
            raise RosettaError(f"there is no table {match['name']}; there are: {', '.join(tables)}")
        return f"{match['begin']}\n{tables[match['name']]() or 'Not measured yet.'}\n\n{match['end']}"

    return BLOCK.sub(block, text)


def write(page: Path, tables: Tables) -> Path:
    """Fill the blocks of a page; returns its path."""
    files.write_atomically(page, fill(page.read_text(encoding="utf-8"), tables))
    return page
