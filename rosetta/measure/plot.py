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
from rosetta.measure import cells
from rosetta.measure.cells import PHASES, SYNTHETIC, others, timed, titled
from rosetta.measure.sweep_tables import picture_file
from rosetta.records import Point, Record
from rosetta.report.charts import STYLE, WIDTH

ACROSS = 4  # panels
# From the lowest value to the highest at most so many times: powers of ten alone would tell little
NARROW = {10: (1, 1.5, 2, 3, 4, 6, 8), 100: (1, 2, 5)}
RATE = "examples a second", lambda size, seconds: size / seconds
STROKES = {"forward": ":", "backward": "--", "step": "-"}


def write(catalog: Catalog, records: list[Record], results: Path) -> list[Path]:
    """A picture of each machine's sweep of each task over several batch sizes, its rows in the catalog's order; returns what was
    written."""
    order = {row.full_name: place for place, row in enumerate(catalog.rows())}
    pictures: dict[Path, dict[str, list[Point]]] = {}
    sweeps = [record for record in records if record.preset == "sweep" and record.full_name in order]
    for record in sorted(sweeps, key=lambda record: (order[record.full_name], record.dataset.synthetic)):
        file = picture_file(results, record.machine.name, catalog.task(record.task))
        # Other axes than these two have no place in the picture
        points = [point for point in timed(record.points) if not others(point.at)]
        pictures.setdefault(file, {})[titled(record)] = points
    several = {file: rows for file, rows in pictures.items() if len(_sizes(rows)) > 1}
    for file, rows in several.items():
        label, value = RATE
        if all(title.endswith(SYNTHETIC) for title in rows):  # said once
            rows, label = {title.removesuffix(SYNTHETIC): points for title, points in rows.items()}, label + SYNTHETIC
        files.write_atomically(file, draw(rows, label, value))
    return list(several)


def _sizes(rows: dict[str, list[Point]]) -> set[int]:
    return {point.at[BATCH] for points in rows.values() for point in points}


def draw(rows: dict[str, list[Point]], label: str, value: Callable[[int, float], float]) -> str:
    """SVG of all points, by the title of their row. Error bars: the standard deviation of the repeats.

    label: of what is shown; value: the same from a batch size and the seconds of a batch.
    """
    threads = sorted({point.at["threads"] for points in rows.values() for point in points})
    down = ceil(len(rows) / ACROSS)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.7 * down + 0.8), layout="constrained")
        panels = list(figure.subplots(down, ACROSS, sharex=True, sharey=True, squeeze=False).flat)
        for axes, (title, points) in zip(panels, rows.items()):
            axes.set_title(title, fontsize=9)
            _panel(axes, points, threads, value)
        low, high = panels[0].get_ylim()
        for axes in panels[len(rows) :]:
            axes.set_visible(False)
        ticks = next((ticks for most, ticks in NARROW.items() if high < most * low), None)
        if ticks:
            for axes in panels:
                axes.yaxis.set_major_locator(LogLocator(subs=ticks))
        figure.supxlabel("examples a batch (logarithmic)", fontsize=9)
        figure.supylabel(f"{label} (logarithmic)", fontsize=9)
        keys = [Line2D([], [], color=f"C{place}", label=cells.threads(number)) for place, number in enumerate(threads)]
        measured = {point.at["phase"] for points in rows.values() for point in points}
        keys += [
            Line2D([], [], color="grey", linestyle=stroke, label=PHASES[phase])
            for phase, stroke in STROKES.items()
            if phase in measured
        ]
        figure.legend(handles=keys, loc="outside upper left", ncols=len(keys), frameon=False)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


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
