"""Executed notebooks as HTML, by nbconvert; what their outputs contain is sanitised: no script runs and nothing is fetched."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import bleach
import nbformat
from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.filters import strip_ansi

from rosetta.errors import RosettaError

# What Markdown and outputs may consist of; anything else stays text
TAGS = set(bleach.ALLOWED_TAGS) | {"br", "caption", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "img", "p", "pre"}
TAGS |= {"kbd", "s", "small", "span", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr"}
LINE_AGAIN = re.compile(r"[^\n]*\r(?!\n)")  # what a progress bar wrote before it began its line again


def body(file: Path, markup: Callable[[str], str]) -> Markup:
    """A notebook with its outputs, as the inside of a page. markup: makes HTML of its Markdown, with links that hold on that page."""
    exporter = _exporter()
    exporter.register_filter("markdown2html", markup)
    html, _ = exporter.from_notebook_node(_read(file))
    return Markup(html)


@dataclass(frozen=True)
class Printed:
    """One code cell as it was executed. ``text``: what it printed, errors too; pictures by their name."""

    source: str
    text: str


def printed(file: Path, roles: Collection[str]) -> dict[str, list[Printed]]:
    """The cells of an executed notebook, by role."""
    cells: dict[str, list[Printed]] = {}
    for cell in _read(file).cells:
        for role in set(cell.metadata.get("tags", [])) & set(roles):
            text = strip_ansi("".join(map(_text, cell.outputs)))
            cells.setdefault(role, []).append(Printed(cell.source, LINE_AGAIN.sub("", text).rstrip("\n")))
    return cells


def _text(output: nbformat.NotebookNode) -> str:
    match output.output_type:
        case "stream":
            return output.text
        case "error":
            return "\n".join(output.traceback) + "\n"
    return output.data.get("text/plain", "") + "\n"


def _read(file: Path) -> nbformat.NotebookNode:
    try:
        return nbformat.read(file, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        raise RosettaError(f"{file.name} is not a notebook: {str(error).splitlines()[0]}") from None


@cache
def _exporter() -> HTMLExporter:
    exporter = HTMLExporter(template_name="basic", sanitize_html=True)
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = exporter.exclude_anchor_links = True
    clean = partial(bleach.clean, tags=TAGS, attributes=_allowed, protocols={"http", "https", "mailto", "data"})
    exporter.register_filter("clean_html", clean)  # nbconvert's own knows no headings
    return exporter


def _allowed(tag: str, name: str, value: str) -> bool:
    """Pictures only from the notebook itself, links only to pages."""
    if (tag, name) == ("img", "src"):
        return value.startswith("data:image/") and not value.startswith("data:image/svg")
    if (tag, name) == ("a", "href"):
        return not value.startswith("data:")
    return name in {"class", "title", "alt", "colspan", "rowspan"}
