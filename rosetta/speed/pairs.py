"""Two scripts that train by turns, an epoch each, on the same processors: what one gains over the other, in one run."""

import signal
import statistics
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from rosetta.errors import RosettaError
from rosetta.records import Commit, Machine
from rosetta.run.devices import Slot
from rosetta.speed.process import Process
from rosetta.speed.scripts import Script


class Pair(BaseModel):
    """A row's notebook and another program of the same training, measured by turns.

    ``notebook_s`` and ``other_s``: seconds of each epoch, the first of which compiles, tunes and warms up.
    """

    model_config = ConfigDict(extra="forbid")

    row: str
    title: str
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

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)


class Pairs(BaseModel):
    """What was measured on one machine, by row; a row that is measured again takes the place of what was there."""

    model_config = ConfigDict(extra="forbid")

    pairs: list[Pair] = []

    def add(self, new: Pair) -> None:
        self.pairs = [old for old in self.pairs if old.row != new.row] + [new]


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


def alternate(scripts: tuple[Script, Script], slot: Slot, epochs: int, folder: Path) -> tuple[list[Epoch], list[Epoch]]:
    """The epochs of both scripts. They begin a round by turns, so that neither is always the first."""
    found: tuple[list[Epoch], list[Epoch]] = ([], [])
    with ExitStack() as stack:
        both = [
            Turns(stack.enter_context(Process(script, slot, "turns", {}, folder / f"{number}.log")))
            for number, script in enumerate(scripts)
        ]
        for number in range(epochs):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                found[which].append(both[which].epoch())
    return found


def read(file: Path) -> Pairs:
    try:
        return Pairs.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Pairs()
    except ValueError as error:
        raise RosettaError(f"{file} is not valid: {str(error).splitlines()[0]}; mend or delete it") from None
