"""Which workers of a Dask cluster a batch may use."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any

from rosetta.cluster import checkout
from rosetta.cluster.connection import check
from rosetta.errors import RosettaError
from rosetta.run.devices import Slot

GPU = "GPU"  # the resource that marks a worker with a GPU of its own
RUN = "rosetta-run"  # the resource of which every worker gets one, so that Dask gives it one run at a time
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
    """Why a worker takes no run, in a line."""


class Members:
    """``present`` are the workers that may be used, by their addresses; ``gpu`` is whether they must have the resource GPU.

    Which of both it is, the workers decide that are there at the beginning; the first is waited for. ``note`` tells the user.
    ``renew`` brings it up to date. Raises RosettaError where no worker can be used.
    """

    def __init__(self, client: Any, note: Callable[[str], None]):
        self.contents, self.present = checkout.contents(), dict[str, Member]()
        self._client = client
        self._answered: dict[str, bool] = {}  # of every worker that is there; kept by Dask's thread too
        self._news: SimpleQueue[tuple[str, Any]] = SimpleQueue()  # a worker's answer, or None when it has left
        client.subscribe_topic("all", self._changed)
        if not client.scheduler_info()["workers"]:
            note(f"no worker is at {client.scheduler.address} yet: waiting for the first (Ctrl-C ends)")
        while not (workers := client.scheduler_info()["workers"]):
            check(client)
            time.sleep(LOOK_S)
        self.gpu = any(GPU in worker["resources"] for worker in workers.values())
        for address in workers:
            self._greet(address)
        refused: list[str] = []
        self.note, deadline = refused.append, time.monotonic() + GREET_S
        while self._answers_missing() and time.monotonic() < deadline or not (self.present or refused):
            check(client)
            time.sleep(LOOK_S)
            self.renew()
        if not self.present:
            several = f" (and {len(refused) - 1} more such)" if len(refused) > 1 else ""
            raise RosettaError(f"no worker of the cluster can be used: {refused[0]}{several}")
        self.note = note
        for reason in refused:
            note(reason)

    def renew(self) -> None:
        """Take note of the workers that have come and gone."""
        while not self._news.empty():
            address, answer = self._news.get()
            if answer is None:
                self.present.pop(address, None)
            elif address in self._answered:
                self._answered[address] = True
                if reason := self._admit(address, answer):
                    self.note(f"worker {reason}")

    def beside(self, member: Member) -> list[str]:
        """The addresses of all that share its processors, itself among them, in an order that is the same for each."""
        return sorted(
            other.address
            for other in self.present.values()
            if (other.host, other.processors) == (member.host, member.processors)
        )

    def _answers_missing(self) -> bool:
        return not all(list(self._answered.values()))

    def _changed(self, event: tuple[float, Any]) -> None:
        """The scheduler has something to tell of its workers, in Dask's thread."""
        change = event[1]
        if change.get("action") == "add-worker":
            self._greet(change["worker"])
        elif change.get("action") == "remove-worker":
            self._answered.pop(change["worker"], None)
            self._news.put((change["worker"], None))

    def _greet(self, address: str) -> None:
        """Ask a worker what it is, in a thread of its own: one that hangs holds up no other."""
        if address in self._answered:
            return
        self._answered[address] = False

        def wait() -> None:
            try:
                answer = self._client.run(on_worker("greet"), self.contents, workers=[address])[address]
            except Exception as error:
                answer = error
            self._news.put((address, answer))

        Thread(target=wait, daemon=True).start()

    def _admit(self, address: str, answer: Member | Exception) -> str | None:
        """Let a worker take part; returns why not, as a line for the user. One without a GPU where others have one stays out."""
        if isinstance(answer, Exception):
            return f"{address}: {explained(answer)}"
        if self.gpu and not answer.marked:
            return None
        if answer.trouble:
            return f"{answer.title}: {answer.trouble}"
        if self.gpu and answer.slot.gpu is None:
            return f"{answer.title} has the resource {GPU} but sees no GPU: mend its driver or start it without --resources"
        rival = next((other for other in self.present.values() if other.uuid and other.uuid == answer.uuid), None)
        if rival:
            return f"{answer.title} sees the same GPU as {rival.title}: give each its own CUDA_VISIBLE_DEVICES"
        self.present[address] = answer
        return None


def on_worker(name: str) -> Callable:
    """A function that calls one of ``rosetta.cluster.worker`` on the worker where it is called.

    Being a nested one it travels as code, so that the scheduler, which unpacks it too, need not have a checkout.
    """

    async def call(*arguments, dask_worker=None):  # Dask fills that in for ``Client.run``
        from distributed import get_worker

        from rosetta.cluster import worker

        return await getattr(worker, name)(dask_worker or get_worker(), *arguments)

    return call


def explained(error: BaseException) -> str:
    """In a line, what is the matter with a worker that answers with an exception."""
    if isinstance(error, Unfit):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("rosetta"):
        return "it finds no checkout of this runner, or an older one: start it with PYTHONPATH set to one of the same commit"
    if isinstance(error, ModuleNotFoundError):
        return f"its Python lacks {error.name}: start it from the runner's environment (uv run --extra cluster)"
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
