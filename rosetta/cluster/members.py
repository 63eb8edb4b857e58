"""Which workers of a Dask cluster a batch may use."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from rosetta.cluster import checkout
from rosetta.cluster.connection import check
from rosetta.errors import RosettaError
from rosetta.run.devices import Slot

if TYPE_CHECKING:
    from distributed import Client

GPU = "GPU"  # the resource that marks a worker with a GPU of its own
RUN = "rosetta-run"  # the resource of which every worker has one, so that it takes one run at a time
GREET_S = 60  # workers that have not answered by then join when they do
LOOK_S = 0.1


@dataclass(frozen=True)
class Member:
    """A worker with a checkout like this one, as it describes itself."""

    address: str
    host: str
    slot: Slot
    processors: tuple[int, ...]
    marked: bool  # with the resource GPU
    uuid: str | None  # of its GPU
    trouble: str | None  # why that cannot be used

    @property
    def where(self) -> str:
        """For the batch's table."""
        return self.host if self.slot.gpu is None else f"{self.host} {self.slot.title}"

    @property
    def title(self) -> str:
        """For messages, where it must not be taken for another on its host."""
        return f"{self.address} ({self.host})"


class Unfit(Exception):
    """Why a worker cannot take runs any more, in a line."""


class Members:
    """``present`` are the workers that may be used, by their addresses; ``gpu`` is whether they must have the resource GPU.

    Which of both it is, the workers decide that are there at the beginning; the first is waited for. ``note`` tells the user.
    ``present`` changes in ``renew`` alone. Raises RosettaError where no worker can be used.
    """

    def __init__(self, client: "Client", note: Callable[[str], None]):
        self.note, self.contents = note, checkout.contents()
        self.present: dict[str, Member] = {}
        self._client = client
        self._here: set[str] = set()  # all workers, kept by Dask's thread
        self._news: SimpleQueue[tuple[str, Any]] = SimpleQueue()  # a worker's answer, or None when it has left
        client.subscribe_topic("all", self._changed)
        for address in client.scheduler_info()["workers"]:
            self._greet(address)
        answers = self._first_answers()
        self.gpu = any(getattr(answer, "marked", False) for answer in answers.values())
        refused = [reason for address, answer in answers.items() if (reason := self._admit(address, answer))]
        if not self.present:
            several = f" (and {len(refused) - 1} more such)" if len(refused) > 1 else ""
            raise RosettaError(f"no worker of the cluster can be used: {(refused or ['all have left'])[0]}{several}")
        for reason in refused:
            note(reason)

    def renew(self) -> None:
        """Take note of the workers that have come and gone."""
        while not self._news.empty():
            address, answer = self._news.get()
            if answer is None:
                self.present.pop(address, None)
            elif reason := self._admit(address, answer):
                self.note(reason)

    def beside(self, member: Member) -> list[str]:
        """The addresses of all that share its processors, itself among them, in an order that is the same for each."""
        return sorted(
            other.address
            for other in self.present.values()
            if (other.host, other.processors) == (member.host, member.processors)
        )

    def _first_answers(self) -> dict[str, Any]:
        """The answers of all that are there now."""
        if not self._here:
            self.note(f"no worker is at {self._client.scheduler.address} yet: waiting for the first (Ctrl-C ends)")
        answers: dict[str, Any] = {}
        deadline = time.monotonic() + GREET_S
        while not answers or (self._here - answers.keys() and time.monotonic() < deadline):
            check(self._client)
            time.sleep(LOOK_S)
            while not self._news.empty():
                address, answer = self._news.get()
                answers[address] = answer
            answers = {address: answer for address, answer in answers.items() if answer is not None}
        return answers

    def _changed(self, event: tuple[float, Any]) -> None:
        """Of the scheduler, in Dask's thread."""
        change = event[1]
        if change.get("action") == "add-worker":
            self._greet(change["worker"])
        elif change.get("action") == "remove-worker":
            self._here.discard(change["worker"])
            self._news.put((change["worker"], None))

    def _greet(self, address: str) -> None:
        """Ask a worker what it is, in a thread of its own: one that hangs holds up no other."""
        if address in self._here:
            return
        self._here.add(address)

        def wait() -> None:
            try:
                answer = self._client.run(greeting(), self.contents, workers=[address])[address]
            except Exception as error:
                answer = error
            self._news.put((address, answer))

        Thread(target=wait, daemon=True).start()

    def _admit(self, address: str, answer: Member | str | Exception) -> str | None:
        """Let a worker take part; returns why not, as a line for the user. One without a GPU where others have one stays out."""
        if address not in self._here:
            return None
        if isinstance(answer, Exception):
            return f"worker {address}: {explained(answer)}"
        if isinstance(answer, str):
            return f"worker {address}: {answer}"
        if self.gpu and not answer.marked:
            return None
        if answer.trouble:
            return f"worker {answer.title}: {answer.trouble}"
        if self.gpu and answer.slot.gpu is None:
            return f"worker {answer.title} has the resource {GPU} but sees no GPU: mend its driver or start it without --resources"
        rival = next((other for other in self.present.values() if other.uuid and other.uuid == answer.uuid), None)
        if rival:
            return f"worker {answer.title} sees the same GPU as worker {rival.title}: give each its own CUDA_VISIBLE_DEVICES"
        self.present[address] = answer
        return None


def greeting() -> Callable:
    """``worker.greet`` for ``Client.run``. A nested function travels as code, so that the scheduler need not have a checkout."""

    async def greet(contents, dask_worker):
        from rosetta.cluster import worker

        return await worker.greet(contents, dask_worker)

    return greet


def explained(error: BaseException) -> str:
    """In a line, what is the matter with a worker that answers with an exception."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("rosetta"):
        return "it finds no checkout of this runner, or an older one: start it with PYTHONPATH set to one of the same commit"
    if isinstance(error, ModuleNotFoundError):
        return f"its Python lacks {error.name}: start it from the runner's environment (uv run --extra cluster)"
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
