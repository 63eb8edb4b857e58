"""What the commands of the command line do."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rosetta import batch, catalog, machine, plan, records, report
from rosetta.kernels import Kernels, parse_given
from rosetta.paths import RESULTS, portable
from rosetta.screen import STYLES, Screen, clock


@dataclass(frozen=True)
class RunOptions:
    """The options of ``run``; None stands for the default that the machine decides."""

    task: str | None = None
    preset: str | None = None
    overrides: dict[str, Any] = field(default_factory=dict)
    data_dir: Path | None = None
    synthetic: bool = False
    out: Path | None = None
    timeout_s: float | None = None
    python: list[str] = field(default_factory=list)
    threads: int | None = None


def run(names: list[str], options: RunOptions) -> int:
    """Plan, announce and execute a batch. Exit code 0 only if every row that was to run succeeded.

    A row that this machine cannot hold is skipped; that counts as a failure only if the row was asked for by name.
    """
    console = Console()
    known = catalog.load()
    task = options.task or next(iter(known.tasks))
    here, kernels, results = machine.describe(), Kernels(parse_given(options.python)), _results(options.out)
    if options.data_dir:  # kernels inherit it; as a parameter it would put this machine's paths into the records
        os.environ["ROSETTA_DATA"] = str(options.data_dir.absolute())
    earlier = [record for _, record in records.read_all(results) if record.machine.name == here.name]
    plans = plan.make(
        known,
        known.select(task, names),
        options.preset or plan.default_preset(bool(here.gpus)),
        options.overrides,
        gpu=bool(here.gpus),
        synthetic=options.synthetic,
        threads=options.threads,
        timeout_s=options.timeout_s,
    )
    ordered = plan.cheapest_first(plans, earlier)
    _announce(ordered, here, console)
    screen = Screen([planned for planned, _ in ordered], console)
    done = batch.run([planned for planned, _ in ordered], known, kernels, here, results, screen)
    _summary(done, results, report.write(known, results), console)
    return 0 if all(record.status == "ok" or record.status == "skipped" and not names for record in done) else 1


def list_rows(task: str | None, python: list[str]) -> None:
    """One line a row: name, notebook, environment, state here, years."""
    known, kernels = catalog.load(), Kernels(parse_given(python))
    table = Table(box=None, pad_edge=False)
    for heading in ("row", "environment", "state here", "released", "ended"):
        table.add_column(heading, overflow="fold")
    for row in known.rows(task or next(iter(known.tasks))):
        framework = known.frameworks[row.framework]
        table.add_row(
            Text(row.name),
            row.environment,
            Text(kernels.state(row.environment)),
            str(framework.released),
            str(framework.retired or ""),
        )
    Console().print(table)


def write_report(out: Path | None) -> None:
    """Write the pages anew from what is on disk."""
    from rosetta.verify import page  # here, because it brings NumPy

    known, results = catalog.load(), _results(out)
    for written in (report.write(known, results), page.write(known, results)):
        print(portable(str(written)))


def _results(out: Path | None) -> Path:
    return out.absolute() if out else RESULTS


def _announce(ordered: list[tuple[plan.Plan, float]], here: records.Machine, console: Console) -> None:
    """The plan and its estimate, before it starts."""
    accelerator = ", ".join(gpu.name for gpu in here.gpus) or "no GPU"
    console.print(f"{here.cpu}, {here.cores} cores, {accelerator}; results as {here.name}", highlight=False)
    for planned, seconds in ordered:
        size = planned.constants
        note = f"  ({planned.note})" if planned.note else ""
        data = "synthetic images" if planned.synthetic else "images"
        console.print(
            f"  {planned.row.name:<20} {planned.preset:<6} {size['EPOCHS']} x {size['N_TRAIN']:,} {data}, about {clock(seconds)}{note}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    total = sum(seconds for _, seconds in ordered)
    console.print(f"{len(ordered)} runs, about {clock(total)}, besides installing what is missing", highlight=False)


def _summary(done: list[records.Record], results: Path, page: Path, console: Console) -> None:
    for record in done:
        if record.status != "ok":
            log = records.path(record, results, ".log")
            where = f" (log: {portable(str(log))})" if log.exists() else ""
            text = f"{record.name}: {record.status}: {record.error}{where}"
            console.print(Text(text, STYLES[record.status]), soft_wrap=True)
    succeeded = sum(record.status == "ok" for record in done)
    console.print(f"{succeeded} of {len(done)} runs ok; table: {portable(str(page))}", highlight=False, soft_wrap=True)
