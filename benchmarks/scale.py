"""What very large batches cost the runner itself: 100,000 runs, 1,000 workers, by simulation.

    uv run benchmarks/scale.py [--runs 100000]

No notebook runs: plans, status and records are those of a batch of all rows with thousands of seeds, made from a real record.
Each step is measured in a process of its own: seconds on the clock and of the processor, growth of its largest resident memory.
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console

from rosetta import catalog, plan, records
from rosetta.batch import journal
from rosetta.batch.journal import Journal, Line, Status
from rosetta.batch.screen import table
from rosetta.compare.comparison import compare
from rosetta.paths import RESULTS
from rosetta.records import Record
from rosetta.report import tables
from rosetta.run.execute import Progress

WORKERS, SPAN_S = 1000, 10


class Measured:
    """Seconds and memory of a step, which may prepare before and note something."""

    def __init__(self):
        self.note = ""

    def __enter__(self) -> "Measured":
        self.memory, self.cpu, self.started = _peak(), time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_) -> None:
        self.seconds, self.cpu = time.perf_counter() - self.started, time.process_time() - self.cpu
        self.memory = _peak() - self.memory


def planning(runs: int, folder: Path) -> Measured:
    with Measured() as measured:
        plans = _plans(runs)
    measured.note = f"{len(plans):,} plans"
    return measured


def ordering(runs: int, folder: Path) -> Measured:
    """With as many earlier records as plans, from which the estimates come."""
    plans, earlier = _plans(runs), list(_records(runs))
    with Measured() as measured:
        plan.cheapest_first(plans, earlier)
    return measured


def status(runs: int, folder: Path) -> Measured:
    """The status of the batch, written once."""
    kept = _journal(runs, folder)
    with Measured() as measured:
        kept.renew(now=True)
    measured.note = f"{(folder / 'status.json').stat().st_size / 1e6:.0f} MB"
    return measured


def telling(runs: int, folder: Path) -> Measured:
    """What the runner's time the status takes: every worker begins a run, trains an epoch and ends the run within ``SPAN_S``."""
    kept, record = _journal(runs, folder), next(_records(1))
    with Measured() as measured:
        for number in range(WORKERS):
            kept.begin(number, "GPU 0")
            kept.progress(number, Progress("training", 1, 10, "1.2345"))
            kept.end(number, record)
            time.sleep(SPAN_S / WORKERS)
        kept.close()
    measured.note = f"{3 * WORKERS:,} events in {measured.seconds:.0f} s"
    return measured


def watching(runs: int, folder: Path) -> Measured:
    """One look at the batch from another terminal."""
    _journal(runs, folder)
    with Measured() as measured:
        found = journal.read_status(folder)
        with open(os.devnull, "w") as nowhere:
            Console(file=nowhere, width=120).print(table(found, 40))
    return measured


def showing(runs: int, folder: Path) -> Measured:
    """The batch's own live table, drawn twice a second."""
    kept = _journal(runs, folder)
    with Measured() as measured, open(os.devnull, "w") as nowhere:
        Console(file=nowhere, width=120).print(table(kept.status, 40))
    return measured


def keeping(runs: int, folder: Path) -> Measured:
    """One more record beside all others."""
    record = next(_records(1))
    records.write(record, folder / "results")  # the folder's entries are in the cache of the file system now
    with Measured() as measured:
        records.write(record, folder / "results")
    return measured


def reading(runs: int, folder: Path) -> Measured:
    with Measured() as measured:
        found = sum(1 for _ in records.read_all(folder / "results"))
    measured.note = f"{found:,} records"
    return measured


def reporting(runs: int, folder: Path) -> Measured:
    with Measured() as measured:
        size = len(tables.page(catalog.load(), folder / "results", folder))
    measured.note = f"{size / 1e3:.0f} kB"
    return measured


def comparing(runs: int, folder: Path) -> Measured:
    before, after = list(_records(runs)), list(_records(runs))
    with Measured() as measured:
        compare(before, after)
    return measured


STEPS: dict[str, Callable[[int, Path], Measured]] = {
    "plan": planning,
    "order by estimate": ordering,
    "write the status": status,
    "1,000 workers tell": telling,
    "live table, once": showing,
    "watch, one look": watching,
    "keep one record": keeping,
    "read all records": reading,
    "results.md": reporting,
    "compare": comparing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(options.runs, folder / "results")
        print(f"{options.runs:,} runs\n{'step':<20} {'seconds':>8} {'cpu s':>8} {'MiB':>6}")
        for title, step in STEPS.items():
            with context.Pool(1) as pool:
                measured = pool.apply(step, (options.runs, folder))
            print(
                f"{title:<20} {measured.seconds:>8.2f} {measured.cpu:>8.2f} {measured.memory / 2**20:>6.0f}  {measured.note}",
                flush=True,
            )


def _plans(runs: int) -> list[plan.Plan]:
    known = catalog.load()
    rows = known.rows(next(iter(known.tasks)))
    return plan.make(known, rows, "full", {}, gpu=True, seeds=runs // len(rows))


def _records(runs: int):
    """Records of all rows and seeds of such a batch, from a real one."""
    known = catalog.load()
    rows = known.rows(next(iter(known.tasks)))
    real = json.loads(next(RESULTS.glob("*/*/full/pytorch.json")).read_text())
    for number in range(runs):
        row, seed = rows[number % len(rows)], number // len(rows)
        own = {"framework": row.framework, "variant": row.variant, "seed": seed or None}
        yield Record.model_validate(real | own | {"params": real["params"] | {"SEED": seed}})


def _write(runs: int, results: Path) -> None:
    for record in _records(runs):
        file = records.path(record, results)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(record.model_dump_json(by_alias=True, indent=1))


def _journal(runs: int, folder: Path) -> Journal:
    lines = [Line(row=f"pytorch seed {number}", estimate_s=1700) for number in range(runs)]
    started = datetime.now(UTC)
    kept = Journal(folder, Status(id="x", host="x", pid=1, started=started, slots=WORKERS, lines=lines))
    kept.renew(now=True)
    return kept


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
