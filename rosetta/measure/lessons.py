"""What a lesson is worth: a notebook as it is, against copies of it with a line changed, ``notebooks/<task>/lessons.toml``."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.record import PATTERN
from rosetta import files
from rosetta.errors import RosettaError
from rosetta.files import Strict
from rosetta.kinds.train import BATCH
from rosetta.measure import cells, scripts
from rosetta.measure.rows import Measuring, Part, RowOptions
from rosetta.measure.scripts import Edit
from rosetta.plan import Plan
from rosetta.records import Point

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


def lessons(options: RowOptions, seeds: int) -> int:
    """Lessons about accuracy train with several seeds; those about time run by turns, and their last epoch counts."""
    bench = Measuring(options)
    written = {
        key: files.load(TaskLessons, task.folder / "lessons.toml")
        for key, task in bench.catalog.tasks.items()
        if (task.folder / "lessons.toml").is_file()
    }
    rows = [row for row in bench.rows if row.task in written and row.name in written[row.task].rows]
    if not rows or options.names and len(rows) < len(bench.rows):
        known = [f"{key}/{name}" for key, each in written.items() for name in each.rows]
        raise RosettaError(f"there are lessons for these rows alone: {', '.join(known)}")

    def work(planned: Plan) -> Iterator[Part]:
        of_task = written[planned.row.task]
        yield from _accuracies(bench, planned, of_task.accuracy, seeds)
        yield from _times(bench, planned, of_task.time)

    return bench.each(NAME, "lesson", [bench.plan(row, {}) for row in rows], work)


def _accuracies(bench: Measuring, planned: Plan, about: Lessons, seeds: int) -> Iterator[Part]:
    for name, edits in about.with_original().items():
        runs = [bench.plan(planned.row, about.parameters | {"SEED": seed}) for seed in range(seeds)]
        found = [float(ACCURACY.search(_output(bench, run, edits))[1]) / 100 for run in runs]
        point = Point(at={"lesson": name}, values=found, unit="accuracy")
        yield Part([point], f"{name}: {cells.lesson(point)}")


def _times(bench: Measuring, planned: Plan, about: Lessons) -> Iterator[Part]:
    run = bench.plan(planned.row, about.parameters)
    steps = run.constants["N_TRAIN"] / run.constants[BATCH]
    seconds: dict[str, list[float]] = {name: [] for name in about.with_original()}
    for _ in range(TIMES):
        for name, edits in about.with_original().items():
            lines = [PATTERN.match(line) for line in _output(bench, run, edits).splitlines()]
            seconds[name].append([float(line["seconds"]) for line in lines if line][-1] / steps)
    for name, values in seconds.items():
        point = Point(at={"lesson": name}, values=values)
        yield Part([point], f"{name}: {cells.lesson(point)}")


def _output(bench: Measuring, planned: Plan, edits: list[Edit]) -> str:
    with tempfile.TemporaryDirectory(prefix="rosetta-") as name:
        code = scripts.edited(scripts.cells(planned.row.notebook), edits)
        return scripts.write(planned, code, Path(name, "script.py"), bench.kernels).run(bench.slot)
