"""The kinds of task. A task names its kind in ``task.toml``; a kind says what its tasks, notebooks and records must have.

How a kind is proven stands in ``rosetta/verify/<kind>.py``. ``entries``, many small answers, is the smallest: it stands here.
"""

from typing import Any

from rosetta.figures import WHOLE
from rosetta.files import Count
from rosetta.kinds.infer import Infer
from rosetta.kinds.kind import MEASURED, PARAMETERS, RECORD, Kind, Metrics, Quantity, Role, Trouble
from rosetta.kinds.speed import Speed
from rosetta.kinds.train import Train


class EntriesMetrics(Metrics):
    answers: Count | None = None  # how many entries the notebook has


class Entries(Kind):
    name = "entries"
    roles = (PARAMETERS, Role("setup", "Setup"), Role("answers", "Answers", many=True), RECORD)
    lines = 800  # eight an entry, and there may be a hundred
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


KINDS: dict[str, Kind] = {kind.name: kind for kind in (Train(), Infer(), Speed(), Entries())}
