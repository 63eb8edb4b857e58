"""Every row's notebook against another way to train the same network in the same framework, an epoch each by turns.

    uv run benchmarks/against.py fastest|as_in_2018 [ROW ...] [--steps 50] [--epochs 6] [--threads N]

fastest: the fastest idiomatic loop we could write or find documented. as_in_2018: the loop as it was usual then.
The programs are the cells that differ, in benchmarks/TASK/KIND/; all other cells are the notebook's own. Prints milliseconds a step
in epochs after the first, median (min - max), and how many times as long the notebook takes; results/MACHINE/speed/KIND.json keeps it.
"""

import argparse
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rosetta import catalog, plan, records
from rosetta.errors import RosettaError, Unavailable
from rosetta.paths import RESULTS
from rosetta.run import devices
from rosetta.run.execute import commit
from rosetta.run.kernels import Kernels, parse_given
from rosetta.speed import pairs, scripts

KINDS = ("fastest", "as_in_2018")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--steps", type=int, default=50, help="of an epoch")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--python", action="append", default=[], metavar="ENV=PATH")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    try:
        sys.exit(measure(options))
    except RosettaError as error:
        sys.exit(f"against.py: {error}")


def measure(options: argparse.Namespace) -> int:
    """Measure the rows one after the other; 1 if one could not be."""
    known, kernels = catalog.load(), Kernels(parse_given(options.python))
    rows = known.select(next(iter(known.tasks)), options.rows)
    if not options.rows:
        rows = [row for row in rows if scripts.program(options.kind, row).is_file()]
    slot = devices.timed(gpus=None, threads=options.threads)[0]
    file = options.out / slot.machine.name / "speed" / f"{options.kind}.json"
    failed = 0
    print(f"{'row':<20} {'notebook, ms a step':>24} {'other, ms a step':>24} {'notebook / other':>22}")
    for row in rows:
        try:
            pair = _pair(known, row, options, kernels, slot)
        except (RosettaError, Unavailable) as error:
            failed = 1
            print(f"{row.name:<20} {error}", flush=True)
            continue
        kept = pairs.read(file)
        kept.add(pair)
        file.parent.mkdir(parents=True, exist_ok=True)
        records.write_atomically(file, kept.model_dump_json(indent=1) + "\n")
        both = [_spread(pair.step_ms(seconds), 1) for seconds in (pair.notebook_s, pair.other_s)]
        print(f"{row.name:<20} {both[0]:>24} {both[1]:>24} {_spread(pair.ratios, 2):>22}", flush=True)
    return failed


def _pair(known: catalog.Catalog, row: catalog.Row, options: argparse.Namespace, kernels: Kernels, slot) -> pairs.Pair:
    change = scripts.changes(scripts.program(options.kind, row))
    batch_size = known.task(row.task).parameters()["BATCHSIZE"]
    size = {"EPOCHS": options.epochs, "N_TRAIN": options.steps * batch_size, "N_TEST": 500}
    (planned,) = plan.make(known, [row], "smoke", size, gpu=slot.gpu is not None, synthetic=options.synthetic)
    code = scripts.cells(row.notebook)
    with tempfile.TemporaryDirectory(prefix="rosetta-") as name:
        folder = Path(name)
        own = scripts.write(planned, code, folder / "notebook.py", kernels)
        other = scripts.write(planned, scripts.changed(code, change), folder / "other.py", kernels)
        notebook_epochs, other_epochs = pairs.alternate((own, other), slot, options.epochs, folder)
    return pairs.Pair(
        row=row.name,
        title=row.title,
        batch_size=batch_size,
        steps=options.steps,
        notebook_s=[epoch.seconds for epoch in notebook_epochs],
        other_s=[epoch.seconds for epoch in other_epochs],
        notebook_loss=[epoch.loss for epoch in notebook_epochs],
        other_loss=[epoch.loss for epoch in other_epochs],
        synthetic=options.synthetic,
        measured=datetime.now(UTC).replace(microsecond=0),
        commit=commit(),
        machine=slot.machine,
    )


def _spread(numbers: list[float], digits: int) -> str:
    return f"{statistics.median(numbers):.{digits}f} ({min(numbers):.{digits}f} - {max(numbers):.{digits}f})"


if __name__ == "__main__":
    main()
