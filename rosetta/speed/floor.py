"""The arithmetic of a training step: the floor that no framework gets below without computing less, as Winograd's convolutions do."""

import math
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from common.params.cifar10_cnn import WEIGHT_SHAPES
from rosetta.records import Machine

NAME = "floor"
PLACES = {"conv1": 32 * 32, "conv2": 32 * 32, "conv3": 16 * 16, "conv4": 16 * 16}  # where a kernel is applied
PASSES = 3  # forward, and in backward the gradient of the inputs and that of the weights


class Floor(BaseModel):
    """What the processors of one machine do in NumPy's product of two square matrices in FP32. flop_s: one number a product."""

    model_config = ConfigDict(extra="forbid")

    machine: Machine | None = None
    measured: datetime | None = None
    size: int = 0
    flop_s: list[float] = []


def forward_flop() -> int:
    """FLOP of one image's forward pass: a multiplication and an addition for each weight, wherever it is used."""
    matrices = {name: shape for name, shape in WEIGHT_SHAPES.items() if name.endswith(".weight")}
    return sum(2 * math.prod(shape) * PLACES.get(name.split(".")[0], 1) for name, shape in matrices.items())


def step_flop(batch_size: int) -> int:
    """FLOP of a training step with so many images."""
    return PASSES * forward_flop() * batch_size
