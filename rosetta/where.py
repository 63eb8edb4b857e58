"""Where a command works, and what the texts of its options mean."""

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rosetta.errors import RosettaError
from rosetta.paths import checkout


@dataclass(frozen=True)
class Where:
    """The rows that a command works on, with which interpreters and GPUs, on which data, and the folder that it writes to."""

    names: tuple[str, ...] = ()  # of rows; none asks for all that the command can take
    task: str | None = None  # rows of this task alone
    data_dir: Path | None = None
    synthetic: bool = False
    out: Path | None = None  # as --out names it
    python: tuple[str, ...] = ()  # ENVIRONMENT=PATH
    build: tuple[str, ...] = ()  # ENVIRONMENT=NAME
    gpus: str | None = None
    jobs: int | None = None  # rows at a time; None: one a GPU, or one a processor

    @property
    def results(self) -> Path:
        """The folder into which a command writes."""
        return (self.out or checkout.runs).absolute()


def about(folder: Path) -> str:
    """What a user must know of a results folder, in brackets; nothing of one that the user named."""
    known = f" (git ignores {checkout.runs.name}/; --out {checkout.results.name} renews what is committed)"
    return known if folder == checkout.runs else ""


def assignments(option: str, texts: list[str] | tuple[str, ...], form: str = "NAME=VALUE") -> dict[str, str]:
    """``["A=1", "B="]`` -> {"A": "1", "B": ""}. Raises RosettaError for anything else, with the form that is wanted."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise RosettaError(f"{option} takes {form}, not {text}")
        pairs[name] = value
    return pairs


def constants(texts: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """``["LR=0.1", "NETWORK=vgg16"]`` -> {"LR": 0.1, "NETWORK": "vgg16"}."""
    return {name: _value(text) for name, text in assignments("--set", texts).items()}


def axes(texts: list[str] | tuple[str, ...]) -> dict[str, list]:
    """``["BATCHSIZE=16,64"]`` -> {"BATCHSIZE": [16, 64]}."""
    return {name: [_value(part) for part in text.split(",")] for name, text in assignments("--axis", texts).items()}


def numbers(option: str, text: str) -> list[int]:
    """``"16,64"`` -> [16, 64]. Raises RosettaError for anything but whole numbers above 0."""
    values = [_value(part.strip()) for part in text.split(",")]
    if not all(isinstance(value, int) and value > 0 for value in values):
        raise RosettaError(f"{option} takes whole numbers above 0 such as 1,2, not {text}")
    return list(dict.fromkeys(values))


def _value(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # whatever it is, it is no number
        return text
    return value if isinstance(value, int | float) else text
