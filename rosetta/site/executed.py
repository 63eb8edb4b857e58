"""Executed notebooks as HTML, by nbconvert; the whole page of one is sanitised: no script runs and nothing is fetched."""

import base64
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import nh3
from markupsafe import Markup
from nbconvert import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter

from rosetta.errors import RosettaError

# What a page may consist of; of anything else the words stay
OF_THE_SITE = {"article", "aside", "details", "figure", "footer", "header", "hgroup", "map", "nav", "summary"}
TAGS = nh3.ALLOWED_TAGS - OF_THE_SITE | {"tfoot"}
ATTRIBUTES = {
    "*": {"class", "title", "style"},
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}
STYLES = {"color", "background-color", "font-weight", "text-align"}
SHAPES = {"circle", "ellipse", "g", "line", "path", "polygon", "polyline", "rect", "svg", "use"}
SHAPES |= {"clipPath", "defs", "linearGradient", "marker", "pattern", "radialGradient", "stop", "symbol"}
WORDS = {"desc", "text", "textPath", "title", "tspan"}
PLACE = {"cx", "cy", "d", "dx", "dy", "fx", "fy", "height", "points", "r", "rx", "ry", "width", "x", "y"}
PLACE |= {"offset", "orient", "refX", "refY", "rotate", "transform", "viewBox", "x1", "x2", "y1", "y2"}
LOOK = {"class", "dominant-baseline", "href", "id", "letter-spacing", "opacity", "preserveAspectRatio", "style"}
LOOK |= {"visibility", "xlink:href"}
PREFIXES = {"clip-", "fill", "font-", "gradient", "marker", "pattern", "stop-", "stroke", "text"}  # of more attributes
NAMESPACES = {"xmlns": "http://www.w3.org/2000/svg", "xmlns:xlink": "http://www.w3.org/1999/xlink"}
PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[\w+/=\s]*$")
WITHOUT_WORDS = re.compile(r"<img (?![^>]*\balt=)")
MALFORMED = (
    ValueError,
    AttributeError,
    LookupError,
    TypeError,
    RecursionError,
    nbformat.ValidationError,
)  # of nbformat
LINE_AGAIN = re.compile(r"[^\n]*\r(?!\n)")  # what a progress bar wrote before it began its line again


def body(file: Path, markup: Callable[[str], str]) -> Markup:
    """A notebook with its outputs, as the inside of a page. markup: makes HTML of its Markdown, with links that hold on that page."""
    exporter = _exporter()
    exporter.register_filter("markdown2html", markup)
    # Not HTMLExporter's own, which takes half as long again to mark what is stripped here
    html, _ = TemplateExporter.from_notebook_node(exporter, _read(file))
    html = _clean(html)  # nbconvert writes parts of an output's metadata as they are
    return Markup(WITHOUT_WORDS.sub('<img alt="A picture without a description" ', html))


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
    except (OSError, *MALFORMED) as error:
        raise RosettaError(f"{file.name} is not a notebook: {str(error).partition(chr(10))[0]}") from None


@cache
def _exporter() -> HTMLExporter:
    exporter = HTMLExporter(template_name="basic", sanitize_html=True)
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = exporter.exclude_anchor_links = True
    exporter.register_filter("clean_html", _clean)  # each part by itself, too: none closes what is around it
    exporter.register_filter("text_base64", _picture)
    exporter.register_filter("highlight_code", Highlight2HTML(parent=exporter))
    exporter.register_filter("filter_data_type", WidgetsDataTypeFilter(notebook_metadata={}, parent=exporter))
    return exporter


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_allowed,
        filter_style_properties=STYLES,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener",
    )


def _picture(svg: str) -> str:
    """An SVG as base64, for the address of a picture: its shapes and words alone."""
    drawn = nh3.clean(
        svg,
        tags=SHAPES | WORDS,
        attributes={"*": PLACE | LOOK},
        generic_attribute_prefixes=PREFIXES,
        set_tag_attribute_values={"svg": NAMESPACES},
        url_schemes=set(),
        link_rel=None,
    )
    return base64.b64encode(drawn.strip().replace("&nbsp;", "&#160;").encode()).decode()  # which XML does not know


def _allowed(tag: str, name: str, value: str) -> str | None:
    """Pictures only from the notebook itself, links only to pages, sizes only as numbers."""
    match tag, name:
        case "img", "src":
            return value if PICTURE.match(value) else None
        case "a", "href":
            return None if value.startswith("data:") else value
        case _, "width" | "height":
            return value if value.isdecimal() else None
    return value
