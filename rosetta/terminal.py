"""The console that all commands write their tables, colours and lines with: it shows no control sequence of anybody else."""

from collections.abc import Iterable
from typing import Any

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from rosetta import streams
from rosetta.figures import Table
from rosetta.streams import NO_CONTROLS, printable

BADGES = {"good": "green", "bad": "red"}  # of cells
WIDE = 100_000  # columns where there is no terminal: a line of a table is one line for grep


class Console(console.Console):
    """A console on standard output that takes text as it is: no markup, no colours by guess, no control characters."""

    def __init__(self, **options: Any):
        super().__init__(file=streams.styled, markup=False, highlight=False, emoji=False, **options)
        if "width" not in options and not self.is_terminal:
            self.width = WIDE

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            # Only the characters: a table has given each of the others its place
            yield segment if control else Segment(text.translate(NO_CONTROLS), style)

    def say(self, text: str, style: str = "") -> None:
        """One line, as long as it is."""
        self.print(Text(printable(text), style), soft_wrap=True)

    def table(self, of: Table) -> None:
        """A table without lines; long cells are folded, and badges have a colour."""
        grid = Grid(box=None, pad_edge=False)
        for heading in of.headings:
            grid.add_column(heading.text, overflow="fold")
        for row in of.rows:
            grid.add_row(*(Text(cell.text, BADGES.get(cell.badge, "")) for cell in row))
        self.print(grid)
