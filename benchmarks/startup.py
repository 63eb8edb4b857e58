"""What happens before the first training step: the commands' own start-up, and imports, building and compiling of every row.

    uv run benchmarks/startup.py [ROW ...] [--repeats 3]

Each row runs three epochs of a single step through the runner, with its environment ready: the first step holds what a framework
compiles, tunes and allocates lazily. Prints seconds, the median of the repeats; results/MACHINE/speed/startup.json keeps them all.
Commands are timed as whole processes, once after a warm-up and then --repeats times; 1,000 records are made up.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rosetta import catalog, plan, records
from rosetta.errors import RosettaError
from rosetta.interrupts import terminate_as_interrupt
from rosetta.paths import RESULTS, ROOT
from rosetta.records import Record
from rosetta.run import devices
from rosetta.run.execute import execute
from rosetta.run.kernels import Kernels, parse_given
from rosetta.speed import kept, startup
from rosetta.speed.figures import spread

COMMANDS = {"--help": ["--help"], "list": ["list"], "report of 1,000 records": ["report", "--out"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--python", action="append", default=[], metavar="ENV=PATH")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_intermixed_args()
    try:
        with terminate_as_interrupt():
            sys.exit(measure(options))
    except RosettaError as error:
        sys.exit(f"startup.py: {error}")
    except KeyboardInterrupt:
        sys.exit("startup.py: interrupted; what was measured is kept")


def measure(options: argparse.Namespace) -> int:
    """The commands, then the rows; 1 if a row could not be measured."""
    known, kernels = catalog.load(), Kernels(parse_given(options.python))
    slot = devices.timed(gpus=None, threads=None)[0]
    file = kept.path(options.out, slot.machine.name, startup.NAME)
    found, failed = kept.read(startup.Startup, file), 0
    found.commands, found.machine = commands(options.repeats), slot.machine
    for name, seconds in found.commands.items():
        print(f"{name:<26} {spread(seconds, 2)} s")
    kept.write(found, file)
    print(f"{'row':<22}" + "".join(f"{title:>16}" for title in startup.PARTS.values()))
    rows = known.select(next(iter(known.tasks)), options.rows)
    batch = known.tasks[rows[0].task].parameters()["BATCHSIZE"]
    size = {"EPOCHS": 3, "N_TRAIN": batch, "N_TEST": 10}
    for planned in plan.make(known, rows, "smoke", size, gpu=slot.on_gpu, synthetic=options.synthetic):
        starts = []
        for _ in range(options.repeats):
            run = execute(planned, slot, kernels, watch=lambda progress: None)
            run.close()
            if run.record.status != "ok":
                print(f"{planned.row.name:<22} {run.record.status}: {run.record.error}", flush=True)
                failed = 1
                break
            starts.append(startup.of(run.record))
        else:
            found.add(startup.RowStart(row=planned.row.name, title=planned.row.title, starts=starts))
            kept.write(found, file)
            medians = [statistics.median(getattr(one, part) for one in starts) for part in startup.PARTS]
            print(f"{planned.row.name:<22}" + "".join(f"{seconds:>16.2f}" for seconds in medians), flush=True)
    return failed


def commands(repeats: int) -> dict[str, list[float]]:
    """Seconds of each command, one number a repeat."""
    with tempfile.TemporaryDirectory() as name:
        _make_up(Path(name), 1000)
        found = {}
        for title, arguments in COMMANDS.items():
            command = [sys.executable, "run_all.py", *arguments, *([name] if arguments[-1] == "--out" else [])]
            found[title] = [_timed(command) for _ in range(repeats + 1)][1:]
        return found


def _make_up(results: Path, number: int) -> None:
    """Copies of a committed record, as if from as many machines as it takes."""
    known = [record for _, record in records.read_all(RESULTS)]
    for count in range(number):
        record: Record = known[count % len(known)].model_copy(deep=True)
        record.machine.name = f"machine-{count // len(known)}"
        records.write(record, results)


def _timed(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return round(time.perf_counter() - started, 3)


if __name__ == "__main__":
    main()
