"""Finds the data set of a task, through its loader in ``common.data``."""

import importlib
from collections.abc import Iterable
from pathlib import Path

from rosetta.errors import RosettaError


def locate(dataset: str, folder: Path | None = None, fetch: bool = True) -> Path:
    """The folder of a data set: the one given, else as its loader looks for it, downloaded first where it must be and may be.

    Raises RosettaError.
    """
    from common.data import DataError  # here, because it brings NumPy, which most commands do without

    try:
        return Path(importlib.import_module(f"common.data.{dataset}").locate(folder, fetch=fetch))
    except DataError as error:
        raise RosettaError(f"{'--data-dir: ' if folder else ''}{error}") from None


def locate_all(plans: Iterable, folder: Path | None = None) -> None:
    """Find what the plans need. Raises RosettaError for the first that is not there."""
    for dataset in dict.fromkeys(plan.dataset for plan in plans if plan.dataset and not plan.synthetic):
        locate(dataset, folder)
