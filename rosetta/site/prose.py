"""Markdown as HTML. Raw HTML in it stays text; links to files of the repository lead to their pages.

A link may name its own page of the site in its title: ``[text](file "on the site: compare/task.html#a+b")``.
"""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from rosetta.site.addresses import BUILT

ON_SITE = "on the site: "  # what such a title begins with
# A file of the repository and the fragment of the link -> an address; None where there is nothing to lead to
Resolve = Callable[[Path, str], str | None]


def markup(text: str, folder: Path, resolve: Resolve) -> Markup:
    """folder: where the text's own links start from."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for token, following in zip(tokens, [*tokens[1:], None]):
        if token.type == "heading_open":
            words = re.sub(r"[^\w\- ]", "", following.content.lower())
            token.attrSet("id", words.replace(" ", "-"))  # what links to the heading name it by, as GitHub makes it
        for child in token.children or []:
            _relink(child, folder, resolve)
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _relink(token: Token, folder: Path, resolve: Resolve) -> None:
    for name in ("href", "src"):
        address = token.attrGet(name)
        if address is None:
            continue
        title = str(token.attrGet("title") or "")
        if title.startswith(ON_SITE):
            del token.attrs["title"]
            folder, address = BUILT, title.removeprefix(ON_SITE)
        parts = urlsplit(str(address))
        if not parts.scheme and parts.path:
            fragment = f"#{parts.fragment}" if parts.fragment else ""
            target = resolve((folder / unquote(parts.path)).resolve(), fragment)
            if target is None:
                del token.attrs[name]
            else:
                token.attrSet(name, target)
