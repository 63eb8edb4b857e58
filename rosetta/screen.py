"""What a person sees of a batch: a live table in a terminal, plain lines elsewhere."""

import time

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rosetta.execute import Progress
from rosetta.plan import Plan
from rosetta.records import Record

STYLES = {
    "ok": "green",
    "skipped": "yellow",
    "waiting": "dim",
    "failed": "red",
    "crashed": "red",
    "timeout": "red",
    "diverged": "red",
}


def clock(seconds: float) -> str:
    """Seconds as a person reads them: ``42 s``, ``3:07 min``, ``1:02 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02d} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02d} h"


class Line:
    """The state of one row."""

    def __init__(self, name: str):
        self.name = name
        self.state, self.epoch, self.loss, self.accuracy, self.error = "waiting", "", "", "", None
        self.started: float | None = None
        self.ended: float | None = None

    @property
    def elapsed(self) -> str:
        return "" if self.started is None else clock((self.ended or time.monotonic()) - self.started)


class Screen:
    """Shows a batch. Use as a context; ``begin``, ``progress`` and ``end`` take the number of the row."""

    def __init__(self, plans: list[Plan], console: Console):
        self.console = console
        self.lines = [Line(plan.row.name) for plan in plans]
        self.live = (
            Live(get_renderable=self.table, console=console, refresh_per_second=2) if console.is_terminal else None
        )

    def __enter__(self) -> "Screen":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_) -> None:
        if self.live:
            self.live.stop()

    def begin(self, number: int) -> None:
        self.lines[number].started = time.monotonic()

    def progress(self, number: int, progress: Progress) -> None:
        line = self.lines[number]
        changed = line.state != progress.state
        line.state = progress.state
        if progress.epoch:
            line.epoch, line.loss = f"{progress.epoch}/{progress.epochs}", progress.loss
            self._say(number, f"epoch {line.epoch}  loss {line.loss}")
        elif changed:
            self._say(number, progress.state)

    def end(self, number: int, record: Record) -> None:
        line = self.lines[number]
        line.state, line.ended, line.error = record.status, time.monotonic(), record.error
        if record.metrics.accuracy is not None:
            line.accuracy = f"{100 * record.metrics.accuracy:.2f} %"
        self._say(number, f"{record.status}  {line.error or line.accuracy}")

    def _say(self, number: int, what: str) -> None:
        """One plain line, where there is no live table."""
        if self.live is None:
            line = self.lines[number]
            self.console.print(
                f"[{number + 1}/{len(self.lines)}] {line.name}: {what}  ({line.elapsed})",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for heading, justify in (
            ("row", "left"),
            ("state", "left"),
            ("epoch", "right"),
            ("loss", "right"),
            ("accuracy", "right"),
            ("elapsed", "right"),
            ("", "left"),
        ):
            table.add_column(
                heading, justify=justify, no_wrap=heading != "", overflow="fold" if heading == "" else "ellipsis"
            )
        for line in self._visible():
            table.add_row(
                Text(line.name),
                Text(line.state, STYLES.get(line.state, "cyan")),
                line.epoch,
                line.loss,
                line.accuracy,
                line.elapsed,
                Text(line.error or "", "red"),
            )
        return table

    def _visible(self) -> list[Line]:
        """All lines where they fit; else those around the running one, since a live table cannot scroll."""
        room = self.console.height - 3
        if len(self.lines) <= room:
            return self.lines
        current = max((i for i, line in enumerate(self.lines) if line.started is not None), default=0)
        first = max(0, min(current - room // 2, len(self.lines) - room))
        return self.lines[first : first + room]
