"""Two scripts that train by turns, an epoch each, on the same processors: what one gains over the other, in one run."""

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from rosetta.errors import RosettaError
from rosetta.kinds.train import BATCH
from rosetta.measure import cells, scripts
from rosetta.measure.process import Process
from rosetta.measure.rows import Measuring, Part, RowOptions
from rosetta.measure.scripts import UNCHANGED, Changes, Script
from rosetta.plan import Plan
from rosetta.records import Point
from rosetta.run.devices import Slot

NOTEBOOK, FASTEST, SETTINGS = "notebook", "fastest", "settings"


@dataclass(frozen=True)
class Other:
    """What the notebook is measured against: itself, with other cells or other variables."""

    change: Changes = UNCHANGED
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Epoch:
    seconds: float
    loss: float


class Turns:
    """One script at work: it trains an epoch whenever it is told to, and is stopped in between, its threads included."""

    def __init__(self, process: Process):
        self._process, self._messages = process, process.messages()
        self._hear()  # it is about to train
        process.signal(signal.SIGSTOP)

    def epoch(self) -> Epoch:
        self._process.signal(signal.SIGCONT)
        self._process.go_on()
        message = self._hear()
        self._process.signal(signal.SIGSTOP)
        return Epoch(message["seconds"], message["loss"])

    def _hear(self) -> dict:
        for message in self._messages:
            return message
        raise RosettaError("the script ended before its training did")


def fastest(options: RowOptions, steps: int, epochs: int) -> int:
    """Every notebook against the program of its framework with the fastest idiomatic loop."""

    def other(planned: Plan) -> Other:
        return Other(scripts.changes(scripts.program(FASTEST, planned.row), planned.kind.names))

    return _measure(options, FASTEST, steps, epochs, other, {})


def settings(options: RowOptions, variables: dict[str, str], steps: int, epochs: int) -> int:
    """Every notebook against itself with environment variables; it goes without those that are empty."""
    other = Other(variables=variables)
    return _measure(options, SETTINGS, steps, epochs, lambda planned: other, variables)


def _measure(
    options: RowOptions, what: str, steps: int, epochs: int, other: Callable[[Plan], Other], changed: dict[str, str]
) -> int:
    bench = Measuring(options)

    def work(planned: Plan) -> Iterator[Part]:
        yield against(bench, planned, what, other(planned))

    heading = f"{'notebook, ms a step':>26}{'other, ms a step':>26}{'notebook / other':>26}"
    return bench.each(what, heading, [bench.short(row, steps, epochs) for row in bench.rows], work, changed)


def against(bench: Measuring, planned: Plan, what: str, other: Other) -> Part:
    """Let a row's notebook and the other one train by turns; the first epoch, which compiles and warms up, does not count."""
    size, code = planned.constants, scripts.cells(planned.row.notebook)
    with tempfile.TemporaryDirectory(prefix="rosetta-") as name:
        first = scripts.write(planned, code, Path(name, "notebook.py"), bench.kernels)
        second = scripts.write(planned, scripts.changed(code, other.change), Path(name, "other.py"), bench.kernels)
        second = replace(second, variables=second.variables | other.variables)
        both = alternate((first, second), bench.slot, size["EPOCHS"])
    steps = -(-size["N_TRAIN"] // size[BATCH])
    points = []
    for program, epochs in zip((NOTEBOOK, what), both):
        at = {"program": program, BATCH: size[BATCH], "steps": steps}
        points.append(Point(at=at, values=[epoch.seconds / steps for epoch in epochs[1:]]))
        points.append(Point(at=at, values=[epoch.loss for epoch in epochs[1:]], unit="loss"))
    return Part(points, "".join(f"{cell:>26}" for cell in cells.pair(points)))


def alternate(both: tuple[Script, Script], slot: Slot, epochs: int) -> tuple[list[Epoch], list[Epoch]]:
    """The epochs of both scripts. They begin a round by turns, so that neither is always the first."""
    done: tuple[list[Epoch], list[Epoch]] = ([], [])
    with ExitStack() as stack:
        turns = [Turns(stack.enter_context(Process(script, slot, "turns", {}))) for script in both]
        for number in range(epochs):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                done[which].append(turns[which].epoch())
    return done
