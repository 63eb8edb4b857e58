"""What a lesson is worth: a notebook as it is, against copies of it with a line changed, ``notebooks/<task>/lessons.toml``."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from common.record import PATTERN
from rosetta import files
from rosetta.errors import RosettaError
from rosetta.files import Strict
from rosetta.kinds.kind import BATCH
from rosetta.measure import cells, scripts
from rosetta.measure.rows import Measuring
from rosetta.measure.scripts import Edit
from rosetta.measure.turns import by_turns
from rosetta.plan import Plan
from rosetta.records import Point
from rosetta.where import Where

NAME, AS_IT_IS = "lessons", "as it is"
ACCURACY = re.compile(r"^accuracy ([\d.]+) %", re.MULTILINE)  # of a plain script's last lines
TIMES = 3  # a lesson about time is measured so often


class Lessons(Strict):
    """Lessons about one figure. parameters: of the runs."""

    parameters: dict[str, Any]
    lessons: dict[str, list[Edit]]

    def with_original(self) -> dict[str, list[Edit]]:
        return {AS_IT_IS: []} | self.lessons


class TaskLessons(Strict):
    """``lessons.toml``. rows: those whose notebook has what the edits replace."""

    rows: list[str]
    accuracy: Lessons
    time: Lessons


def lessons(options: Where, seeds: int) -> int:
    """Lessons about accuracy train with several seeds; those about time run by turns, and their last epoch counts."""
    bench = Measuring(options, "measure lessons")
    written = {
        key: files.load(TaskLessons, task.folder / "lessons.toml")
        for key, task in bench.catalog.tasks.items()
        if (task.folder / "lessons.toml").is_file()
    }
    rows = [row for row in bench.rows if row.task in written and row.name in written[row.task].rows]
    if not rows or options.names and len(rows) < len(bench.rows):
        known = [f"{key}/{name}" for key, each in written.items() for name in each.rows]
        raise RosettaError(f"there are lessons for these rows alone: {', '.join(known)}")

    def output(planned: Plan, edits: list[Edit]) -> str:
        with bench.scripts(planned, scripts.edited(scripts.cells(planned.row.notebook), edits)) as (script,):
            return script.run(bench.slot)

    def step_s(planned: Plan, edits: list[Edit]) -> float:
        lines = [PATTERN.match(line) for line in output(planned, edits).splitlines()]
        steps = planned.constants["N_TRAIN"] / planned.constants[BATCH]
        return [float(line["seconds"]) for line in lines if line][-1] / steps

    def work(planned: Plan) -> Iterator[list[Point]]:
        row, about = planned.row, written[planned.row.task]
        runs = [bench.plan(row, about.accuracy.parameters | {"SEED": seed}) for seed in range(seeds)]
        for name, edits in about.accuracy.with_original().items():
            accuracies = [float(ACCURACY.search(output(run, edits))[1]) / 100 for run in runs]
            yield [Point(at={"lesson": name}, values=accuracies, unit="accuracy")]
        run = bench.plan(row, about.time.parameters)
        calls = {name: partial(step_s, run, edits) for name, edits in about.time.with_original().items()}
        for point in by_turns("lesson", calls, TIMES):
            yield [point]

    def line(points: list[Point]) -> str:
        return ": ".join(cells.lesson(points[0]))

    return bench.each(NAME, "lesson", [bench.plan(row, {}) for row in rows], work, line)
