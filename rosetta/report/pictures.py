"""Where the pictures of the results lie, and what they show: the table names those that have been drawn."""

import re
from pathlib import Path

from rosetta.report.columns import Column

FOLDER = "pictures"  # below a results folder
CAPTIONS = {
    "epochs": "First epoch against steady epochs: the distance is what a framework compiles, tunes or warms up lazily. In the order of the catalog.",
    "curves": "Learning curves, one line a seed. Tests between epochs are off the clock.",
    "joules": "Training images a joule of the GPU, in the epochs after the first.",
}


def file_name(task: str, column: Column, kind: str) -> str:
    words = f"{task} {column.title} {kind}".lower()
    return re.sub(r"[^a-z0-9_]+", "-", words) + ".svg"


def drawn(results: Path, task: str, column: Column) -> dict[str, Path]:
    """The pictures of a column that are there, by kind."""
    files = {kind: results / FOLDER / file_name(task, column, kind) for kind in CAPTIONS}
    return {kind: file for kind, file in files.items() if file.is_file()}
