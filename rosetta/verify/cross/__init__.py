"""Rows of one network and the same weights: what they compute is held against each other, not against the reference.

``<kind>.py`` does it for the tasks of a kind. ``make(rows, reference, bench, note, given)`` runs the rows and returns a model that
``conformance.Report`` keeps, with ``passed`` and ``section(titles)``. note: called with a line as each run ends. given: parameters
that the user has set. ``same_network(one, other)`` says whether two references compute the same from the same weights.
"""

import importlib
import importlib.util
from types import ModuleType


def of(kind: str) -> ModuleType | None:
    """The module of a kind, or None where its rows have nothing to exchange."""
    name = f"{__name__}.{kind}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
