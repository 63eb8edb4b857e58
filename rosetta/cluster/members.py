"""Which workers of a Dask cluster a batch may use, and what each of them is."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rosetta.cluster import checkout
from rosetta.cluster.scheduler import Answered, Joined, Left, Scheduler
from rosetta.errors import RosettaError
from rosetta.records import Machine
from rosetta.run.devices import Slot

GPU = "GPU"  # the resource that marks a worker with a GPU of its own
GREET_S = 60  # workers that have not answered by then join when they do


@dataclass(frozen=True)
class Member:
    """A worker that takes runs, one at a time."""

    address: str
    host: str
    slot: Slot
    processors: tuple[int, ...]
    uuid: str | None  # of its GPU

    @property
    def where(self) -> str:
        """For the batch's table."""
        return f"{self.host} {self.slot.title}" if self.slot.on_gpu else self.host

    @property
    def title(self) -> str:
        """For messages, where it must not be taken for another on its host."""
        return f"{self.address} ({self.host})"


class Members:
    """``present`` are the workers that may be used, by their addresses; ``gpu`` is whether they must have the resource GPU.

    Which of both it is, the workers decide that are there at the beginning; the first is waited for. ``note`` tells the user.
    """

    def __init__(self, scheduler: Scheduler, note: Callable[[str], None]):
        self.scheduler, self.note = scheduler, note
        self.present: dict[str, Member] = {}
        self.contents = checkout.contents()
        self._asked: set[str] = set()
        answers = self._greet_all()
        self.gpu = any(GPU in answer.get("resources", ()) for answer in answers.values() if isinstance(answer, dict))
        refused = [reason for address, answer in answers.items() if (reason := self._admit(address, answer))]
        if not self.present:
            several = f" (and {len(refused) - 1} more such)" if len(refused) > 1 else ""
            raise RosettaError(f"no worker of the cluster can be used: {refused[0]}{several}")
        for reason in refused:
            note(reason)

    def _greet_all(self) -> dict[str, Any]:
        """The answers of all that are there now."""
        for address in self.scheduler.workers():
            self._ask(address)
        if not self._asked:
            self.note(f"no worker is at {self.scheduler.address} yet: waiting for the first (Ctrl-C ends)")
        answers: dict[str, Any] = {}
        deadline = time.monotonic() + GREET_S
        while not answers or self._asked and time.monotonic() < deadline:
            event = self.scheduler.next(timeout=1.0)
            if isinstance(event, Answered):
                self._asked.discard(event.call)
                answers[event.call] = event.result
            elif isinstance(event, Joined):
                self._ask(event.address)
            elif isinstance(event, Left):
                self._asked.discard(event.address)
                answers.pop(event.address, None)
        return answers

    def changed(self, event: Any) -> Member | None:
        """Take note of a worker that has come, answered or gone; returns the one that is gone."""
        if isinstance(event, Joined):
            self._ask(event.address)
        elif isinstance(event, Left):
            return self.drop(event.address)
        elif isinstance(event, Answered):
            self._asked.discard(event.call)
            reason = self._admit(event.call, event.result)
            if reason:
                self.note(reason)
        return None

    def drop(self, address: str) -> Member | None:
        """Use this worker no longer."""
        self._asked.discard(address)
        return self.present.pop(address, None)

    def beside(self, member: Member) -> list[str]:
        """The addresses of all that share its processors, itself among them, in an order that is the same for each."""
        return sorted(
            other.address
            for other in self.present.values()
            if (other.host, other.processors) == (member.host, member.processors)
        )

    def _ask(self, address: str) -> None:
        if address not in self._asked and address not in self.present:
            self._asked.add(address)
            self.scheduler.ask(address, "greet", self.contents)

    def _admit(self, address: str, answer: Any) -> str | None:
        """Let a worker take part; returns why not, as a line for the user. One without a GPU where others have one stays out."""
        if isinstance(answer, Exception):
            return f"worker {address}: {explained(answer)}"
        title = f"worker {address} ({answer['host']})"
        if answer["differs"]:
            return f"{title}: {checkout.another(answer['differs'])}"
        if self.gpu and GPU not in answer["resources"]:
            return None
        if answer["trouble"]:
            return f"{title}: {answer['trouble']}"
        if self.gpu and not answer["gpus"]:
            return f"{title} has the resource {GPU} but sees no GPU: mend its driver or start it without --resources"
        rival = next((other for other in self.present.values() if other.uuid and other.uuid == answer["uuid"]), None)
        if rival:
            return f"{title} sees the same GPU as {rival.title}: give each its own CUDA_VISIBLE_DEVICES"
        slot = Slot(Machine.model_validate(answer["machine"]), tuple(answer["gpus"]))
        self.present[address] = Member(address, answer["host"], slot, tuple(answer["processors"]), answer["uuid"])
        return None


def explained(error: BaseException) -> str:
    """In a line, what is the matter with a worker that answers with an exception."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("rosetta"):
        return "it finds no checkout of this runner, or an older one: start it with PYTHONPATH set to one of the same commit"
    if isinstance(error, ModuleNotFoundError):
        return f"its Python lacks {error.name}: start it from the runner's environment (uv run --extra cluster)"
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
