"""Draws the charts of a kind from one column, as SVG that is the same for the same records. Needs the optional extra ``site``."""

from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from rosetta import files
from rosetta.catalog import Catalog, Row
from rosetta.figures import Sample
from rosetta.kinds.kind import Curves, Dots
from rosetta.records import Record
from rosetta.report.results import Column, read_results

# Text stays text, for readers and search; ids and dates would differ from run to run
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rosetta",
    "text.parse_math": False,  # a title may have dollars
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6eb",
    "axes.axisbelow": True,
}
WIDTH = 8.0  # inches
BESIDE = 4  # entries of a legend
STROKES = "-", "--", ":"  # of curves, by tens: there are ten colours
MAIN, OTHERS = "#0b57a4", ("#c2560c", "#2e7d32", "#6a1b9a")  # the last series of a chart, and those before it

Runs = list[tuple[Row, list[Record]]]
# What a figure shows, in words; the value that stands for each row; the figure
Drawn = tuple[str, list[tuple[Row, float]], Figure]


@dataclass(frozen=True)
class Picture:
    """One SVG. ``alt`` says in words what the picture shows."""

    chart: Dots | Curves
    alt: str
    svg: str


def write(catalog: Catalog, results: Path) -> list[Path]:
    """Draw the pictures of all columns of a results folder anew; returns their paths."""
    written = []
    for task in read_results(catalog, results):
        for column in task.columns:
            for picture in draw(task.rows, column):
                written.append(results / column.picture(picture.chart))
                files.write_atomically(written[-1], picture.svg)
    for old in set((results / "pictures").glob("*.svg")) - set(written):
        old.unlink()
    return written


def draw(rows: list[Row], column: Column) -> list[Picture]:
    """Those that the column's records have the figures for."""
    present = [(row, column.of(row)) for row in rows if column.of(row)]
    pictures = []
    for chart in column.task.kind.charts:
        with rc_context(STYLE):
            drawn = _dots(chart, present) if isinstance(chart, Dots) else _curves(chart, present)
            if drawn is None:
                continue
            subject, values, figure = drawn
            svg = StringIO()
            figure.savefig(svg, format="svg", metadata={"Date": None})
            shown = ", ".join(f"{row.title} {value:.3g}" for row, value in values)
            pictures.append(Picture(chart, f"{column.title}, {subject}: {shown}.", svg.getvalue()))
    return pictures


def _dots(chart: Dots, present: Runs) -> Drawn | None:
    """A line a row that has the last series: from its smallest to its largest value, with the median of each series on it."""
    samples = [
        (row, [Sample.of(series.of(run.metrics) for run in runs) for series in chart.series]) for row, runs in present
    ]
    samples = [(row, of_series) for row, of_series in samples if of_series[-1]]
    if not samples:
        return None
    height = 0.26 * len(samples) + (1.1 if len(chart.series) > 1 else 0.7)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    for place, (_, (*others, main)) in enumerate(samples):
        axes.plot([main.low, main.high], [place, place], color=MAIN, linewidth=3, alpha=0.4)
        for series, colour, sample in zip(chart.series, OTHERS, others):
            if sample:
                label = "" if place else series.label
                axes.plot(sample.median, place, "o", markerfacecolor="none", color=colour, label=label)
        axes.plot(main.median, place, "o", color=MAIN, label="" if place else chart.series[-1].label)
    if chart.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        halves = FuncFormatter(lambda value, _: f"{value:g}" if f"{value:g}"[0] in "25" else "")
        axes.xaxis.set_minor_formatter(halves)
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel(chart.axis)
    axes.set_ylabel("framework")
    axes.set_yticks(range(len(samples)), [row.title for row, _ in samples])
    axes.invert_yaxis()
    if len(chart.series) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(chart.series), frameon=False)
    subject = chart.axis if len(chart.series) == 1 else f"{chart.series[-1].label}, {chart.axis}"
    return subject, [(row, of_series[-1].median) for row, of_series in samples], figure


def _curves(chart: Curves, present: Runs) -> Drawn | None:
    """A panel for each series that a run has, and in it a curve a run, by number from 1 on."""
    first = chart.series[0]
    long = [(row, runs) for row, runs in present if len(first.of(runs[0].metrics)) >= chart.least]
    shown = [series for series in chart.series if any(series.of(run.metrics) for _, runs in long for run in runs)]
    if not shown:
        return None
    legend_rows = -(-len(long) // BESIDE)
    figure = Figure(figsize=(WIDTH, 2.6 + 0.22 * legend_rows), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, series in zip(panels, shown):
        for number, (row, runs) in enumerate(long):
            for record in runs:
                values = enumerate(series.of(record.metrics), start=1)
                points = [(place, value) for place, value in values if value is not None]
                if points:
                    style = {"color": f"C{number % 10}", "label": row.title if record is runs[0] else "", "marker": "."}
                    axes.plot(*zip(*points), STROKES[number // 10 % 3], **style)
        axes.set_xlabel(chart.axis)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel(series.label)
        if series.share:
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=BESIDE, frameon=False)
    ends = [(row, first.of(runs[0].metrics)[-1]) for row, runs in long]
    subject = f"{first.label} at the last {chart.axis}"
    return subject, [(row, end) for row, end in ends if end is not None], figure
