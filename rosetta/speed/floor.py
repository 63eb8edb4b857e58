"""The arithmetic of a training step: the floor that no framework gets below without computing less, as Winograd's convolutions do."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from rosetta.records import Machine

NAME = "floor"
# Weights of each layer, and how many places of its output each of them is used for
CONVOLUTIONS = ((50 * 3 * 9, 32 * 32), (50 * 50 * 9, 32 * 32), (100 * 50 * 9, 16 * 16), (100 * 100 * 9, 16 * 16))
DENSE = ((6400 * 512, 1), (512 * 10, 1))
PASSES = 3  # forward, and in backward the gradient of the inputs and that of the weights


class Floor(BaseModel):
    """What the processors of one machine do in NumPy's product of two square matrices in FP32. flop_s: one number a product."""

    model_config = ConfigDict(extra="forbid")

    machine: Machine | None = None
    measured: datetime | None = None
    size: int = 0
    flop_s: list[float] = []


def forward_flop() -> int:
    """FLOP of one image's forward pass; a multiplication and an addition each."""
    return sum(2 * weights * places for weights, places in CONVOLUTIONS + DENSE)


def step_flop(batch_size: int) -> int:
    return PASSES * forward_flop() * batch_size
