"""A batch: the planned runs one after the other, each record and the table written as soon as a run ends."""

import importlib
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path

from rosetta import records, report
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError
from rosetta.execute import Run, execute
from rosetta.kernels import Kernels
from rosetta.paths import portable
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
        check_data(dataset)
    done: list[Record] = []
    with _terminate_as_interrupt(), screen:
        for number, plan in enumerate(plans):
            screen.begin(number)
            finished = execute(
                plan, kernels, machine, lambda progress, number=number: screen.progress(number, progress)
            )
            try:
                save(finished, plan, results)
            finally:
                finished.close()
            done.append(finished.record)
            screen.end(number, finished.record)
            report.write(catalog, results)
    return done


def check_data(dataset: str) -> Path:
    """Find the data set, or download it once before any run starts; raises RosettaError."""
    from common.data import DataError

    try:
        return importlib.import_module(f"common.data.{dataset}").locate()
    except DataError as error:
        raise RosettaError(str(error)) from None


def save(run: Run, plan: Plan, results: Path) -> None:
    """Put a run's executed notebook, log and record where they belong, the record last."""
    record, stem = run.record, plan.row.stem
    column = records.folder(results, record.machine.name, record.task, record.preset, record.dataset.synthetic)
    suffix = "" if record.status == "ok" else ".failed"
    try:
        column.mkdir(parents=True, exist_ok=True)
        for source, target in (
            (run.executed, column / f"{stem}{suffix}.ipynb"),
            (run.log, column / f"{stem}{suffix}.log"),
        ):
            if source.is_file():
                shutil.copyfile(source, target.with_name(f".{target.name}"))
                target.with_name(f".{target.name}").replace(target)
                if target.suffix == ".ipynb":
                    record.notebook.executed = target.name
    except OSError as error:
        raise RosettaError(
            f"cannot write {portable(str(column))}: {error.strerror}; what was finished before is kept"
        ) from error
    records.write(record, column, stem)
    if record.status == "ok":
        for leftover in column.glob(f"{stem}.failed.*"):
            leftover.unlink()


@contextmanager
def _terminate_as_interrupt():
    """SIGTERM, as schedulers send it, ends a batch as orderly as Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
