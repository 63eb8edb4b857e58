"""The results pages: the tables of ``results.md`` and ``results/<task>.md``, with cells that sort and lead to their records."""

from pathlib import Path

from rosetta.paths import ROOT
from rosetta.report import charts, pictures, tables
from rosetta.report.columns import Column
from rosetta.report.pages import MEANING, meaning
from rosetta.site import addresses
from rosetta.site.content import TaskContent
from rosetta.site.pages import Pages


def write(pages: Pages, contents: list[TaskContent]) -> None:
    """The overview, and a page with all figures of each task."""
    href = addresses.OVERVIEW
    overviews = [_overview(pages, content, href) for content in contents]
    text = pages.markup(MEANING, ROOT / "results.md", href)
    pages.write(
        href, "results.html", "Results", "Results", meaning=text, overviews=overviews, columns=[], unfinished=None
    )
    for content in contents:
        _write_details(pages, content)


def _write_details(pages: Pages, content: TaskContent) -> None:
    href = addresses.of_task("results", content.key)
    pages.write(
        href,
        "results.html",
        f"Results: {content.task.title}",
        "Results",
        content.task,
        meaning=pages.markup(f"{MEANING}{meaning(content.task)}", ROOT / "results.md", href),
        overviews=[_overview(pages, content, href)],
        columns=[_column(pages, content, column, href) for column in content.results.columns],
        unfinished=tables.unfinished(content.results),
    )


def _overview(pages: Pages, content: TaskContent, href: str) -> dict:
    sources = [pages.markup(source, ROOT / "results.md", href) for source in tables.sources(content.results)]
    return {
        "key": content.key,
        "title": content.task.title,
        "details": addresses.relative(addresses.of_task("results", content.key), href),
        "table": tables.overview(content.results, content.badges),
        "notes": [*tables.notes(content.results), *sources],
    }


def _column(pages: Pages, content: TaskContent, column: Column, href: str) -> dict:
    drawn = []
    for picture in charts.draw(content.results.rows, column):
        src = Path(pictures.FOLDER, pictures.file_name(column, picture.chart)).as_posix()
        pages.save(src, picture.svg)
        drawn.append({"src": addresses.relative(src, href), "alt": picture.alt, "caption": picture.chart.caption})
    return {
        "title": column.title,
        "about": column.about(),
        "table": tables.details(content.results, column),
        "spread": tables.across_seeds(content.results, column),
        "pictures": drawn,
    }
