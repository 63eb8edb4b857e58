"""Which module proves a kind of task: ``rosetta/verify/<kind>.py``.

Each says, in its first lines, what parameters it sets in a notebook, what files the notebook then saves in ``SAVE_TO``, and
what the task's reference must offer. It has ``LEVELS`` (number -> name), ``COLUMNS`` (level -> the quantities that pages show),
``TOLERANCES`` (quantity -> the largest difference allowed), ``SAVED`` (the files), ``Reference`` (made of a task, a flavour, and
whether data is synthetic) and ``judge(row, probe, reference, gpu)``, which returns the findings and what the first probe left.
"""

import importlib
from types import ModuleType


def proof(kind_name: str) -> ModuleType:
    return importlib.import_module(f"rosetta.verify.{kind_name}")
