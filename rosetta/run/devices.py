"""Where runs go. A slot takes one run at a time: on GPUs of its own or on the CPU, with processors of its own."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from threadpoolctl import threadpool_limits

from rosetta.errors import RosettaError, SlotLost
from rosetta.records import Machine
from rosetta.run import machine
from rosetta.run.processes import kill_runs

ALL, NONE = "all", "none"
NOTICE_S = 0.5  # after which an interrupt is noticed at the latest
LOOK_S = 0.1  # how often an interrupt looks for processes to kill
# Read by OpenMP, MKL, OpenBLAS, NumExpr and TensorFlow; XLA follows the processors that the process may use
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Slot:
    """``machine`` is what a run in this slot sees of the host: these GPUs and no other."""

    machine: Machine
    gpus: tuple[str, ...] = ()  # each as CUDA_VISIBLE_DEVICES takes it
    processors: tuple[int, ...] | None = None  # None leaves the choice to the framework
    alone: bool = True  # no other slot has a GPU of it, so what is in use there is the run's own

    @property
    def on_gpu(self) -> bool:
        return bool(self.gpus)

    @property
    def title(self) -> str:
        return f"GPU{'s' * (len(self.gpus) > 1)} {','.join(self.gpus)}" if self.on_gpu else "CPU"

    @property
    def threads(self) -> int | None:
        """How many threads a run is told to use."""
        return None if self.processors is None else len(self.processors)

    def variables(self) -> dict[str, str]:
        """What a run's process needs to see these GPUs and no other, numbered as nvidia-smi does, and to start so many threads."""
        threads = dict.fromkeys(THREAD_VARIABLES, str(self.threads)) if self.threads else {}
        return threads | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(self.gpus) or "-1"}

    def lost(self) -> str | None:
        """Why a GPU of it cannot be used any more, in one line; None while all answer, and for the CPU."""
        return next(filter(None, map(machine.trouble, self.gpus)), None)


def timed(gpus: str | None, threads: int | None, per_run: int = 1) -> list[Slot]:
    """One slot for each group of GPUs, or a single one on the CPU, so that runs whose time counts never share a device.

    gpus: "all", "none", or numbers as nvidia-smi shows them, "0,2"; None means all. threads: processors of each slot;
    None gives a single slot all of them and several an equal share each. per_run: GPUs of each slot.
    Raises RosettaError for what is not there, and for GPUs that do not make whole groups.
    """
    cards, processors = _selected(gpus), machine.processors()
    if per_run > 1 and (not cards or len(cards) % per_run):
        raise RosettaError(f"--gpus-per-run {per_run} does not divide the {len(cards)} GPUs: choose others with --gpus")
    groups = [cards[start : start + per_run] for start in range(0, len(cards), per_run)] or [[]]
    slots = len(groups)
    if threads is not None and threads * slots > len(processors):
        on = f" for each of {slots} runs at a time" if slots > 1 else ""
        raise RosettaError(f"--threads {threads}{on} needs {threads * slots} processors; there are {len(processors)}")
    share = threads or (len(processors) // slots if slots > 1 else 0)
    return _slots(groups, processors, share)


def first(part: int = 0, of: int = 1) -> Slot:
    """The slot of a process that takes one run at a time, on the first GPU that it sees or on the CPU.

    It is one of ``of`` such processes on this machine, its number is ``part``: each gets an equal share of the processors,
    and a single one leaves the choice to the framework.
    """
    processors = machine.processors()
    share = len(processors) // of if of > 1 else 0
    return _slots([machine.devices()[:1]], processors[part * share :], share)[0]


def shared(gpus: str | None, jobs: int | None) -> list[Slot]:
    """Slots for work whose time does not count: one a GPU, else one a processor, or ``jobs`` of them."""
    cards, processors = _selected(gpus), machine.processors()
    slots = jobs or len(cards) or len(processors)
    if slots > len(processors):
        raise RosettaError(f"--jobs {slots} needs {slots} processors; there are {len(processors)}")
    groups = [[cards[number % len(cards)]] if cards else [] for number in range(slots)]
    return _slots(groups, processors, len(processors) // slots if slots > 1 else 0)


def _slots(groups: list[list[machine.Device]], processors: list[int], share: int) -> list[Slot]:
    """A slot for each group of GPUs, with its share of the processors; 0 leaves the choice to the framework."""
    users = Counter(device.id for group in groups for device in group)
    return [
        Slot(
            machine.describe(group),
            tuple(device.id for device in group),
            tuple(processors[number * share : (number + 1) * share]) or None,
            alone=all(users[device.id] == 1 for device in group),
        )
        for number, group in enumerate(groups)
    ]


def _selected(gpus: str | None) -> list[machine.Device]:
    """The devices that ``--gpus`` names."""
    cards = {device.id: device for device in machine.devices()}
    if gpus in (None, ALL):
        return list(cards.values())
    if gpus == NONE:
        return []
    names = dict.fromkeys(part.strip() for part in gpus.split(",") if part.strip())
    takes = f"--gpus takes numbers such as 0,2, {ALL} or {NONE}"
    if not names:
        raise RosettaError(takes)
    for name in names:
        if name not in cards:
            raise RosettaError(f"there is no GPU {name}: this machine shows {', '.join(cards) or 'none'}; {takes}")
    return [cards[name] for name in names]


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

    @contextmanager
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
