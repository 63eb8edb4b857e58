"""Names the mistake behind a failed proof: known ones are replayed in the place of the reference, and what they compute is compared.

``<kind>.py`` does it for the tasks of a kind: ``of(findings, left, reference, row)`` returns what is known of the failed levels,
level -> sentence. left: what the runs of the row have left. Kinds without such a module have no known mistakes.
"""

import importlib
import importlib.util

from rosetta.catalog import Row
from rosetta.verify.levels import Finding
from rosetta.verify.probes import Outputs, Reference


def of(findings: list[Finding], left: list[Outputs], reference: Reference, row: Row) -> dict[int, str]:
    name = f"{__name__}.{reference.task.kind_name}"
    if all(finding.passed for finding in findings) or not importlib.util.find_spec(name):
        return {}
    return importlib.import_module(name).of(findings, left, reference, row)
