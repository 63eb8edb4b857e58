"""What ``run_all.py sweep`` does."""

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rosetta import catalog, data, markdown, records
from rosetta.batch.screen import clock
from rosetta.catalog import Catalog
from rosetta.commands import needs_extra
from rosetta.errors import RosettaError, Unavailable
from rosetta.interrupts import terminate_as_interrupt
from rosetta.paths import RESULTS, portable
from rosetta.run import devices, machine
from rosetta.run.kernels import Kernels, parse_given
from rosetta.speed import kept
from rosetta.speed.sweep import NAME, PHASES, Point, Protocol, Sweep, points


@dataclass(frozen=True)
class Options:
    """threads: numbers of processors, each in a process of its own. plot: draw the picture, too."""

    threads: list[int]
    protocol: Protocol
    task: str | None = None
    data_dir: Path | None = None
    out: Path | None = None
    python: tuple[str, ...] = ()
    gpus: str | None = None
    plot: bool = False


def numbers(option: str, text: str) -> list[int]:
    """``"16,64"`` -> [16, 64]. Raises RosettaError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise RosettaError(f"{option} takes whole numbers above 0 such as 1,2, not {text}")
    return list(dict.fromkeys(map(int, parts)))


def usual_threads() -> list[int]:
    """1, 2, 4 ... and as many as there are processors."""
    there = len(machine.processors())
    return [2**power for power in range(there.bit_length()) if 2**power < there] + [there]


def sweep(names: list[str], options: Options) -> int:
    """Measure rows; show and keep every point as soon as it is there. Exit code 0 only if all could be measured; a row that
    this machine cannot run counts if named."""
    known, kernels = catalog.load(), Kernels(parse_given(list(options.python)))
    if options.plot:
        with needs_extra("sweep --plot"):
            import rosetta.speed.plot  # noqa: F401
    name = options.task or next(iter(known.tasks))
    task, rows = known.task(name), known.select(name, names)
    slots = [devices.timed(options.gpus, number)[0] for number in options.threads]
    _check_sizes(options.protocol, task.parameters())
    if options.data_dir:  # the scripts inherit it
        os.environ["ROSETTA_DATA"] = str(options.data_dir.absolute())
    if not options.protocol.synthetic:
        data.locate(task.data)
    results = options.out.absolute() if options.out else RESULTS
    file = kept.path(results, slots[0].machine.name, NAME)
    found, console, failed = kept.read(Sweep, file), Console(highlight=False, soft_wrap=True), False
    gpu = slots[0].on_gpu
    protocols = {row.name: options.protocol.of(row, gpu) for row in rows}
    if not gpu:
        console.print(f"about {clock(len(slots) * sum(protocols[row.name].estimate_s(row) for row in rows))}")
    console.print(
        f"{'row':<22}{'threads':>8}{'batch':>7}" + "".join(f"{title + ', ms':>24}" for title in PHASES.values())
    )
    with terminate_as_interrupt():
        for row in rows:
            try:
                for point in (p for slot in slots for p in points(row, task, slot, protocols[row.name], kernels)):
                    found.add(point)
                    kept.write(found, file)
                    console.print(_line(point), markup=False)
            except Unavailable as reason:
                console.print(f"{row.name}: skipped: {reason}", style="yellow", markup=False)
                failed |= bool(names)
            except RosettaError as error:
                console.print(f"{row.name}: {error}", style="red", markup=False)
                failed = True
    for written in write_tables(known, file, found, options.plot):
        console.print(portable(str(written)), markup=False)
    return int(failed)


def write_tables(known: Catalog, file: Path, found: Sweep, plot: bool) -> list[Path]:
    """The table beside the measurements, and the picture where asked for; returns what was written."""
    order = [row.name for row in known.rows(next(iter(known.tasks)))]
    ordered = sorted(
        (point for point in found.points if point.row in order), key=lambda p: (order.index(p.row), *p.place[1:])
    )
    if not ordered:
        return []
    heading = ["row", "threads", "batch", *(f"{title}, ms" for title in PHASES.values()), "images/s", "protocol"]
    body = [
        [
            markdown.escape(point.row) + (" SYNTHETIC" if point.synthetic else ""),
            str(point.threads),
            str(point.batch_size),
            *(f"{point.ms(phase):.1f} ± {point.spread_ms(phase):.1f}" for phase in PHASES),
            f"{1000 * point.batch_size / point.ms('step'):.0f}",
            f"{len(point.seconds['step'])} x {point.steps}",
        ]
        for point in ordered
    ]
    about = (
        "Milliseconds a step: mean and standard deviation of the repeats, warm-up not counted; *protocol*: repeats x steps. "
        "Generated by `run_all.py sweep`: do not edit."
    )
    written = [file.with_suffix(".json"), file.with_suffix(".md")]
    parts = [f"# Threads and batch size on {ordered[0].machine.name}", about, markdown.table(heading, body)]
    if plot:
        from rosetta.speed import plot as drawing  # here, because the command does without matplotlib

        written.append(file.with_suffix(".svg"))
        titles = list(dict.fromkeys(point.title for point in ordered))
        records.write_atomically(written[-1], drawing.draw(ordered, titles))
    if file.with_suffix(".svg").is_file():
        parts.append(f"![Images a second by batch size and number of threads]({file.with_suffix('.svg').name})")
    records.write_atomically(written[1], "\n\n".join(parts) + "\n")
    return written


def _check_sizes(protocol: Protocol, constants: dict) -> None:
    largest = max(protocol.batch_sizes)
    if largest > constants["N_TRAIN"]:
        raise RosettaError(f"--batch-size {largest}: there are only {constants['N_TRAIN']} images")


def _line(point: Point) -> str:
    cells = "".join(f"{f'{point.ms(phase):.1f} ± {point.spread_ms(phase):.1f}':>24}" for phase in PHASES)
    return f"{point.row:<22}{point.threads:>8}{point.batch_size:>7}{cells}"
