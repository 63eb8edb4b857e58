"""What is each old lesson worth? A notebook as it is, and with the line changed that a lesson of 2017 is about (lessons.toml).

Run ``uv run python -m studies.lessons``. It prints accuracies of several seeds, and milliseconds a step of three runs by turns, whose
last epoch counts. The answer is the first table of docs/lessons.md.
"""

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from common.record import PATTERN
from rosetta import data, files
from rosetta.cli import count, where
from rosetta.errors import RosettaError
from rosetta.figures import PERCENT, Sample, spread
from rosetta.files import Strict
from rosetta.kinds.kind import BATCH
from rosetta.measure.rows import Measuring
from rosetta.plan import Plan
from rosetta.where import Where

WRITTEN = Path(__file__).with_suffix(".toml")
ACCURACY = re.compile(r"^accuracy ([\d.]+) %", re.MULTILINE)  # of a plain script's last lines
TIMES = 3  # a lesson about time is measured so often


class Figure(Strict):
    """Lessons about one figure. parameters: of the runs."""

    parameters: dict[str, Any]
    lessons: dict[str, list[tuple[str, str, str]]]  # role of a cell, what stands there, what is to stand there


class Lessons(Strict):
    rows: list[str]
    accuracy: Figure
    time: Figure


@click.command()
@where("synthetic python")
@count("--seeds", "Runs of each lesson about accuracy.", default=2)
def main(where: Where, seeds: int) -> None:
    written = files.load(Lessons, WRITTEN)
    bench = Measuring(replace(where, names=tuple(written.rows)), "this study", "trains")
    data.locate_all([bench.plan(row, {}) for row in bench.rows], None)
    for row in bench.rows:
        runs = [bench.plan(row, written.accuracy.parameters | {"SEED": seed}) for seed in range(seeds)]
        for name, edits in ({"as it is": []} | written.accuracy.lessons).items():
            reached = [float(ACCURACY.search(output(bench, run, edits))[1]) / 100 for run in runs]
            print(f"{row.full_name}: {name}: {', '.join(map(PERCENT.one, reached))}", flush=True)
        run, lessons = bench.plan(row, written.time.parameters), {"as it is": []} | written.time.lessons
        rounds = [[step_s(bench, run, edits) for edits in lessons.values()] for _ in range(TIMES)]
        for name, values in zip(lessons, zip(*rounds)):
            print(f"{row.full_name}: {name}: {spread(Sample(values), 1, 1000)} ms a step", flush=True)


def output(bench: Measuring, planned: Plan, edits: list[tuple[str, str, str]]) -> str:
    code = dict(planned.row.code)
    for role, before, after in edits:
        if before not in code[role]:
            raise RosettaError(f"the cell {role} does not hold {before}")
        code[role] = code[role].replace(before, after)
    with TemporaryDirectory(prefix="rosetta-") as folder:
        return bench.script(planned, code, folder).run(bench.slot)


def step_s(bench: Measuring, planned: Plan, edits: list[tuple[str, str, str]]) -> float:
    lines = [PATTERN.match(line) for line in output(bench, planned, edits).splitlines()]
    epochs = [float(line["seconds"]) for line in lines if line]
    return epochs[-1] * planned.constants[BATCH] / planned.constants["N_TRAIN"]


if __name__ == "__main__":
    main()
