"""What do several devices gain? As it was measured, as it was published in 2018, and on paper: a model of 2 to 64 devices.

Run ``uv run python -m studies.scaling``. It writes results/scaling.md from the committed records and from ``results/published``. Runs
that differ in DEVICES alone stand in one line: ``run --task densenet_parallel --set DEVICES=1``, then without it. In the model, a step
takes what it takes on one device, and after it the devices exchange their gradients; nothing overlaps. In a ring (Patarasuk and Yuan,
2009) each device sends and receives 2 (n - 1) / n times the gradient. A single parameter server takes in n gradients and sends out n
copies of the weights through its own link.
"""

from collections import defaultdict
from collections.abc import Callable
from statistics import fmean

from rosetta import catalog, files, markdown, records
from rosetta.catalog import Catalog
from rosetta.identity import is_todays
from rosetta.kinds.kind import BATCH
from rosetta.measure import protocols
from rosetta.measure.protocols import PHASE, Benchmark
from rosetta.measure.rows import Group
from rosetta.paths import checkout
from rosetta.records import Record
from rosetta.report.results import published
from rosetta.tasks import Task

PAGE = checkout.results / "scaling.md"
DEVICES = (2, 4, 8, 16, 32, 64)
LINKS = {"10 Gbit/s": 1.25e9, "100 Gbit/s": 12.5e9}  # bytes a second, of each device or server
RUNS = """\
Seconds of an epoch with so many devices, and in brackets the efficiency: the time of one device over n times the time of n. The
network and the images are the same in a line, and so is the batch of each device. Without GPUs, all devices are threads of one
processor: such a line shows what sharing a step costs, not what a second device gains. *Busy* is how many processors the whole run
kept at work on average, with one device and with several; compiling counts, too. Where one device keeps more than one busy, its epoch
may have had more than one thread. Then the efficiency is too low."""

MODEL = """\
This is a model, no measurement. A step takes as long as on one device. Then the devices exchange their gradients, and
nothing of that overlaps with the step. A framework that sends gradients while it still computes others does better. A
real network that also waits for its slowest device does worse.

- **Ring**: each device sends and receives 2 (n - 1) / n times the gradient, in n parts.
- **Parameter server**: one server takes in n gradients and sends out n copies of the weights through its own link.
- **Efficiency** is the rate of n devices over n times the rate of one. The batch of each device stays as it is."""

MEASURED = """\
Each line begins with the fastest row that was measured on one such machine. A figure is the efficiency of so many of them.
The less a step computes for each weight, the more the exchange costs."""


def ring(size: float, devices: int, rate: float) -> float:
    """Seconds to add up gradients of ``size`` bytes over links of ``rate`` bytes a second."""
    return 2 * (devices - 1) / devices * size / rate


def server(size: float, devices: int, rate: float) -> float:
    """The same by one parameter server, which is none of the devices."""
    return 2 * devices * size / rate


def on_platform(size: float, devices: int, platform: dict) -> float:
    """Rings within each instance of so many devices, then one ring of instances. platform: its links in 1e9 bytes a second each way."""
    inside = int(min(devices, platform.get("instance", devices)))
    instances = -(-devices // inside)
    exchange = ring(size, inside, 1e9 * platform["gb_per_s"])
    return exchange + (ring(size, instances, 1e9 * platform["between_gb_per_s"]) if instances > 1 else 0)


def compared(task: Task, source: Benchmark) -> dict[tuple[str, int, str, int], tuple[float, float]]:
    """By network, batch, platform and devices: what was published of several devices on synthetic data, examples a second, and by which
    part of it the model's rate is higher, which takes the same publication's rate of one device. Of platforms whose links are known."""
    rates, made = {}, {}
    for point in source.points:
        at, (rate,) = point.at, point.figures.values()
        if at.get("DATA") == "synthetic" and point.device in source.platforms:
            rates[at[task.kind.which], at[BATCH], point.device, at["devices"]] = rate
    for (network, batch, platform, devices), rate in rates.items():
        if devices > 1:
            exchange_s = on_platform(_gradient(task, network), devices, source.platforms[platform])
            step_s = batch / rates[network, batch, platform, 1] + exchange_s
            made[network, batch, platform, devices] = rate, devices * batch / step_s / rate - 1
    return made


def main() -> None:
    """Write the page: the model against published rates, then what it says of the steps that were measured here."""
    known, every = catalog.load(), [record for _, record in records.read_all(checkout.results)]
    parts = ["# Several devices", "Generated by `studies/scaling.py`: do not edit."]
    for task in known.tasks.values():
        if hasattr(task.params, "DEVICES"):
            parts += [
                f"## {task.title}: measured",
                markdown.wrapped(RUNS),
                *_runs(known, task, every),
                *_then(known, task),
            ]
    parts += ["## On paper", MODEL]
    for task in known.tasks.values():
        for protocol in task.protocols.values():
            for source in map(protocols.read_published, protocol.published):
                if source.platforms:
                    parts += [f"### Against {source.source}", *_errors(task, source)]
    for task, name, group in protocols.groups(known, every):
        if hasattr(task.params, "network"):  # which knows the size of the gradient
            parts += _measured(task, name, group)
    files.write_atomically(PAGE, "\n\n".join(parts) + "\n")


def _runs(known: Catalog, task: Task, every: list[Record]) -> list[str]:
    """A table for each machine and setting that was run with several numbers of devices; the line of a row, their times."""
    rows = {row.full_name: row for row in known.rows(task.key)}
    settings: dict[tuple, dict[str, dict[int, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in sorted(every, key=lambda record: record.started):
        row = rows.get(record.full_name)
        if row and record.status == "ok" and record.metrics.steady_epoch_s and is_todays(record, row):
            others = ", ".join(f"{name}={value}" for name, value in record.changed.items() if name != "DEVICES")
            setting = record.machine.name, ", ".join(filter(None, [record.preset, others]))
            settings[setting][record.full_name][record.params["DEVICES"]] = record
    parts = []
    for (machine, setting), runs in sorted(settings.items()):
        numbers = sorted({number for of_row in runs.values() for number in of_row})
        if len(numbers) > 1:
            parts.append(f"**{markdown.escape(machine)}**: {markdown.escape(setting)}")
            lines, busy = {}, {}
            for name, row in rows.items():
                every_run = sorted(runs.get(name, {}).items())
                if every_run:
                    lines[row.title] = {number: run.metrics.steady_epoch_s for number, run in every_run}
                    shares = (run.metrics.cpu_s / run.metrics.wall_s for _, run in every_run)
                    busy[row.title] = ", ".join(f"{share:.1f}" for share in shares)
            parts.append(_efficiency(lines, numbers, busy))
    return parts


def _then(known: Catalog, task: Task) -> list[str]:
    """The same of the figures that the task names: their columns begin with a number of devices."""
    titles, parts = {row.name: row.title for row in known.rows(task.key)}, []
    for source in map(published, task.published):
        of_kind: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        for column, figures in source.columns.items():
            number, _, kind = column.partition(" ")
            for row, seconds in figures.items():
                of_kind[kind][titles[row]][int(number)] = seconds / task.constants()["EPOCHS"]
        for kind, lines in of_kind.items():
            numbers = sorted({number for of_row in lines.values() for number in of_row})
            parts += [f"**{source.year}**: {kind}", _efficiency(lines, numbers)]
        parts.append(markdown.wrapped(f"[{source.source}]({source.url}): {source.conditions}."))
    return parts


def _efficiency(lines: dict[str, dict[int, float]], numbers: list[int], busy: dict[str, str] | None = None) -> str:
    """Seconds of an epoch by the number of devices, from the second on with the efficiency in brackets. busy: by line, a last column."""
    body = []
    for title, times in lines.items():
        cells = [f"{times[number]:,.3g}" if number in times else "" for number in numbers]
        for place, number in enumerate(numbers):
            if number > 1 and number in times and 1 in times:
                cells[place] += f" ({times[1] / number / times[number]:.0%})"
        body.append([markdown.escape(title), *cells, *([busy[title]] if busy else [])])
    heading = ["framework", *(f"{number} device{'s' * (number > 1)}, s" for number in numbers)]
    return markdown.table([*heading, *(["busy"] if busy else [])], body)


def _gradient(task: Task, which: str) -> float:
    """Bytes of a network's gradient in FP32."""
    return 4 * task.params.network(which).PARAMETERS


def _errors(task: Task, source: Benchmark) -> list[str]:
    published = compared(task, source)
    off = [abs(error) for _, error in published.values()]
    words = (
        f"Examples a second as published, and how far the model is off. On average it is off by {fmean(off):.1%} of "
        f"{len(off)} rates, at most by {max(off):.1%}. Rates of links are nominal or assumed, not fitted. In brackets: by how much the model's rate is higher (+) or lower (-)."
    )
    parts = [markdown.wrapped(words)]
    for platform, about in source.platforms.items():
        lines: dict[tuple, dict[int, str]] = {}
        for (network, batch, device, number), (rate, error) in published.items():
            if device == platform:
                lines.setdefault((network, batch), {})[number] = f"{rate:,g} ({error:+.1%})"
        numbers = [number for number in DEVICES if any(number in cells for cells in lines.values())]
        heading = ["network, batch of a device", *(f"{number} devices" for number in numbers)]
        body = [
            [f"{markdown.code(network)}, {batch}", *(cells.get(number, "") for number in numbers)]
            for (network, batch), cells in lines.items()
        ]
        parts += [f"**{platform}**: {about['about']}.", markdown.table(heading, body)]
    return parts


def _measured(task: Task, name: str, group: Group) -> list[str]:
    """Efficiency with the fastest row's step of each network."""
    fastest: dict[tuple, tuple[float, str]] = {}
    for measured in group:
        for point in measured.points:
            if point.values and point.at[PHASE] == "step":
                place = point.at[task.kind.which], point.at[BATCH]
                fastest[place] = min(fastest.get(place, (float("inf"), "")), (point.sample.mean, measured.newest.title))
    if not fastest:
        return []
    ways: dict[str, Callable[[float, int, float], float]] = {"ring": ring, "parameter server": server}
    parts = [
        f"### {task.protocols[name].title}, on machines like {markdown.escape(group[0].newest.machine.name)}",
        MEASURED,
    ]
    for way, exchange in ways.items():
        for link, rate in LINKS.items():
            body = []
            for (which, batch), (seconds, title) in fastest.items():
                sizes = (exchange(_gradient(task, which), number, rate) for number in DEVICES)
                cells = [f"{seconds / (seconds + each):.0%}" for each in sizes]
                body.append([f"{markdown.code(which)}, {batch}", markdown.escape(title), f"{seconds:.3f}", *cells])
            heading = ["network, batch", "fastest row", "a step, s", *(f"{number} devices" for number in DEVICES)]
            parts += [
                f"**{way.capitalize()}, {link}: efficiency**",
                markdown.table(heading, body, [False, False, *[True] * 7]),
            ]
    return parts


if __name__ == "__main__":
    main()
