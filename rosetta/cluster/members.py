"""Which workers of a Dask cluster a batch may use."""

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

from rosetta.cluster import checkout
from rosetta.cluster.connection import check
from rosetta.cluster.member import GPU, Member, Unfit
from rosetta.errors import RosettaError

GREET_S = 60  # workers that have not answered by then join when they do
LOOK_S = 0.1


class Members:
    """``present`` are the workers that may be used, by their addresses; ``gpu`` is whether they must have the resource GPU.

    Which of both it is, the workers decide that are there at the beginning; the first is waited for. ``note`` tells the user.
    Raises RosettaError where no worker can be used.
    """

    def __init__(self, client: Any, note: Callable[[str], None]):
        self.contents, self.present = checkout.contents(), dict[str, Member]()
        self._client = client
        # Workers, and those of them that have not answered; of Dask's thread too
        self._here, self._silent = set[str](), set[str]()
        self._news = SimpleQueue[tuple[str, Any]]()  # a worker's answer, None when it has left or keeps out
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
        while not (self.present or refused) or (self._silent and time.monotonic() < deadline):
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
        """Bring ``present`` up to date."""
        while not self._news.empty():
            address, answer = self._news.get()
            if isinstance(answer, Exception):
                self.note(f"worker {address}: {explained(answer)}")
            elif answer is None:
                self.present.pop(address, None)
            elif rival := self._on_same_gpu(answer):
                self.note(f"worker {answer.title} sees the same GPU as {rival}: give each its own CUDA_VISIBLE_DEVICES")
            elif address in self._here:
                self.present[address] = answer

    def beside(self, member: Member) -> list[str]:
        """The addresses of all that share its processors, itself among them, in an order that is the same for each."""
        return sorted(
            other.address
            for other in self.present.values()
            if (other.host, other.processors) == (member.host, member.processors)
        )

    def _on_same_gpu(self, member: Member) -> str | None:
        return next((other.title for other in self.present.values() if other.uuids & member.uuids), None)

    def _changed(self, event: tuple[float, Any]) -> None:
        """The scheduler has something to tell of its workers, in Dask's thread."""
        change = event[1]
        if change.get("action") == "add-worker":
            self._greet(change["worker"])
        elif change.get("action") == "remove-worker":
            for addresses in (self._here, self._silent):
                addresses.discard(change["worker"])
            self._news.put((change["worker"], None))

    def _greet(self, address: str) -> None:
        """Ask a worker what it is, in a thread of its own: one that hangs holds up no other."""

        def wait() -> None:
            try:
                answer = self._client.run(on_worker("greet"), self.contents, self.gpu, workers=[address])[address]
            except Exception as error:
                answer = error
            self._news.put((address, answer))
            self._silent.discard(address)

        if address not in self._here:
            self._here.add(address)
            self._silent.add(address)
            Thread(target=wait, daemon=True).start()


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
