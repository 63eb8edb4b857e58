"""This machine as the place of a batch's runs: one a slot at a time."""

import itertools
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path

from rosetta import data
from rosetta.batch.batch import Batch, Numbered
from rosetta.errors import RosettaError, SlotLost
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run.devices import Slot
from rosetta.run.environments import Tell, events
from rosetta.run.execute import execute, not_run
from rosetta.run.kernels import Kernels
from rosetta.run.workers import Workers


class Local:
    """An executor of batches; ``kernels`` says on which interpreters the runs go, ``folder`` where the user's data is."""

    def __init__(self, slots: list[Slot], kernels: Kernels, folder: Path | None = None):
        self.slots, self.kernels, self.folder = slots, kernels, folder

    def check(self, plans: Iterable[Plan]) -> None:
        if self.folder:
            data.locate_all(plans, self.folder)
            os.environ["ROSETTA_DATA"] = str(self.folder)  # kernels inherit it; records must not hold such a path

    def supply(self, plans: Iterable[Plan]) -> dict[str, str]:
        missing = {}
        for dataset in data.of(plans):
            try:
                data.locate(dataset)
            except data.Unreachable as reason:
                missing[dataset] = str(reason)
        return missing

    def prepare(self, plans: Numbered, folder: Path, tell: Tell) -> None:
        """Make the environments where an installation would disturb runs beside it."""
        if len(self.slots) > 1:
            rows = {(plan.row.environment, plan.row.imports): plan.row for _, plan in plans}
            machines = {slot.machine.name: slot.machine for slot in self.slots}
            for row, machine in itertools.product(rows.values(), machines.values()):
                with suppress(RosettaError):  # told when a run asks for it
                    self.kernels.get(row, folder / "install.log", events(tell), machine.gpus)

    def each(self, plans: Numbered, batch: Batch) -> Iterator[Record]:
        workers = Workers(self.slots)
        yield from workers.each(lambda numbered: self._one(*numbered, workers, batch), plans)

    def _one(self, number: int, plan: Plan, workers: Workers, batch: Batch) -> Record:
        """One run; it is kept before its slot takes the next, so that nothing else goes on while that is timed."""
        fitting = {slot.machine.name for slot in self.slots if self.kernels.has_build(plan.row, slot.machine.gpus)}
        try:
            with workers.share(lambda slot: slot.machine.name in fitting) as slot:
                batch.journal.begin(number, slot.title)
                run = execute(plan, slot, self.kernels, lambda told: batch.progress(number, told), batch.journal.folder)
                if workers.interrupted:
                    run.close()
                    raise CancelledError
                return batch.keep(number, run, beside=len(workers.slots) - 1)
        except SlotLost as lost:
            batch.journal.begin(number, "")
            return batch.keep(number, not_run(plan, workers.slots[0], self.kernels, "failed", str(lost)), beside=0)
