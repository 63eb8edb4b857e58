"""Parameters: whether a value can stand in the place of another."""

from collections.abc import Mapping
from typing import Any

from rosetta.errors import RosettaError, unknown

# In records and presets beside parameters, and no notebook's: variables of the run's process tell them to ``common``
TOLD = {"SYNTHETIC": False, "TEST_EACH_EPOCH": False, "SAVE_TO": ""}
LARGEST = 10**15  # of any number


def fits(value: Any, usual: Any) -> bool:
    """Whether a value has the type of the usual one (None: any simple type) and is in its range.

    Numbers are finite. A whole number whose usual value is 1 or more is a count, and 0 counts nothing.
    """
    if usual is None:
        return value is None or fits(value, value) and not isinstance(value, list | dict)
    if isinstance(usual, bool) or isinstance(value, bool) or not isinstance(usual, int | float):
        return type(value) is type(usual)
    if isinstance(usual, int):
        return isinstance(value, int) and min(usual, 1) <= value <= LARGEST
    return isinstance(value, int | float) and (-LARGEST if usual < 0 else 0) <= value <= LARGEST


def check(values: Mapping[str, Any], usual: Mapping[str, Any], where: str) -> None:
    """Raises RosettaError for a value whose name is not among the usual ones, or that does not fit there. where: the values stand."""
    for name, value in values.items():
        if name not in usual:
            raise unknown(f"parameter in {where}:", name, usual)
        if not fits(value, usual[name]):
            raise RosettaError(f"{where}: {name} is {usual[name]!r} by itself; it cannot be {value!r:.60}")
