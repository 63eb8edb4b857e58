"""Several runs at once, each in a slot of its own."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from typing import TypeVar

from threadpoolctl import threadpool_limits

from rosetta.errors import SlotLost
from rosetta.run.devices import Slot
from rosetta.run.processes import kill_runs

NOTICE_S = 0.5  # after which an interrupt is noticed at the latest
LOOK_S = 0.1  # how often an interrupt looks for processes to kill

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """A thread a slot, each of which follows one run at a time."""

    def __init__(self, slots: list[Slot]):
        self.slots = slots
        self._free, self._changed = list(slots), threading.Condition()
        self._interrupted = threading.Event()

    @property
    def interrupted(self) -> bool:
        """Whether the user has ended the work; runs in flight were killed then, and their outcome means nothing."""
        return self._interrupted.is_set()

    @contextlib.contextmanager
    def share(self, fits: Callable[[Slot], bool] = lambda slot: True) -> Iterator[Slot]:
        """A slot for one run, one that fits unless none does; a GPU that no longer answers is left out from then on.

        Raises SlotLost when it was the last one, CancelledError when the user has interrupted meanwhile.
        """
        if self.interrupted:
            raise CancelledError
        slot = self._take(fits)
        while reason := slot.lost():
            with self._changed:
                self._changed.notify_all()  # as soon as the lock is free
                if len(self.slots) == 1:
                    self._free.append(slot)
                    raise SlotLost(reason)
                self.slots = [other for other in self.slots if other is not slot]
            slot = self._take(fits)
        try:
            yield slot
        finally:
            with self._changed:
                self._free.append(slot)
                self._changed.notify_all()

    def _take(self, fits: Callable[[Slot], bool]) -> Slot:
        with self._changed:
            while True:
                wanted = [slot for slot in self.slots if fits(slot)] or self.slots
                for slot in self._free:
                    if slot in wanted:
                        self._free.remove(slot)
                        return slot
                self._changed.wait()

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
                    kill_runs()
                raise
