"""The known mistakes of a task: ``common/reference/<task>_mistakes.py``, or what its ``of(flavour)`` returns where the task has flavours.

They are dicts: a key says in plain words what is done, its value offers what the kind needs. SIZES maps a number of values that an error
may tell, in place of SIZE, to a mistake. CARRIED has, for a mistake, the names of the tensors that it changes.
"""

import importlib
import importlib.util
from functools import cache
from types import SimpleNamespace

from rosetta.verify.probes import Reference

NONE = {
    "FORWARD": {},
    "TRAINING": {},
    "CARRIED": {},
    "SIZES": {},
    "SIZE": 1,
}


@cache
def known(reference: Reference) -> SimpleNamespace:
    """Every list of NONE; empty where the task has no such mistakes."""
    name = f"common.reference.{reference.task.key}_mistakes"
    lists = importlib.import_module(name) if importlib.util.find_spec(name) else SimpleNamespace()
    if hasattr(lists, "of"):
        lists = lists.of(reference.flavour)
    return SimpleNamespace(**NONE | vars(lists))
