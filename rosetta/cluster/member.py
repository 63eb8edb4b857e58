"""A worker of the cluster, as both the runner and the worker itself know it."""

from dataclasses import dataclass

from rosetta.run.devices import Slot

GPU = "GPU"  # the resource that marks a worker with a GPU of its own
RUN = "rosetta-run"  # the resource of which every worker gets one, so that Dask gives it one run at a time


@dataclass(frozen=True)
class Member:
    """A worker with a checkout like this one, as it describes itself."""

    address: str
    host: str
    slot: Slot
    processors: tuple[int, ...]
    uuids: frozenset[str]  # of its GPUs

    @property
    def where(self) -> str:
        """For the batch's table."""
        return f"{self.host} {self.slot.title}" if self.slot.on_gpu else self.host

    @property
    def title(self) -> str:
        """For messages, where it must not be taken for another on its host."""
        return f"{self.address} ({self.host})"


class Unfit(Exception):
    """Why a worker takes no run, in a line."""
