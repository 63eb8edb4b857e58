"""How a comparison is shown: a table for ``compare``, a few lines at the end of a batch."""

from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rosetta.compare.comparison import BETTER, KINDS, WORSE, Change, Comparison

COLOURS = {WORSE: "red", BETTER: "green"}
LINES = 12  # at the end of a batch; the rest is counted


def show(found: Comparison, console: Console) -> None:
    """A table for each column in which something changed, and the sum."""
    for place, changes in groupby(found.changes, key=lambda change: change.place):
        console.print(str(place), style="bold", markup=False, highlight=False)
        table = Table(box=None, pad_edge=False)
        for heading in ("", "row", "", "before", "after", "why"):
            table.add_column(heading, overflow="fold")
        for one in sorted(changes, key=lambda change: KINDS.index(change.kind)):
            cells = (one.row, one.quantity, one.before, one.after, one.why)
            table.add_row(Text(one.kind, COLOURS.get(one.kind, "")), *map(Text, cells))
        console.print(table)
    counts = [f"{len(found.of(kind))} {kind}" for kind in KINDS if found.of(kind)]
    console.print(f"{', '.join(counts) or 'nothing changed beyond noise'}; {found.rows} rows compared", highlight=False)


def tell(found: Comparison, console: Console) -> None:
    """What became worse or better, after a batch; nothing where there was nothing to compare with."""
    changes = found.of(WORSE, BETTER)
    if changes:
        console.print("changed beyond noise since the earlier records of this machine:")
        for one in changes[:LINES]:
            console.print(Text(f"  {_line(one)}", COLOURS[one.kind]), soft_wrap=True)
        if len(changes) > LINES:
            console.print(f"  and {len(changes) - LINES} more", highlight=False)
    elif found.rows:
        console.print(
            f"nothing changed beyond noise since the earlier records of this machine ({found.rows} rows compared)",
            highlight=False,
        )


def _line(one: Change) -> str:
    return f"{one.row} {one.kind}: {one.quantity} {one.before} -> {one.after}{f' ({one.why})' if one.why else ''}"
