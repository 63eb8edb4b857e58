"""NVIDIA's cards, by the names that NVML gives them: ``environments/cards.toml``."""

from functools import cache
from typing import Annotated

from pydantic import Field

from rosetta import files
from rosetta.files import Count, Strict
from rosetta.paths import ENVIRONMENTS
from rosetta.records import Gpu

FILE = ENVIRONMENTS / "cards.toml"


class Card(Strict):
    name: str
    capability: str
    memory_gib: Count
    peak_fp32: Annotated[float, Field(gt=0, le=1e15)]  # 10^12 operations a second, without tensor cores
    drivers: list[str]  # that a box with it may have

    def gpus(self) -> list[Gpu]:
        """As NVML would tell of it, one with each driver."""
        memory = self.memory_gib * 2**30
        return [
            Gpu(name=self.name, memory=memory, driver=driver, cuda="", capability=self.capability)
            for driver in self.drivers
        ]


class Cards(Strict):
    """The file."""

    cards: list[Card]


@cache
def load() -> dict[str, Card]:
    """By name; none where the file is not there, for a batch must not end for the want of it."""
    if not FILE.is_file():
        return {}
    return {card.name: card for card in files.load(Cards, FILE).cards}
