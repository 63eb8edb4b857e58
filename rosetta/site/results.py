"""The results pages: the tables of ``results.md`` and ``results/<task>.md``, with cells that sort and lead to their records."""

from typing import Any

from rosetta.paths import ROOT
from rosetta.report import charts, pictures, tables
from rosetta.report.charts import Picture
from rosetta.report.columns import Column
from rosetta.report.pages import MEANING, meaning
from rosetta.site import addresses, downloads
from rosetta.site.content import TaskContent
from rosetta.site.pages import Pages


def write(pages: Pages, contents: list[TaskContent]) -> None:
    """The overview, and a page with all figures of each task."""
    common = {"tables": tables, "base": ROOT}
    overview = {"meaning": MEANING, "contents": contents, "columns": []}
    pages.write(addresses.OVERVIEW, "results.html", "Results", "Results", **common, **overview, **_choice(contents))
    for content in contents:
        downloads.write(pages, content)
        columns = [(column, _pictures(pages, content, column)) for column in content.results.columns]
        text = f"{MEANING}{meaning(content.task)}"
        shown = {"meaning": text, "contents": [content], "columns": columns}
        pages.write_of_task("results", content, **shown, **common, **_choice([content]))


def _choice(contents: list[TaskContent]) -> dict[str, Any]:
    """The frameworks to choose from, and an example of a text to search for: the title of a row."""
    frameworks = {key: one.title for content in contents for key, one in content.frameworks.items()}
    titles = [row.title for content in contents for row in content.rows]
    return {"frameworks": frameworks, "example": titles[-1] if titles else ""}


def _pictures(pages: Pages, content: TaskContent, column: Column) -> list[tuple[str, Picture]]:
    """The pictures of a column, each with its address."""
    drawn = []
    for picture in charts.draw(content.results.rows, column):
        href = pictures.address(column, picture.chart)
        pages.save(href, picture.svg)
        drawn.append((href, picture))
    return drawn
