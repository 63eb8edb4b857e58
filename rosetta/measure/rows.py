"""What every measurement of rows does: choose them, measure one after the other, keep each point as soon as it is there."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rosetta import catalog, data, plan, records
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.measure import keep, scripts, tables
from rosetta.paths import portable
from rosetta.plan import Plan
from rosetta.records import Point, Record
from rosetta.run import devices, kernels, machine
from rosetta.run.devices import Slot
from rosetta.run.execute import blank
from rosetta.tasks import UNTIMED
from rosetta.terminal import Console
from rosetta.where import Where

NOWHERE: dict[str, Any] = {}  # no parameters over the task's own


class Measuring:
    """The rows to measure, and where: those that are named, else those that gain something on this machine.

    what: is measured. has: the attribute of a kind that says whether it can be. Raises RosettaError for a name of which no row can
    be measured, and where no row is left.
    """

    def __init__(self, options: Where, what: str, has: str = "trains"):
        self.options, self.catalog = options, catalog.load()
        self.kernels = kernels.chosen(options.python, options.build)
        self.slot = devices.timed(options.gpus, threads=None)[0]
        self.processors = machine.processors()
        self.results = options.results
        self.console = Console()
        able = [key for key, task in self.catalog.tasks.items() if getattr(task.kind, has)]
        for name in options.names or [None]:
            if not self._able([name] if name else [], options.task, has):
                of = f" of {name}" if name else f" of {options.task}" if options.task else ""
                raise RosettaError(f"{what} measures nothing{of}: it takes rows of {', '.join(able)}")
        self.rows = self._able(options.names, options.task, has)
        if not (self.slot.on_gpu or options.names):
            self.rows = [row for row in self.rows if row.facts.gpu_only is None]
            if not self.rows:
                raise RosettaError(f"{what}: no row gains anything without a GPU: name those to be measured")

    def _able(self, names: list[str], task: str | None, has: str) -> list[Row]:
        return [row for row in self.catalog.select(names, task) if getattr(self.catalog.kind(row), has)]

    def with_threads(self, number: int) -> Slot:
        """The first GPU, or the CPU, with so many processors."""
        return devices.timed(",".join(self.slot.gpus) or devices.NONE, number)[0]

    def slow(self, row: Row, place: dict[str, Any] = NOWHERE) -> bool:
        """Whether a step takes seconds here, by the row's cost. place: parameters over the task's own."""
        task = self.catalog.task(row.task)
        return task.step_s(row.facts, task.constants() | place, gpu=False) >= 1 and not self.slot.on_gpu

    def plan(self, row: Row, overrides: dict[str, Any]) -> Plan:
        gpu, synthetic = self.slot.on_gpu, self.options.synthetic
        return plan.make(self.catalog, [row], UNTIMED, overrides, gpu=gpu, synthetic=synthetic)[0]

    def short(self, row: Row, steps: int, turns: int, place: dict[str, Any] = NOWHERE) -> Plan:
        """A run of a few steps a turn; a tenth of them where a step takes seconds."""
        task = self.catalog.task(row.task)
        kind, constants = task.kind, task.constants() | place
        steps = max(steps // 10, 1) if self.slow(row, place) else steps
        return self.plan(row, place | kind.short(constants, min(steps, kind.steps(constants)), turns))

    @contextmanager
    def scripts(self, planned: Plan, *codes: dict[str, str]) -> Iterator[list[scripts.Script]]:
        """Scripts of cells, in a folder that is there as long as the context lasts."""
        with tempfile.TemporaryDirectory(prefix="rosetta-") as folder:
            files = [Path(folder, f"script-{number}.py") for number in range(len(codes))]
            yield [scripts.write(planned, code, file, self.kernels, self.slot) for code, file in zip(codes, files)]

    def each(
        self,
        what: str,
        heading: str,
        plans: list[Plan],
        work: Callable[[Plan], Iterator[list[Point]]],
        line: Callable[[list[Point]], str],
        changed: dict[str, Any] | None = None,
        draw: Callable[[Catalog, list[Record], Path], list[Path]] | None = None,
    ) -> int:
        """Measure the rows of the plans. Exit code 0 only if all could be measured; what is not there counts if it was named.

        work: gives points of a row, some at a time; line: shows these, below the heading. changed: what was set by hand and makes
        another measurement. draw: draws pictures of the records at the end.
        """
        data.locate_all(plans, self.options.data_dir)
        if self.options.data_dir:  # the scripts inherit it
            os.environ["ROSETTA_DATA"] = str(self.options.data_dir.absolute())
        self.console.say(f"{'row':<22}{heading}")
        failed = False
        for planned in plans:
            title = self.catalog.label(planned.row)
            try:
                record = blank(planned, self.slot, self.kernels)
                record.preset, record.changed, record.status = what, changed or {}, "ok"
                record.dataset.synthetic |= planned.dataset is None  # the task makes its own data
                for points in work(planned):
                    keep.row(record.model_copy(update={"points": points}), self.results)
                    self.console.say(f"{title:<22}{line(points)}")
            except Unavailable as reason:
                self.console.say(f"{title}: {reason}", "yellow")
                failed |= bool(self.options.names)
            except RosettaError as error:
                self.console.say(f"{title}: {error}", "red")
                failed = True
        kept = [record for _, record in records.read_all(self.results)]
        pictures = draw(self.catalog, kept, self.results) if draw else []
        for file in [*pictures, *tables.Tables(self.catalog, kept, self.results).write()]:
            self.console.say(portable(str(file)))
        return int(failed)


def usual_threads() -> list[int]:
    """1, 2, 4 ... and as many as there are processors."""
    there = len(machine.processors())
    return [2**power for power in range(there.bit_length()) if 2**power < there] + [there]
