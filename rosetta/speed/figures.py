"""How measured numbers are written."""

import statistics
from collections.abc import Sequence


def spread(numbers: Sequence[float], digits: int) -> str:
    """Median, smallest and largest."""
    return f"{statistics.median(numbers):.{digits}f} ({min(numbers):.{digits}f} - {max(numbers):.{digits}f})"
