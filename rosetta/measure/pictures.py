"""Pictures of points by batch size, a small panel a row. Needs the optional extra ``site``."""

from collections.abc import Callable
from io import StringIO
from math import ceil
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from rosetta import files
from rosetta.catalog import Catalog
from rosetta.kinds.kind import BATCH
from rosetta.measure import protocols, rows
from rosetta.measure.protocols import AS_IN_SWEEPS, PHASE
from rosetta.measure.tables import PHASES, SYNTHETIC, others, threads_of, timed, titled
from rosetta.records import Point, Record
from rosetta.report.charts import STYLE, WIDTH

ACROSS = 4  # panels
# From the lowest value to the highest at most so many times: powers of ten alone would tell little
NARROW = {10: (1, 1.5, 2, 3, 4, 6, 8), 100: (1, 2, 5)}
RATE = "examples a second", lambda size, seconds: size / seconds
STROKES = {"forward": ":", "backward": "--", "step": "-"}
# What a picture of a protocol shows, as its file is named: of a batch size and the seconds of a batch
SHOWN = {
    "time": ("milliseconds a batch", lambda size, seconds: 1000 * seconds),
    "example": ("milliseconds an example", lambda size, seconds: 1000 * seconds / size),
}


def draw_sweeps(catalog: Catalog, every: list[Record], results: Path) -> list[Path]:
    """Draw each machine's sweep of each task over several batch sizes, its rows in the catalog's order; returns what was written."""
    written = []
    for group in rows.groups(catalog, every, "sweep"):
        # Other axes than these two have no place in the picture
        points = {titled(each): [point for point in timed(each.points) if not others(point.at)] for each in group}
        if len({point.at[BATCH] for of_row in points.values() for point in of_row}) > 1:
            label, value = RATE
            if all(title.endswith(SYNTHETIC) for title in points):  # said once
                points = {title.removesuffix(SYNTHETIC): of_row for title, of_row in points.items()}
                label += SYNTHETIC
            written.append(_write(rows.picture_file(group, "sweep", results), points, label, value))
    return written


def draw_protocols(catalog: Catalog, every: list[Record], results: Path) -> list[Path]:
    """Draw the networks that a protocol takes at several batch sizes, of every machine; returns what was written."""
    written = []
    for task, name, group in protocols.groups(catalog, every):
        protocol = task.protocols[name].on(bool(group[0].newest.machine.gpus))
        layouts = protocols.layouts(protocol, protocols.thread_counts(group))
        columns = {(layout.phase, column) for layout in layouts if layout.by_size for column in layout.columns}
        of_rows: dict[str, list[Point]] = {}
        for each in group:
            for point in each.points:
                if point.values and (point.at[PHASE], protocols.column_of(point)) in columns:
                    as_swept = point.at | {"phase": AS_IN_SWEEPS[point.at[PHASE]]}
                    of_rows.setdefault(each.newest.title, []).append(point.model_copy(update={"at": as_swept}))
        for what, (label, value) in SHOWN.items() if of_rows else ():
            written.append(_write(rows.picture_file(group, f"{name}-{what}", results), of_rows, label, value))
    return written


def _write(file: Path, of_rows: dict[str, list[Point]], label: str, value: Callable[[int, float], float]) -> Path:
    """Draw all points, by the title of their row, as SVG; returns the file. Error bars: the standard deviation of the repeats.

    label: of what is shown; value: the same from a batch size and the seconds of a batch.
    """
    threads = sorted({point.at["threads"] for points in of_rows.values() for point in points})
    down = ceil(len(of_rows) / ACROSS)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.7 * down + 0.8), layout="constrained")
        panels = list(figure.subplots(down, ACROSS, sharex=True, sharey=True, squeeze=False).flat)
        for axes, (title, points) in zip(panels, of_rows.items()):
            axes.set_title(title, fontsize=9)
            _panel(axes, points, threads, value)
        low, high = panels[0].get_ylim()
        for axes in panels[len(of_rows) :]:
            axes.set_visible(False)
        ticks = next((ticks for most, ticks in NARROW.items() if high < most * low), None)
        if ticks:
            for axes in panels:
                axes.yaxis.set_major_locator(LogLocator(subs=ticks))
        figure.supxlabel("examples a batch (logarithmic)", fontsize=9)
        figure.supylabel(f"{label} (logarithmic)", fontsize=9)
        keys = [Line2D([], [], color=f"C{place}", label=threads_of(number)) for place, number in enumerate(threads)]
        measured = {point.at["phase"] for points in of_rows.values() for point in points}
        keys += [
            Line2D([], [], color="grey", linestyle=stroke, label=PHASES[phase])
            for phase, stroke in STROKES.items()
            if phase in measured
        ]
        figure.legend(handles=keys, loc="outside upper left", ncols=len(keys), frameon=False)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    files.write_atomically(file, text.getvalue())
    return file


def _panel(axes: Axes, points: list[Point], threads: list[int], value: Callable[[int, float], float]) -> None:
    for place, number in enumerate(threads):
        for phase, stroke in STROKES.items():
            chosen = [point for point in points if (point.at["threads"], point.at["phase"]) == (number, phase)]
            chosen.sort(key=lambda point: point.at[BATCH])
            sizes = [point.at[BATCH] for point in chosen]
            values = [value(size, point.sample.mean) for size, point in zip(sizes, chosen)]
            errors = [each * point.sample.deviation / point.sample.mean for each, point in zip(values, chosen)]
            style = {"linestyle": stroke, "linewidth": 1.2, "marker": "o", "markersize": 2.5}
            axes.errorbar(sizes, values, errors, color=f"C{place}", **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
