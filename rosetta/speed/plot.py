"""The picture of a sweep: images a second by batch size, a small panel a row. Needs the optional extra ``site``."""

from io import StringIO
from math import ceil

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from rosetta.report.charts import STYLE, WIDTH
from rosetta.speed.sweep import PHASES, Point

ACROSS = 4  # panels
STROKES = {"forward": ":", "backward": "--", "step": "-"}


def draw(points: list[Point], titles: list[str]) -> str:
    """SVG of all points, the rows in the order of their titles. Error bars: the standard deviation of the repeats."""
    there = [title for title in titles if any(point.title == title for point in points)]
    threads = sorted({point.threads for point in points})
    down = ceil(len(there) / ACROSS)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.7 * down + 0.8), layout="constrained")
        panels = list(figure.subplots(down, ACROSS, sharex=True, sharey=True, squeeze=False).flat)
        for axes, title in zip(panels, there):
            _panel(axes, title, [point for point in points if point.title == title], threads)
        for axes in panels[len(there) :]:
            axes.set_visible(False)
        figure.supxlabel("images a batch (logarithmic)", fontsize=9)
        figure.supylabel("images a second (logarithmic)", fontsize=9)
        keys = [
            Line2D([], [], color=f"C{place}", label=f"{n} thread{'' if n == 1 else 's'}")
            for place, n in enumerate(threads)
        ]
        keys += [Line2D([], [], color="grey", linestyle=STROKES[phase], label=PHASES[phase]) for phase in PHASES]
        figure.legend(handles=keys, loc="outside upper left", ncols=len(keys), frameon=False)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _panel(axes: Axes, title: str, points: list[Point], threads: list[int]) -> None:
    for place, number in enumerate(threads):
        chosen = sorted((point for point in points if point.threads == number), key=lambda point: point.batch_size)
        sizes = [point.batch_size for point in chosen]
        for phase, stroke in STROKES.items():
            rates = [1000 * point.batch_size / point.ms(phase) for point in chosen]
            errors = [rate * point.spread_ms(phase) / point.ms(phase) for rate, point in zip(rates, chosen)]
            axes.errorbar(
                sizes, rates, errors, color=f"C{place}", linestyle=stroke, linewidth=1.2, marker="o", markersize=2.5
            )
    axes.set_title(title, fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
