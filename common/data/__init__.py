"""Data loaders, one module a data set, and the shuffled batches that the notebooks share."""

from common.data.batching import batches
from common.data.errors import DataError

__all__ = ["DataError", "batches"]
