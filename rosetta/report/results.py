"""What there is to show of a task: its rows, the figures that others published, and columns of records.

A column has the records of one machine and one preset. Of each row it has the current experiment: runs in the same
conditions, with several seeds.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rosetta import files, identity, records
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError
from rosetta.files import Count, Positive, Strict
from rosetta.kinds.kind import Curves, Dots
from rosetta.paths import checkout
from rosetta.records import Machine, Record, days, path
from rosetta.tasks import PRESETS, UNTIMED, Task


class Published(Strict):
    """A file of ``results/published``, with its source. Figures are in the unit of the kind's main time."""

    source: str
    url: str
    year: Count
    conditions: str
    unit: str
    columns: dict[str, dict[str, Positive]]  # column title -> row name -> figure


def published(name: str) -> Published:
    """Read the published figures of a file, named without its ending."""
    return files.load(Published, checkout.results / "published" / f"{name}.toml")


def current(of_row: Iterable[Record]) -> list[Record]:
    """Of a row's records in one column, the newest and those of the same experiment, by their seeds.

    What was left by another notebook, other versions or other parameters does not count any more.
    """
    of_row = list(of_row)
    today = identity.conditions(max(of_row, key=lambda record: (record.started, -(record.seed or 0))))
    same = [record for record in of_row if identity.conditions(record) == today]
    return sorted(same, key=lambda record: record.params.get("SEED", 0))


@dataclass(frozen=True)
class Column:
    """Records of one task, machine, preset, changes to it, and kind of data."""

    task: Task
    runs: dict[str, list[Record]]  # by row name: its current experiment, one record a seed; only those that succeeded

    @property
    def records(self) -> list[Record]:
        return [record for runs in self.runs.values() for record in runs]

    @property
    def machine(self) -> Machine:
        return self.records[0].machine

    @property
    def title(self) -> str:
        return title(self.records[0])

    @property
    def folder(self) -> str:
        """Where its records are, below a results folder."""
        return path(self.records[0], Path()).parent.as_posix()

    def of(self, row: Row) -> list[Record]:
        """The runs of a row; none where it has not run."""
        return self.runs.get(row.name, [])

    def picture(self, chart: Dots | Curves) -> str:
        """Where the picture of a chart is, below a results folder and on the site."""
        words = f"{self.task.key} {self.title} {chart.name}".lower()
        return f"pictures/{re.sub(r'[^a-z0-9_]+', '-', words)}.svg"

    def about(self) -> str:
        """What was run, and on what."""
        machine, constants = self.machine, self.task.constants()
        gpus = ", ".join(f"{gpu.name} ({gpu.memory / 2**30:.0f} GiB, driver {gpu.driver})" for gpu in machine.gpus)
        sizes = dict.fromkeys(self.task.kind.size(constants | record.params) for record in self.records)
        data = self.records[0].dataset
        synthetic = "synthetic stand-in data" if self.task.data else "data that the task makes itself"
        named = synthetic if data.synthetic else data.name
        return (
            f"{machine.cpu}, {machine.cores} cores, {machine.memory / 2**30:.0f} GiB; {gpus or 'no GPU'}; {machine.os}. "
            f"{' or '.join(sizes)}{f' ({named})' if named else ''}; "
            f"run on {days(self.records)}."
        )


@dataclass(frozen=True)
class TaskResults:
    """The rows of a task in the catalog's order, those that cannot exist too, and the records of their presets.

    Measurements have pages of their own.
    """

    task: Task
    rows: list[Row]
    records: list[Record]

    @classmethod
    def of(cls, catalog: Catalog, key: str, records: Iterable[Record]) -> "TaskResults":
        task, rows = catalog.task(key), catalog.shown(key)
        names = {row.name for row in rows}
        shown = [one for one in records if one.task == key and one.name in names and one.preset in PRESETS]
        for one in shown:
            if one.kind != task.kind_name:
                place = path(one, Path()).as_posix()
                raise RosettaError(f"{place}: kind: {one.kind}, but {key} is of kind {task.kind_name}; delete it")
        return cls(task, rows, shown)

    @cached_property
    def columns(self) -> list[Column]:
        """Real data before synthetic, presets as they are before changed ones, machines with a GPU before those without, longer
        presets before shorter (but an epoch first where there is no GPU, for a CPU has that in minutes), more rows before fewer."""
        groups: dict[tuple, dict[str, list[Record]]] = {}
        for record in self.records:
            if record.status == "ok":
                on_cpu = not record.machine.gpus
                longest_first = -len(PRESETS) if on_cpu and record.preset == "epoch" else -PRESETS.index(record.preset)
                order = record.dataset.synthetic, bool(record.changed), on_cpu, longest_first
                key = order, record.machine.name, record.column
                groups.setdefault(key, {}).setdefault(record.name, []).append(record)
        return [
            Column(self.task, {name: current(of_row) for name, of_row in groups[key].items()})
            for key in sorted(groups, key=lambda key: (key[0], -len(groups[key]), key))
        ]

    @cached_property
    def presets(self) -> list[Column]:
        """The columns of presets as they are, whose times are figures; all where there are none."""
        usual = [one for one in self.columns if one.records[0].preset != UNTIMED and not one.records[0].changed]
        return usual or self.columns

    @cached_property
    def published(self) -> list[Published]:
        """The sources that have a figure of one of the rows."""
        names = {row.name for row in self.rows}
        sources = [published(name) for name in self.task.published]
        return [source for source in sources if any(names & set(column) for column in source.columns.values())]


def read_results(catalog: Catalog, results: Path) -> list[TaskResults]:
    """The results of every task, of the records below a results folder."""
    every = [record for _, record in records.read_all(results)]
    return [TaskResults.of(catalog, key, every) for key in catalog.tasks]


def title(record: Record) -> str:
    """The column of a record: machine, preset, what was changed, and whether the data is no real data."""
    # Of a path the last part
    changed = [f"{name}={Path(str(value)).name}" for name, value in sorted(record.changed.items())]
    synthetic = ["SYNTHETIC data"] if record.dataset.synthetic else []
    return ", ".join([record.machine.name, record.preset, *changed, *synthetic])
