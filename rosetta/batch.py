"""A batch: the planned runs one after the other, each record and the table written as soon as a run ends."""

import signal
from contextlib import contextmanager
from pathlib import Path

from rosetta import data, records, report
from rosetta.catalog import Catalog
from rosetta.execute import Run, execute
from rosetta.kernels import Kernels
from rosetta.plan import Plan
from rosetta.records import Machine, Record
from rosetta.screen import Screen


def run(
    plans: list[Plan], catalog: Catalog, kernels: Kernels, machine: Machine, results: Path, screen: Screen
) -> list[Record]:
    """Execute the plans in their order; Ctrl-C or SIGTERM ends the batch with KeyboardInterrupt and keeps what is finished.

    Raises RosettaError before the first run where the data is missing, and where a record cannot be written.
    """
    for dataset in {plan.dataset for plan in plans if not plan.synthetic}:
        data.locate(dataset)
    done: list[Record] = []
    with terminate_as_interrupt(), screen:
        for number, plan in enumerate(plans):
            screen.begin(number)
            finished = execute(
                plan, kernels, machine, lambda progress, number=number: screen.progress(number, progress)
            )
            try:
                save(finished, results)
            finally:
                finished.close()
            done.append(finished.record)
            screen.end(number, finished.record)
            report.write(catalog, results)
    return done


def save(run: Run, results: Path) -> None:
    """Put a run's executed notebook, log and record where they belong, the record last."""
    for source, suffix in ((run.executed, ".ipynb"), (run.log, ".log")):
        if source.is_file():
            target = records.path(run.record, results, suffix)
            records.write_atomically(target, source.read_text(encoding="utf-8", errors="replace"))
            if suffix == ".ipynb":
                run.record.notebook.executed = target.name
    records.write(run.record, results)


@contextmanager
def terminate_as_interrupt():
    """SIGTERM, as schedulers send it, ends a batch as orderly as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
