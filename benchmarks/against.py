"""Every row's notebook against itself with other cells or other variables: both train by turns, an epoch each.

    uv run benchmarks/against.py fastest|own_layers|as_in_2018 [--set NAME=VALUE ...] [ROW ...]
    uv run benchmarks/against.py variables --set NAME=VALUE [--set ...] [ROW ...]

fastest: the fastest idiomatic loop that we could write or find documented. own_layers: layers of one's own instead of the
framework's, faster on a CPU. as_in_2018: the loop as it was usual then. The cells that differ are in benchmarks/TASK/KIND/; all
others are the notebook's own. variables: the same cells. --set: the other one has this environment variable; NAME= is without it.

Prints milliseconds a step in the epochs after the first, median (min - max), and how many times as long the notebook takes;
results/MACHINE/speed/KIND.json keeps it.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rosetta import catalog, plan
from rosetta.catalog import Row
from rosetta.errors import RosettaError
from rosetta.interrupts import terminate_as_interrupt
from rosetta.paths import RESULTS
from rosetta.run import devices
from rosetta.run.kernels import Kernels, parse_given
from rosetta.speed import kept, pairs, scripts
from rosetta.speed.figures import spread

VARIABLES = "variables"
KINDS = ("fastest", "own_layers", "as_in_2018", VARIABLES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="variables")
    parser.add_argument("--steps", type=int, default=50, help="of an epoch; a tenth of it where steps take seconds")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--python", action="append", default=[], metavar="ENV=PATH")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_intermixed_args()
    if options.kind == VARIABLES and not options.variables:
        parser.error(f"{VARIABLES} needs --set NAME=VALUE")
    if wrong := [one for one in options.variables if one.find("=") < 1]:
        parser.error(f"--set takes NAME=VALUE, or NAME= to go without it, not {wrong[0]}")
    try:
        with terminate_as_interrupt():
            sys.exit(measure(options))
    except RosettaError as error:
        sys.exit(f"against.py: {error}")
    except KeyboardInterrupt:
        sys.exit("against.py: interrupted; what was measured is kept")


def measure(options: argparse.Namespace) -> int:
    """Measure the rows one after the other; 1 if one could not be."""
    known, kernels = catalog.load(), Kernels(parse_given(options.python))
    slot = devices.timed(gpus=None, threads=options.threads)[0]
    file = kept.path(options.out, slot.machine.name, options.kind)
    found, failed = kept.read(pairs.Pairs, file), 0
    print(f"{'row':<22} {'notebook, ms a step':>26} {'other, ms a step':>26} {'notebook / other':>22}")
    for row in _rows(known, options):
        try:
            pair = pairs.measure(_plan(known, row, options, slot), _other(row, options), slot, kernels)
        except RosettaError as error:
            failed = 1
            print(f"{row.name:<22} {error}", flush=True)
            continue
        found.add(pair)
        kept.write(found, file)
        notebook, other = (spread(pair.step_ms(seconds), 1) for seconds in (pair.notebook_s, pair.other_s))
        print(f"{row.name:<22} {notebook:>26} {other:>26} {spread(pair.ratios, 2):>22}", flush=True)
    return failed


def _rows(known: catalog.Catalog, options: argparse.Namespace) -> list[Row]:
    """Those that are named, or all that have a program of this kind."""
    rows = known.select(next(iter(known.tasks)), options.rows)
    if options.rows or options.kind == VARIABLES:
        return rows
    return [row for row in rows if scripts.program(options.kind, row).is_file()]


def _plan(known: catalog.Catalog, row: Row, options: argparse.Namespace, slot: devices.Slot) -> plan.Plan:
    slow = row.slow_on_cpu is not None and not slot.on_gpu
    steps = max(options.steps // 10, 1) if slow else options.steps
    images = steps * known.task(row.task).parameters()["BATCHSIZE"]
    size = {"EPOCHS": options.epochs, "N_TRAIN": images, "N_TEST": 500}
    return plan.make(known, [row], "smoke", size, gpu=slot.on_gpu, synthetic=options.synthetic)[0]


def _other(row: Row, options: argparse.Namespace) -> pairs.Other:
    variables = dict(one.partition("=")[::2] for one in options.variables)
    if options.kind == VARIABLES:
        return pairs.Other(variables=variables)
    return pairs.Other(scripts.changes(scripts.program(options.kind, row)), variables)


if __name__ == "__main__":
    main()
