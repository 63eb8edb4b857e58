"""Kind ``entries``: many small answers, each a few lines of a framework."""

from typing import Any

from rosetta.figures import WHOLE
from rosetta.files import Count
from rosetta.kinds.kind import MEASURED, PARAMETERS, RECORD, Kind, Metrics, Quantity, Role, Trouble


class EntriesMetrics(Metrics):
    answers: Count | None = None  # how many entries the notebook has


class Entries(Kind):
    name = "entries"
    roles = (PARAMETERS, Role("setup", "Setup"), Role("answers", "Entries", many=True), RECORD)
    core = "answers"
    constants = {"SEED": 0}
    saved = ("answers.npz",)
    metrics = EntriesMetrics
    timed = {"setup": "setup_s"}
    main = (Quantity("entries", lambda m: m.answers, WHOLE, better="more", timed=False),)
    details = MEASURED

    figures = """
- *Entries* is how many answers the notebook gives.
"""

    def items(self, constants: dict[str, Any]) -> float:
        return 0

    def size(self, constants: dict[str, Any]) -> str:
        return "all entries"

    def trouble(self, metrics: EntriesMetrics, params: dict[str, Any]) -> Trouble | None:
        return None if metrics.answers else Trouble("failed", "the notebook reported no answers")
