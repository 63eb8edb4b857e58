"""Tables in pages that are written by hand. The name of a block says what stands in it:

``rows MACHINE/TASK/COLUMN ROW ...``: these rows of a column;
``main``: the rows of the main task; ``environments``: what each holds and takes; ``builds``: the same of their builds for GPUs; ``choices``: which of these a card gets.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from rosetta import blocks, files, markdown, records
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError
from rosetta.paths import ENVIRONMENTS, RESULTS, ROOT
from rosetta.report import gpu, tables
from rosetta.report.columns import Column, TaskResults
from rosetta.report.pages import render
from rosetta.run import environments

PAGES = tuple(ROOT / name for name in ("README.md", "environments/README.md", "docs/gpu.md", "docs/lessons.md"))

Columns = dict[str, tuple[TaskResults, Column]]  # by the folder of their records


def write(catalog: Catalog) -> list[Path]:
    """Fill the blocks of all pages from the committed records; returns the paths of the pages."""
    pages = make(catalog)
    for page, text in pages.items():
        files.write_atomically(page, text)
    return list(pages)


def make(catalog: Catalog) -> dict[Path, str]:
    """The pages with their blocks made anew."""
    every = [record for _, record in records.read_all(RESULTS)]
    tasks = [TaskResults.of(catalog, key, every) for key in catalog.tasks]
    columns = {column.folder: (results, column) for results in tasks for column in results.columns}
    pages = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        made = {name: partial(_table, name, catalog, columns, page.parent) for name in blocks.names(text)}
        pages[page] = blocks.fill(text, made)
    return pages


def _table(name: str, catalog: Catalog, columns: Columns, base: Path) -> str:
    match name.split():
        case ["main"]:
            return _main(catalog, base)
        case ["environments"]:
            return _environments(catalog)
        case ["builds"]:
            return gpu.builds()
        case ["choices"]:
            return gpu.choices(catalog)
        case ["rows", folder, *names]:
            return _rows(columns, folder, names, base)
    raise RosettaError(f"there is no table {name!r}: see rosetta/report/written.py")


def _rows(columns: Columns, folder: str, names: list[str], base: Path) -> str:
    """The named rows of one column."""
    if folder not in columns:
        return ""
    results, column = columns[folder]
    shown = replace(results, rows=[row for row in results.rows if row.name in names])
    table = tables.overview(shown, columns=[column])
    about, *sources = map(markdown.wrapped, (markdown.escape(column.about()), *tables.sources(shown)))
    return "\n\n".join([about, render(table, RESULTS, base), *sources])


def _main(catalog: Catalog, base: Path) -> str:
    """The rows of the main task that need no GPU: how each is named on the command line, and its framework's years."""
    body = []
    for row in catalog.rows(catalog.main):
        framework = catalog.frameworks[row.framework]
        if row.facts.gpu_only is None:
            notebook = f"[{markdown.escape(row.title)}]({markdown.address(row.notebook, base)})"
            body.append([notebook, f"`{row.name}`", f"{framework.released}-{framework.retired or ''}"])
    return markdown.table(["framework", "row", "years"], body, [False, False, False])


def _environments(catalog: Catalog) -> str:
    rows = catalog.rows()
    plain = {(row.task, row.framework, row.environment) for row in rows if row.variant is None}
    # A variant says nothing more of an environment than the framework's plain row in it
    rows = [row for row in rows if row.variant is None or (row.task, row.framework, row.environment) not in plain]
    body, loaded = [], [environments.load(file.parent.name) for file in sorted(ENVIRONMENTS.glob("*/environment.toml"))]
    for environment in loaded:
        titles = dict.fromkeys(row.title for row in rows if row.environment == environment.name)
        recipe = environment.recipe
        sizes = [f"{size:g} GB" for size in (recipe.disk_gb, recipe.download_gb)]
        body.append([f"`{environment.name}`", recipe.python, "; ".join(titles) or "no row", *sizes])
    sums = [sum(getattr(environment.recipe, size) for environment in loaded) for size in ("disk_gb", "download_gb")]
    body.append(["all", "", "", *(f"{size:.1f} GB" for size in sums)])
    headings = ["environment", "Python", "rows", "disk", "download"]
    return markdown.table(headings, body, [False, False, False, True, True])
