"""The tables of ``docs/performance.md``, filled in from what was measured; the words around them are written by hand.

A table stands between ``[//]: # (NAME)`` and ``[//]: # (end)``, Markdown that nothing shows.
"""

import re
import statistics
from collections.abc import Callable
from pathlib import Path

from rosetta import markdown, records
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError
from rosetta.paths import ROOT
from rosetta.records import Machine
from rosetta.speed import kept
from rosetta.speed.figures import spread
from rosetta.speed.floor import NAME as FLOOR
from rosetta.speed.floor import Floor, step_flop
from rosetta.speed.pairs import Pair, Pairs
from rosetta.speed.startup import NAME as STARTUP
from rosetta.speed.startup import PARTS, Startup
from rosetta.speed.sweep import NAME as SWEEP
from rosetta.speed.sweep import PHASES, Point, Sweep

PAGE = ROOT / "docs" / "performance.md"
BLOCK = re.compile(r"(?P<begin>\[//\]: # \((?P<name>(?!end\))\w+)\)\n).*?(?P<end>\[//\]: # \(end\))", re.DOTALL)
BATCH = 64  # the sweep's, on this page


def write(catalog: Catalog, results: Path) -> Path:
    """Fill the tables of the page anew; returns its path."""
    records.write_atomically(PAGE, filled(PAGE.read_text(encoding="utf-8"), catalog, results))
    return PAGE


def filled(text: str, catalog: Catalog, results: Path) -> str:
    """The page's text with its tables. Raises RosettaError for a table that is not known."""

    def table(found: re.Match) -> str:
        make = TABLES.get(found["name"])
        if make is None:
            raise RosettaError(f"{PAGE.name}: there is no table {found['name']}; known are {', '.join(TABLES)}")
        parts = [part for machine in kept.machines(results) for part in make(catalog, results, machine)]
        inside = "\n\n".join(parts) or "Not measured yet."
        return f"{found['begin']}\n{inside}\n\n{found['end']}"

    return BLOCK.sub(table, text)


def fastest(catalog: Catalog, results: Path, machine: str) -> list[str]:
    return _pairs(catalog, results, machine, "fastest", "fastest loop")


def own_layers(catalog: Catalog, results: Path, machine: str) -> list[str]:
    return _pairs(catalog, results, machine, "own_layers", "own layers")


def as_in_2018(catalog: Catalog, results: Path, machine: str) -> list[str]:
    return _pairs(catalog, results, machine, "as_in_2018", "as in 2018")


def variables(catalog: Catalog, results: Path, machine: str) -> list[str]:
    return _pairs(catalog, results, machine, "variables", "so")


def _pairs(catalog: Catalog, results: Path, machine: str, kind: str, other: str) -> list[str]:
    """A table for each setting of variables that the other one was given."""
    found = kept.read(Pairs, kept.path(results, machine, kind)).pairs
    parts = []
    for setting in dict.fromkeys(tuple(pair.variables.items()) for pair in found):
        if setting:
            parts.append(
                " ".join(f"`{name}={value}`" if value else f"without `{name}`" for name, value in setting) + ":"
            )
        parts += _table(catalog, [pair for pair in found if tuple(pair.variables.items()) == setting], other)
    return parts


def _table(catalog: Catalog, pairs: list[Pair], other: str) -> list[str]:
    heading = ["", "notebook, ms a step", f"{other}, ms a step", f"notebook / {other}"]
    body = [
        [
            pair.title,
            spread(pair.step_ms(pair.notebook_s), 1),
            spread(pair.step_ms(pair.other_s), 1),
            spread(pair.ratios, 2),
        ]
        for pair in _ordered(catalog, pairs, lambda pair: pair.row)
    ]
    sizes = sorted({(pair.steps, len(pair.notebook_s) - 1) for pair in pairs})
    counts = ", ".join(f"{epochs} epochs of {steps} steps" for steps, epochs in sizes)
    data = " SYNTHETIC images;" if any(pair.synthetic for pair in pairs) else ""
    when = _days([pair.measured for pair in pairs])
    return [
        markdown.table(heading, body),
        f"{_host(pairs[0].machine)};{data} {counts} after a first that is not counted; {when}.",
    ]


def limits(catalog: Catalog, results: Path, machine: str) -> list[str]:
    """Where a step's time goes with all processors, beside what these do in a plain matrix product."""
    points = _of_batch(results, machine)
    floor = kept.read(Floor, kept.path(results, machine, FLOOR))
    if not (points and floor.flop_s):
        return []
    most, best = max(point.threads for point in points), max(floor.flop_s)
    body = []
    for point in _ordered(catalog, [point for point in points if point.threads == most], lambda point: point.row):
        forward, backward, step = (point.ms(phase) for phase in PHASES)
        flop_s = step_flop(BATCH) / (step / 1000)
        parts = forward, backward - forward, step - backward
        body.append(
            [
                point.title,
                f"{step:.0f}",
                f"{flop_s / 1e9:.0f}",
                f"{flop_s / best:.0%}",
                *(f"{round(part / step, 2) + 0.0:.0%}" for part in parts),  # + 0.0: no minus before nothing
            ]
        )
    heading = ["", "full step, ms", "GFLOP/s", "of the matrix product's", "forward", "gradients", "update"]
    words = (
        f"From the next table, with {_threads(most)}. NumPy's product of two matrices of {floor.size} x {floor.size}: "
        f"{best / 1e9:.0f} GFLOP/s, which makes the floor of a step {1000 * step_flop(BATCH) / best:.0f} ms ({_host(floor.machine)}; {floor.measured:%Y-%m-%d})."
    )
    return [markdown.table(heading, body), words]


def _of_batch(results: Path, machine: str) -> list[Point]:
    found = kept.read(Sweep, kept.path(results, machine, SWEEP)).points
    return [point for point in found if point.batch_size == BATCH]


def sweep(catalog: Catalog, results: Path, machine: str) -> list[str]:
    """Milliseconds of each phase at one batch size, for every number of threads."""
    points = _of_batch(results, machine)
    if not points:
        return []
    threads = sorted({point.threads for point in points})
    by_place = {point.place: point for point in points}
    heading = ["", *(f"{title}, ms, {_threads(n)}" for n in threads for title in PHASES.values()), "gain"]
    body = []
    for name in dict.fromkeys(point.row for point in _ordered(catalog, points, lambda point: point.row)):
        found = [by_place.get((name, n, BATCH)) for n in threads]
        cells = [_ms(point, phase) if point else "" for point in found for phase in PHASES]
        first, last = found[0], found[-1]
        gain = f"{first.ms('step') / last.ms('step'):.2f}" if first and last and first is not last else ""
        body.append([next(point.title for point in found if point), *cells, gain])
    counts = sorted({(point.steps, len(point.seconds["step"])) for point in points})
    protocol = ", ".join(f"{repeats} times {steps} steps" for steps, repeats in counts)
    words = f"{_host(points[0].machine)}; batch {BATCH}, {protocol}, mean ± standard deviation; *gain*: of the step, from {_threads(threads[0])} to {threads[-1]}"
    return [markdown.table(heading, body), f"{words}; {_days([point.measured for point in points])}."]


def startup(catalog: Catalog, results: Path, machine: str) -> list[str]:
    found = kept.read(Startup, kept.path(results, machine, STARTUP))
    if not found.rows:
        return []
    commands = markdown.table(
        ["`run_all.py`", "seconds"], [[name, spread(seconds, 2)] for name, seconds in found.commands.items()]
    )
    rows = markdown.table(
        ["", *(f"{title}, s" for title in PARTS.values())],
        [
            [one.title, *(f"{statistics.median(getattr(start, part) for start in one.starts):.2f}" for part in PARTS)]
            for one in _ordered(catalog, found.rows, lambda one: one.row)
        ],
    )
    repeats = sorted({len(one.starts) for one in found.rows})
    counted = "one run each" if repeats == [1] else f"medians of {', '.join(map(str, repeats))} runs"
    return [commands, rows, f"{_host(found.machine)}; {counted}."]


TABLES: dict[str, Callable[[Catalog, Path, str], list[str]]] = {
    "fastest": fastest,
    "own_layers": own_layers,
    "as_in_2018": as_in_2018,
    "variables": variables,
    "limits": limits,
    "sweep": sweep,
    "startup": startup,
}


def _ordered(catalog: Catalog, found: list, row: Callable) -> list:
    order = [known.name for known in catalog.rows(next(iter(catalog.tasks)))]
    return sorted((one for one in found if row(one) in order), key=lambda one: order.index(row(one)))


def _ms(point: Point, phase: str) -> str:
    return f"{point.ms(phase):.1f} ± {point.spread_ms(phase):.1f}"


def _threads(number: int) -> str:
    return f"{number} thread{'' if number == 1 else 's'}"


def _host(machine: Machine) -> str:
    """What it was measured on: a GPU, or the processor."""
    return machine.gpus[0].name if machine.gpus else f"{machine.cpu}, {machine.cores} cores, no GPU"


def _days(times: list) -> str:
    days = sorted({f"{time:%Y-%m-%d}" for time in times})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
