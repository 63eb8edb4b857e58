"""Runs that are not timed, several at once."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import TypeVar

import psutil
from threadpoolctl import threadpool_limits

from rosetta.batch import terminate_as_interrupt

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """``jobs`` threads, each of which follows one run at a time; runs side by side share no processor."""

    def __init__(self, jobs: int | None, processors: list[int]):
        """One job a processor when ``jobs`` is None."""
        self.jobs = min(jobs or len(processors), len(processors))
        self._interrupted = threading.Event()
        self._shares: SimpleQueue[tuple[int, ...] | None] = SimpleQueue()
        size = len(processors) // self.jobs
        for job in range(self.jobs):
            self._shares.put(tuple(processors[job * size : (job + 1) * size]) if self.jobs > 1 else None)

    @contextlib.contextmanager
    def share(self) -> Iterator[tuple[int, ...] | None]:
        """The processors for one run; None for all. Raises CancelledError when the user has interrupted meanwhile."""
        if self._interrupted.is_set():
            raise CancelledError
        mine = self._shares.get()
        try:
            yield mine
        finally:
            self._shares.put(mine)

    def each(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The function's results in the order in which they come.

        When the user interrupts, the runs in flight are killed, their threads clean up, and KeyboardInterrupt goes on.
        """
        # NumPy's BLAS would start a thread a processor for each job, and these would wait for work by spinning
        limit = threadpool_limits(None if self.jobs == 1 else 1)
        with limit, terminate_as_interrupt(), ThreadPoolExecutor(self.jobs) as pool:
            waiting = [pool.submit(function, item) for item in items]
            try:
                for finished in as_completed(waiting):
                    yield finished.result()
            except BaseException:
                self._interrupted.set()
                for child in psutil.Process().children():
                    with contextlib.suppress(psutil.NoSuchProcess):
                        child.kill()
                raise
