"""Finds the data sets of tasks, through their loaders in ``common.data``."""

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from rosetta.errors import RosettaError
from rosetta.plan import Plan


class Unreachable(RosettaError):
    """A data set that is not on this machine and could not be downloaded."""


def locate(dataset: str, folder: Path | None = None, fetch: bool = True) -> Path:
    """The folder of a data set: the one that is named, else as its loader looks for it, downloaded first where it must and may be.

    Raises RosettaError; Unreachable where no folder is named and the data could not be downloaded.
    """
    # Here, because it brings NumPy, which most commands do without
    from common.data import DataError, download

    try:
        return Path(importlib.import_module(f"common.data.{dataset}").locate(folder, fetch=fetch))
    except download.Unreachable as error:
        raise Unreachable(error) from None
    except DataError as error:
        raise RosettaError(f"{'--data-dir: ' if folder else ''}{error}") from None


def of(plans: Iterable[Plan]) -> list[str]:
    """The data sets that the plans read, each once."""
    return list(dict.fromkeys(plan.dataset for plan in plans if plan.dataset and not plan.synthetic))


def to_download(plans: Iterable[Plan]) -> Iterator[str]:
    """A line for each data set that the plans read and that is not there yet."""
    for dataset in of(plans):
        try:
            locate(dataset, fetch=False)
        except Unreachable as wanted:
            yield str(wanted)
        except RosettaError:  # a folder of the user's, which is looked at before the first run
            continue


def locate_all(plans: Iterable[Plan], folder: Path | None = None) -> None:
    """Find what the plans read. Raises RosettaError for the first that is not there."""
    for dataset in of(plans):
        locate(dataset, folder)
