"""The pictures of the results: their files, and drawing them all anew."""

import re
from pathlib import Path

from rosetta import files, records
from rosetta.catalog import Catalog
from rosetta.kinds.kind import Curves, Dots
from rosetta.report.columns import Column, TaskResults

FOLDER = "pictures"


def address(column: Column, chart: Dots | Curves) -> str:
    """Where a picture is, below a results folder and on the site."""
    words = f"{column.task.key} {column.title} {chart.name}".lower()
    return f"{FOLDER}/{re.sub(r'[^a-z0-9_]+', '-', words)}.svg"


def drawn(results: Path, column: Column) -> list[tuple[Dots | Curves, Path]]:
    """The pictures of a column that are there."""
    named = [(chart, results / address(column, chart)) for chart in column.task.kind.charts]
    return [(chart, file) for chart, file in named if file.is_file()]


def draw(catalog: Catalog, results: Path) -> list[Path]:
    """Draw the pictures of all columns anew; returns their paths. Needs the optional extra ``site``."""
    from rosetta.report import charts  # here, because a batch does without matplotlib

    every = [record for _, record in records.read_all(results)]
    written = []
    for key in catalog.tasks:
        task = TaskResults.of(catalog, key, every)
        for column in task.columns:
            for picture in charts.draw(task.rows, column):
                written.append(results / address(column, picture.chart))
                files.write_atomically(written[-1], picture.svg)
    for old in set((results / FOLDER).glob("*.svg")) - set(written):
        old.unlink()
    return written
