"""Where runs go. A slot takes one run at a time: on a GPU of its own or on the CPU, with processors of its own."""

from dataclasses import dataclass

from rosetta.errors import RosettaError
from rosetta.records import Machine
from rosetta.run import machine

ALL, NONE = "all", "none"


@dataclass(frozen=True)
class Slot:
    """``machine`` is what a run in this slot sees of the host: the one GPU, or none."""

    machine: Machine
    gpu: str | None = None  # as CUDA_VISIBLE_DEVICES takes it; None: no GPU
    processors: tuple[int, ...] | None = None  # None leaves the choice to the framework

    @property
    def title(self) -> str:
        return "CPU" if self.gpu is None else f"GPU {self.gpu}"

    @property
    def threads(self) -> int | None:
        """How many threads a run is told to use."""
        return None if self.processors is None else len(self.processors)

    def variables(self) -> dict[str, str]:
        """What a run's process needs to see this GPU and no other, or none; numbered as nvidia-smi does."""
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "-1" if self.gpu is None else self.gpu}

    def lost(self) -> str | None:
        """Why the GPU cannot be used any more, in one line; None while it answers, and for the CPU."""
        return None if self.gpu is None else machine.trouble(self.gpu)


def timed(gpus: str | None, threads: int | None) -> list[Slot]:
    """One slot a GPU, or a single one on the CPU, so that runs whose time counts never share a device.

    gpus: "all", "none", or numbers as nvidia-smi shows them, "0,2"; None means all. threads: processors of each slot;
    None gives a single slot all of them and several an equal share each. Raises RosettaError for what is not there.
    """
    chosen, processors = _chosen(gpus), machine.processors()
    slots = max(len(chosen), 1)
    if threads is not None and threads * slots > len(processors):
        on = f" on each of {slots} GPUs" if slots > 1 else ""
        raise RosettaError(f"--threads {threads}{on} needs {threads * slots} processors; there are {len(processors)}")
    share = threads or (len(processors) // slots if slots > 1 else 0)
    return _slots(chosen, slots, processors, share)


def first(part: int = 0, of: int = 1) -> Slot:
    """The slot of a process that takes one run at a time, on the first GPU that it sees or on the CPU.

    It is one of ``of`` such processes on this machine, its number is ``part``: each gets an equal share of the processors,
    and a single one leaves the choice to the framework.
    """
    chosen, processors = machine.devices()[:1], machine.processors()
    share = len(processors) // of if of > 1 else 0
    return _slots(chosen, 1, processors[part * share :], share)[0]


def shared(gpus: str | None, jobs: int | None) -> list[Slot]:
    """Slots for work whose time does not count: one a GPU, else one a processor, or ``jobs`` of them."""
    chosen, processors = _chosen(gpus), machine.processors()
    slots = jobs or len(chosen) or len(processors)
    if slots > len(processors):
        raise RosettaError(f"--jobs {slots} needs {slots} processors; there are {len(processors)}")
    return _slots(chosen, slots, processors, len(processors) // slots if slots > 1 else 0)


def _slots(chosen: list[machine.Device], slots: int, processors: list[int], share: int) -> list[Slot]:
    return [
        Slot(
            machine.describe(device),
            device.id if device else None,
            tuple(processors[number * share : (number + 1) * share]) or None,
        )
        for number in range(slots)
        for device in [chosen[number % len(chosen)] if chosen else None]
    ]


def _chosen(gpus: str | None) -> list[machine.Device]:
    there = {device.id: device for device in machine.devices()}
    if gpus in (None, ALL):
        return list(there.values())
    if gpus == NONE:
        return []
    asked = list(dict.fromkeys(part.strip() for part in gpus.split(",") if part.strip()))
    for name in asked:
        if name not in there:
            known = f"this machine shows {', '.join(there)}" if there else "this machine shows none"
            raise RosettaError(f"there is no GPU {name}: {known}; --gpus takes numbers such as 0,2, {ALL} or {NONE}")
    if not asked:
        raise RosettaError(f"--gpus takes numbers such as 0,2, {ALL} or {NONE}")
    return [there[name] for name in asked]
