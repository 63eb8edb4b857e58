"""What a person sees of a batch: a live table in a terminal, plain lines elsewhere."""

import time
from contextlib import nullcontext

from rich.live import Live
from rich.table import Table
from rich.text import Text

from rosetta.batch.journal import Line, Status
from rosetta.figures import clock
from rosetta.run.environments import event
from rosetta.terminal import Console

BAD = ("failed", "crashed", "timeout", "diverged")
STYLES = {"ok": "green", "skipped": "yellow", "waiting": "dim"} | dict.fromkeys(BAD, "red")
EVERY_S = 60.0  # between two plain lines about a run that goes on
ROOM = 5  # lines of the terminal that are not the table's: heading, caption, what the shell wants


class Screen:
    """Shows a batch from its status, in a terminal while the context ``live`` lasts.

    ``progress`` and ``end`` take the number of the line that changed.
    """

    def __init__(self, status: Status, console: Console):
        self.status, self.console = status, console
        self._said: dict[int, tuple[str, float]] = {}  # the last plain line of each run, and when it was
        self.live = (
            Live(get_renderable=lambda: table(self.status, console.height), console=console, refresh_per_second=2)
            if console.is_terminal
            else nullcontext()
        )

    def progress(self, number: int) -> None:
        """In plain lines what matters: that something is installed, that the run starts, and once a minute how far it is."""
        line = self.status.lines[number]
        said, when = self._said.get(number, ("", 0.0))
        if line.state == "running":
            if time.monotonic() - when >= EVERY_S:
                self._say(number, f"{line.part}  {line.note}")
            else:
                self._said[number] = line.state, when  # a second attempt is announced, too
        elif (what := event(line.note) or line.state) not in (said, "preparing"):
            self._say(number, what)

    def end(self, number: int) -> None:
        line = self.status.lines[number]
        self._say(number, f"{line.state}  {line.error or line.result}")

    def note(self, text: str) -> None:
        """Something about the batch as a whole, as a line of its own."""
        self.console.say(text, "yellow")

    def _say(self, number: int, what: str) -> None:
        """One plain line, where there is no live table."""
        if self.console.is_terminal:
            return
        self._said[number] = what, time.monotonic()
        line, several = self.status.lines[number], self.status.slots > 1
        where = f" on {line.where}" if several and line.where else ""
        text = f"[{number + 1}/{len(self.status.lines)}] {line.row}{where}: {what}  ({clock(line.elapsed_s or 0)})"
        self.console.say(text)


def table(status: Status, height: int) -> Table:
    """All lines where they fit the height of the terminal, with what remains."""
    several = status.slots > 1
    grid = Table(box=None, pad_edge=False, caption=Text(_caption(status)), caption_justify="left")
    left = ["row", "state", *(["on"] if several else [])]
    for heading in [*left, "at", "result", "elapsed", "of"]:
        grid.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
    grid.add_column("", overflow="fold")
    for line in _visible(status.lines, height - ROOM):
        grid.add_row(
            line.row,
            Text(line.state, STYLES.get(line.state, "cyan")),
            *([Text(line.where)] if several else []),
            Text(line.part),
            Text(line.result),
            "" if line.elapsed_s is None else clock(line.elapsed_s),
            "" if line.ended else f"about {clock(line.estimate_s)}",
            Text(line.error or line.note, "red" if line.error else ""),
        )
    return grid


def _caption(status: Status) -> str:
    left = "" if status.ended else f", about {clock(status.remaining_s)} left"
    return f"batch {status.id}: {status.done} of {len(status.lines)} done{left}"


def _visible(lines: list[Line], room: int) -> list[Line]:
    """All lines where they fit; else those around the running ones, since a live table cannot scroll."""
    if len(lines) <= room:
        return lines
    current = max((number for number, line in enumerate(lines) if line.started is not None), default=0)
    first = max(0, min(current - room // 2, len(lines) - room))
    return lines[first : first + room]
