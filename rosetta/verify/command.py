"""What ``run_all.py verify`` and ``run_all.py crossload`` do."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rosetta import catalog, data
from rosetta.batch.workers import Workers
from rosetta.catalog import Row
from rosetta.errors import RosettaError
from rosetta.paths import RESULTS, portable
from rosetta.plan import check_sizes
from rosetta.run import devices
from rosetta.run.kernels import Kernels, parse_given
from rosetta.verify import conformance, cross, page
from rosetta.verify.conformance import Conformance
from rosetta.verify.levels import LEVELS
from rosetta.verify.probes import Bench, Reference


@dataclass(frozen=True)
class Options:
    task: str | None = None
    data_dir: Path | None = None
    synthetic: bool = False
    out: Path | None = None
    python: list[str] = field(default_factory=list)
    gpus: str | None = None
    jobs: int | None = None  # rows at a time; None: one a GPU, or one a processor


def verify(names: list[str], options: Options) -> int:
    """Verify rows, show and keep what was found. Exit code 0 only if all pass; a row skipped here counts if named."""
    setting = Setting(names, options)
    reference = Reference(setting.task, options.synthetic)
    report = conformance.read(setting.results)
    console, ended = Console(), []

    def one(row: Row) -> Conformance:
        probe = setting.bench.prober(row, setting.task, options.synthetic)
        return conformance.verify(row, probe, reference, gpu=any(slot.on_gpu for slot in setting.bench.workers.slots))

    for found in setting.bench.workers.each(one, setting.rows):
        ended.append(found)
        report.add(found)
        conformance.write(report, setting.results)
        console.print(_line(found, len(ended), len(setting.rows)), soft_wrap=True)
    written = page.write(setting.catalog, setting.results)
    console.print(_table(sorted(ended, key=lambda found: [row.name for row in setting.rows].index(found.name))))
    passed = sum(found.passed for found in ended)
    on = "SYNTHETIC" if options.synthetic else "real"
    _tell(f"{passed} of {len(ended)} rows pass all levels on {on} images; {portable(str(written))}")
    return 0 if all(found.passed or found.skipped and not names for found in ended) else 1


def crossload(names: list[str], sizes: dict[str, int | None], options: Options) -> int:
    """Let the rows evaluate each other's weights and keep the matrix. Exit code 0 only if they agree.

    sizes: N_TRAIN and N_TEST where the user gave them.
    """
    setting = Setting(names, options)
    constants = setting.task.parameters()
    given = {name: size for name, size in sizes.items() if size is not None}
    check_sizes(given, constants)
    if len(setting.rows) < 2:
        raise RosettaError("crossload needs two rows or more")
    matrix = cross.make(
        setting.rows,
        setting.task,
        setting.bench,
        _tell,
        synthetic=options.synthetic,
        n_train=given.get("N_TRAIN", cross.N_TRAIN),
        n_test=given.get("N_TEST", constants["N_TEST"]),
    )
    cross.write(matrix, setting.results)
    written = page.write(setting.catalog, setting.results)
    _tell(
        f"{'all agree' if matrix.passed else 'NOT all agree'} within {cross.ALLOWED} images; {portable(str(written))}"
    )
    return 0 if matrix.passed else 1


class Setting:
    """What the options come to: the rows, where they run, where results go."""

    def __init__(self, names: list[str], options: Options):
        self.catalog = catalog.load()
        name = options.task or next(iter(self.catalog.tasks))
        self.rows = self.catalog.select(name, names)
        self.task = self.catalog.tasks[name]
        self.results = options.out.absolute() if options.out else RESULTS
        conformance.read(self.results), cross.read(self.results)  # a damaged file is told before the work, not after it
        if options.data_dir:  # kernels inherit it
            os.environ["ROSETTA_DATA"] = str(options.data_dir.absolute())
        if not options.synthetic:
            data.locate(self.task.data)
        self.bench = Bench(Kernels(parse_given(options.python)), Workers(devices.shared(options.gpus, options.jobs)))


def _tell(line: str) -> None:
    Console().print(line, highlight=False, soft_wrap=True, markup=False)


def _line(found: Conformance, number: int, of: int) -> Text:
    head = f"[{number}/{of}] {found.name}: "
    if found.skipped:
        return Text(f"{head}skipped: {found.skipped}", "yellow")
    failures = [
        f"level {finding.level} ({LEVELS[finding.level]}): {finding.reason}"
        for finding in found.findings
        if not finding.passed
    ]
    if failures:
        return Text(head + "FAILED " + "; ".join(failures), "red")
    return Text(f"{head}ok  ({found.seconds:.0f} s)")


def _table(found: list[Conformance]) -> Table:
    """Level by row, with the largest measured differences."""
    table = Table(box=None, pad_edge=False)
    table.add_column("row", no_wrap=True)
    for level, quantities in page.COLUMNS.items():
        for place, quantity in enumerate(quantities or (None,)):
            table.add_column(f"{level} {LEVELS[level]}" if place == 0 else quantity, justify="right")
    for one in found:
        findings = {finding.level: finding for finding in one.findings}
        cells = []
        for level, quantities in page.COLUMNS.items():
            finding = findings.get(level)
            style = "green" if finding and finding.passed else "red" if finding else "yellow"
            cells += [
                Text(page.cell(finding, quantity, one).replace("\\", "").replace("**", ""), style)
                for quantity in quantities or (None,)
            ]
        table.add_row(Text(one.name), *cells)
    return table
