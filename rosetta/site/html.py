"""HTML of what people wrote, Markdown and Python, and the text that executed notebooks printed.

Raw HTML in Markdown stays text. A link to a file of the repository leads to its page; it may name another page of the site in
its title: ``[text](file "on the site: compare/task.html#a+b")``.
"""

import re
from collections.abc import Callable, Collection
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from pygments.lexers import PythonLexer
from pygments.token import Token as Code

from rosetta import notebook
from rosetta.paths import checkout

ON_SITE = "on the site: "  # what such a title begins with
PARSER = MarkdownIt("commonmark", {"html": False}).enable("table")
LEXER = PythonLexer(stripnl=False, ensurenl=False)
CLASSES = {  # of site.css, for what has a colour there
    Code.Comment: "c",
    Code.Keyword: "k",
    Code.Operator.Word: "k",
    Code.String: "s",
    Code.Number: "m",
    Code.Name.Function: "f",
    Code.Name.Class: "f",
    Code.Name.Decorator: "f",
}
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # of a terminal
MOST = 60  # lines that a page shows of what a cell printed
LINE_AGAIN = re.compile(r"[^\n]*\r(?!\n)")  # what a progress bar wrote before it began its line again

# A file of the repository and the fragment of the link -> an address; None where there is nothing to lead to
Resolve = Callable[[Path, str], str | None]


def markdown(text: str, folder: Path, resolve: Resolve) -> Markup:
    """Markdown as HTML. folder: where the text's own links start from."""
    tokens = PARSER.parse(text)
    for token, following in zip(tokens, [*tokens[1:], None]):
        if token.type == "heading_open":
            token.attrSet("id", place(following.content))
        for child in token.children or []:
            for name in {"href", "src"} & child.attrs.keys():
                _relink(child, name, folder, resolve)
    return Markup(PARSER.renderer.render(tokens, PARSER.options, {}))


def place(heading: str) -> str:
    """What links to a heading name it by, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _relink(token: Token, name: str, folder: Path, resolve: Resolve) -> None:
    address, title = str(token.attrs[name]), str(token.attrGet("title") or "")
    if title.startswith(ON_SITE):
        del token.attrs["title"]
        folder, address = checkout.site, title.removeprefix(ON_SITE)
    parts = urlsplit(address)
    if not parts.scheme and parts.path:
        target = resolve((folder / unquote(parts.path)).resolve(), f"#{parts.fragment}" if parts.fragment else "")
        if target is None:
            del token.attrs[name]
        else:
            token.attrSet(name, target)


def lines(code: str, constants: Collection[str] = (), definition: str = "") -> list[Markup]:
    """Each line of Python as HTML. constants: names that link to ``definition#name``."""

    def looks(token: tuple[Any, str]) -> str | None:
        kind, text = token
        if kind is Code.Name and text in constants:
            return f'a href="{escape(definition)}#{text}"'
        return next((f"span class={name}" for of, name in CLASSES.items() if kind in of), None)

    html = ""
    for element, tokens in groupby(LEXER.get_tokens(code), looks):
        parts = escape("".join(text for _, text in tokens), quote=False).split("\n")
        if element:
            parts = [part and f"<{element}>{part}</{element.partition(' ')[0]}>" for part in parts]
        html += "\n".join(parts)
    return [Markup(line) for line in html.removesuffix("\n").split("\n")]


# ---- Executed notebooks


def printed(file: Path) -> list[tuple[str, str, str]]:
    """The code cells of an executed notebook: tag, source, and what it printed, errors too; pictures by their name.

    Of more than ``MOST`` lines the first and the last are taken.
    """
    found = []
    for cell in notebook.cells(file):
        if cell.kind == "code":
            text = LINE_AGAIN.sub("", COLOURS.sub("", "".join(map(_text, cell.outputs)))).rstrip("\n")
            lines = text.split("\n")
            if (more := len(lines) - MOST) > 0:
                lines[MOST // 2 : -MOST // 2] = [f"[{more} more lines]"]
            found.append((cell.role or "", cell.source, "\n".join(lines)))
    return found


def _text(output: dict[str, Any]) -> str:
    match output["output_type"]:
        case "stream":
            return "".join(output["text"])
        case "error":
            return "\n".join(output["traceback"]) + "\n"
    return "".join(output["data"].get("text/plain", "")) + "\n"
