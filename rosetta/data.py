"""Finds the data set of a task, through its loader in ``common.data``."""

import importlib
from pathlib import Path

from rosetta.errors import RosettaError


def locate(dataset: str, fetch: bool = True) -> Path:
    """The folder of a data set, downloaded first where it must be and may be; raises RosettaError."""
    from common.data import DataError  # here, because it brings NumPy, which most commands do without

    try:
        return Path(importlib.import_module(f"common.data.{dataset}").locate(fetch=fetch))
    except DataError as error:
        raise RosettaError(str(error)) from None
