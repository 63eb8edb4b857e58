"""Two scripts that train by turns, an epoch each, on the same processors: what one gains over the other, in one run."""

import dataclasses
import math
import signal
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from rosetta.errors import RosettaError
from rosetta.plan import Plan
from rosetta.records import Commit, Machine
from rosetta.run.devices import Slot
from rosetta.run.execute import commit
from rosetta.run.kernels import Kernels
from rosetta.speed import scripts
from rosetta.speed.process import Process
from rosetta.speed.scripts import UNCHANGED, Changes, Script


class Pair(BaseModel):
    """A row's notebook and another program of the same training, measured by turns.

    ``notebook_s`` and ``other_s``: seconds of each epoch, the first of which compiles, tunes and warms up.
    """

    model_config = ConfigDict(extra="forbid")

    row: str
    title: str
    variables: dict[str, str] = {}  # that the other one runs with; "": without it
    batch_size: int
    steps: int  # an epoch
    notebook_s: list[float]
    other_s: list[float]
    notebook_loss: list[float]
    other_loss: list[float]
    synthetic: bool
    measured: datetime
    commit: Commit
    machine: Machine

    def step_ms(self, seconds: list[float]) -> list[float]:
        """Milliseconds a step of each epoch after the first."""
        return [1000 * one / self.steps for one in seconds[1:]]

    @property
    def ratios(self) -> list[float]:
        """How many times as long the notebook takes, epoch by epoch, after the first."""
        return [own / other for own, other in zip(self.notebook_s[1:], self.other_s[1:])]


class Pairs(BaseModel):
    """What was measured on one machine; a row that is measured again, with the same variables, takes the place of what was there."""

    model_config = ConfigDict(extra="forbid")

    pairs: list[Pair] = []

    def add(self, new: Pair) -> None:
        place = new.row, new.variables
        self.pairs = [old for old in self.pairs if (old.row, old.variables) != place] + [new]


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
        self._process, self._told = process, process.told()
        self._hear()  # it is about to train
        process.signal(signal.SIGSTOP)

    def epoch(self) -> Epoch:
        self._process.signal(signal.SIGCONT)
        self._process.go_on()
        told = self._hear()
        self._process.signal(signal.SIGSTOP)
        return Epoch(told["seconds"], told["loss"])

    def _hear(self) -> dict:
        for told in self._told:
            return told
        raise RosettaError("the script ended before its training did")


def measure(planned: Plan, other: Other, slot: Slot, kernels: Kernels) -> Pair:
    """Let a row's notebook and the other one train by turns. The plan says how many epochs of how many images.

    Raises RosettaError where one of them fails, Unavailable where the row cannot run here.
    """
    row, size = planned.row, planned.constants
    code = scripts.cells(row.notebook)
    with tempfile.TemporaryDirectory(prefix="rosetta-") as name:
        folder = Path(name)
        first = scripts.write(planned, code, folder / "notebook.py", kernels)
        second = scripts.write(planned, scripts.changed(code, other.change), folder / "other.py", kernels)
        second = dataclasses.replace(second, variables=second.variables | other.variables)
        own, others = alternate((first, second), slot, size["EPOCHS"], folder)
    return Pair(
        row=row.name,
        title=row.title,
        variables=other.variables,
        batch_size=size["BATCHSIZE"],
        steps=math.ceil(size["N_TRAIN"] / size["BATCHSIZE"]),
        notebook_s=[epoch.seconds for epoch in own],
        other_s=[epoch.seconds for epoch in others],
        notebook_loss=[epoch.loss for epoch in own],
        other_loss=[epoch.loss for epoch in others],
        synthetic=planned.synthetic,
        measured=datetime.now(UTC).replace(microsecond=0),
        commit=commit(),
        machine=slot.machine,
    )


def alternate(both: tuple[Script, Script], slot: Slot, epochs: int, folder: Path) -> tuple[list[Epoch], list[Epoch]]:
    """The epochs of both scripts. They begin a round by turns, so that neither is always the first."""
    found: tuple[list[Epoch], list[Epoch]] = ([], [])
    with ExitStack() as stack:
        turns = [
            Turns(stack.enter_context(Process(script, slot, "turns", {}, folder / f"{number}.log")))
            for number, script in enumerate(both)
        ]
        for number in range(epochs):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                found[which].append(turns[which].epoch())
    return found
