"""Pictures of one column of the results, as SVG that is the same for the same records. Needs the optional extra ``site``."""

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rosetta.catalog import Row
from rosetta.records import Metrics, Record
from rosetta.report.columns import Column
from rosetta.report.samples import sample

# Text stays text, for readers and search; ids and dates would differ from run to run
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rosetta",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6eb",
    "axes.axisbelow": True,
}
WIDTH = 8.0  # inches
FIRST, STEADY = "#c2560c", "#0b57a4"
CURVES = 3  # epochs from which on there is a curve to see


@dataclass(frozen=True)
class Picture:
    """One SVG. ``alt`` says in words what the picture shows."""

    kind: str  # one of pictures.CAPTIONS
    alt: str
    svg: str


def draw(rows: list[Row], column: Column) -> list[Picture]:
    """Those that the column's records have the figures for."""
    present = [(row, column.runs[row.name]) for row in rows if row.name in column.runs]
    made = [_epochs(present, column), _curves(present, column), _joules(present, column)]
    return [picture for picture in made if picture]


def _epochs(present: list[tuple[Row, list[Record]]], column: Column) -> Picture | None:
    """First against steady epoch, in seconds; the line of a steady epoch reaches from the fastest to the slowest seed."""
    timed = [(row, runs, sample(runs, lambda record: record.metrics.steady_epoch_s)) for row, runs in present]
    timed = [(row, runs, steady) for row, runs, steady in timed if steady]
    if not timed:
        return None

    def plot(axes: Axes) -> None:
        for place, (_, runs, steady) in enumerate(timed):
            first = sample(runs, lambda record: record.metrics.first_epoch_s)
            axes.plot([steady.low, steady.high], [place, place], color=STEADY, linewidth=3, alpha=0.4)
            axes.plot(
                first.median, place, "o", markerfacecolor="none", color=FIRST, label="" if place else "first epoch"
            )
            axes.plot(steady.median, place, "o", color=STEADY, label="" if place else "steady epoch (median)")
        axes.set_xscale("log")
        axes.set_xlabel("seconds an epoch (logarithmic)")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:g}"[0] in "25" else ""))
        _name_rows(axes, [row.title for row, *_ in timed])
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)

    seconds = [f"{row.title} {steady.median:.3g}" for row, _, steady in timed]
    return Picture(
        "epochs",
        f"Seconds of a steady epoch on {column.title}: {', '.join(seconds)}.",
        _svg(plot, 0.26 * len(timed) + 1.1),
    )


def _curves(present: list[tuple[Row, list[Record]]], column: Column) -> Picture | None:
    """Training loss by epoch, and accuracy on the test images where it was measured between epochs."""
    long = [(row, runs) for row, runs in present if len(runs[0].metrics.loss) >= CURVES]
    if not long:
        return None
    tested = any(record.metrics.epoch_accuracy for _, runs in long for record in runs)

    def plot(loss: Axes, accuracy: Axes | None = None) -> None:
        loss.set_ylabel("training loss")
        _lines(loss, long, lambda metrics: metrics.loss)
        if accuracy is not None:
            accuracy.set_ylabel("test accuracy")
            accuracy.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
            _lines(accuracy, long, lambda metrics: metrics.epoch_accuracy)
        loss.legend(frameon=False)

    ends = [f"{row.title} {runs[0].metrics.loss[-1]:.3f}" for row, runs in long if runs[0].metrics.loss[-1] is not None]
    return Picture(
        "curves",
        f"Training loss after the last epoch on {column.title}: {', '.join(ends)}.",
        _svg(plot, 3.2, panels=2 if tested else 1),
    )


def _joules(present: list[tuple[Row, list[Record]]], column: Column) -> Picture | None:
    """Training images a joule of the GPU, where there was one that told."""
    found = [(row, sample(runs, lambda record: record.metrics.images_per_j)) for row, runs in present]
    found = [(row, joules) for row, joules in found if joules]
    if not found:
        return None

    def plot(axes: Axes) -> None:
        for place, (_, joules) in enumerate(found):
            axes.plot([joules.low, joules.high], [place, place], color=STEADY, linewidth=3, alpha=0.4)
            axes.plot(joules.median, place, "o", color=STEADY)
        axes.set_xlim(left=0)
        axes.set_xlabel("training images a joule of the GPU")
        _name_rows(axes, [row.title for row, _ in found])

    values = ", ".join(f"{row.title} {joules.median:.3g}" for row, joules in found)
    return Picture(
        "joules",
        f"Training images a joule on {column.title}: {values}.",
        _svg(plot, 0.26 * len(found) + 0.7),
    )


def _lines(axes: Axes, present: list[tuple[Row, list[Record]]], values: Callable[[Metrics], list]) -> None:
    for number, (row, runs) in enumerate(present):
        for record in runs:
            points = [(epoch, value) for epoch, value in enumerate(values(record.metrics), 1) if value is not None]
            if points:
                axes.plot(
                    *zip(*points), color=f"C{number % 10}", label=row.title if record is runs[0] else "", marker="."
                )
    axes.set_xlabel("epoch")


def _name_rows(axes: Axes, titles: list[str]) -> None:
    axes.set_yticks(range(len(titles)), titles)
    axes.invert_yaxis()


def _svg(plot: Callable[..., None], height: float, panels: int = 1) -> str:
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        plot(*(figure.add_subplot(1, panels, panel + 1) for panel in range(panels)))
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
