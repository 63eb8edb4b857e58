"""Several runs at once, each in a slot of its own."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import TypeVar

import psutil
from threadpoolctl import threadpool_limits

from rosetta.errors import SlotLost
from rosetta.run.devices import Slot

NOTICE_S = 0.5  # after which an interrupt is noticed at the latest
LOOK_S = 0.1  # how often an interrupt looks for processes to kill

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """A thread a slot, each of which follows one run at a time."""

    def __init__(self, slots: list[Slot]):
        self.slots = slots
        self._lock, self._interrupted = threading.Lock(), threading.Event()
        self._free: SimpleQueue[Slot] = SimpleQueue()
        for slot in slots:
            self._free.put(slot)

    @property
    def interrupted(self) -> bool:
        """Whether the user has ended the work; runs in flight were killed then, and their outcome means nothing."""
        return self._interrupted.is_set()

    @contextlib.contextmanager
    def share(self) -> Iterator[Slot]:
        """A slot for one run; a GPU that no longer answers is left out from then on.

        Raises SlotLost when it was the last one, CancelledError when the user has interrupted meanwhile.
        """
        if self.interrupted:
            raise CancelledError
        slot = self._free.get()
        while reason := slot.lost():
            with self._lock:
                if len(self.slots) == 1:
                    self._free.put(slot)
                    raise SlotLost(reason)
                self.slots = [other for other in self.slots if other is not slot]
            slot = self._free.get()
        try:
            yield slot
        finally:
            self._free.put(slot)

    def each(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The function's results in the order in which they come.

        When the user interrupts, the runs in flight are killed, their threads clean up, and KeyboardInterrupt goes on.
        """
        # NumPy's BLAS would start a thread a processor for each run, and these would wait for work by spinning
        limit = threadpool_limits(None if len(self.slots) == 1 else 1)
        with limit, ThreadPoolExecutor(len(self.slots)) as pool:
            waiting = {pool.submit(function, item) for item in items}
            try:
                while waiting:  # again and again: a signal that comes just as Python begins to wait is noticed after it
                    ended, waiting = wait(waiting, NOTICE_S, FIRST_COMPLETED)
                    yield from (one.result() for one in ended)
            except BaseException:
                self._interrupted.set()
                while wait(waiting, LOOK_S).not_done:  # a thread may have been about to start its process
                    _kill_children()
                raise


def _kill_children() -> None:
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
