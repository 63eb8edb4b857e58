"""How a comparison is shown: a table for ``compare``, a few lines at the end of a batch."""

from itertools import groupby

from rich.table import Table
from rich.text import Text

from rosetta.compare.comparison import BETTER, OUTCOMES, WORSE, Comparison
from rosetta.terminal import Console

COLOURS = {WORSE: "red", BETTER: "green"}
LINES = 12  # at the end of a batch; the rest is counted


def show(comparison: Comparison, console: Console) -> None:
    """A table for each column in which something changed, and the sum."""
    for place, changes in groupby(comparison.changes, key=lambda change: change.place):
        console.say(", ".join(place), "bold")
        table = Table(box=None, pad_edge=False)
        for heading in ("", "row", "", "before", "after", "why"):
            table.add_column(heading, overflow="fold")
        for change in sorted(changes, key=lambda change: OUTCOMES.index(change.outcome)):
            cells = (change.row, change.quantity, change.before, change.after, change.why)
            table.add_row(Text(change.outcome, COLOURS.get(change.outcome, "")), *cells)
        console.print(table)
    counts = [f"{len(comparison.of(outcome))} {outcome}" for outcome in OUTCOMES if comparison.of(outcome)]
    console.say(f"{', '.join(counts) or 'nothing changed beyond noise'}; {comparison.rows} rows compared")


def tell(comparison: Comparison, console: Console) -> None:
    """What became worse or better, after a batch; nothing where there was nothing to compare with."""
    changes = comparison.of(WORSE, BETTER)
    if changes:
        console.say("changed beyond noise since the earlier records of this machine:")
        for change in changes[:LINES]:
            why = f" ({change.why})" if change.why else ""
            line = f"  {change.row} {change.outcome}: {change.quantity} {change.before} -> {change.after}{why}"
            console.say(line, COLOURS[change.outcome])
        if len(changes) > LINES:
            console.say(f"  and {len(changes) - LINES} more")
    elif comparison.rows:
        console.say(
            f"nothing changed beyond noise since the earlier records of this machine ({comparison.rows} rows compared)"
        )
