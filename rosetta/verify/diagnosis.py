"""What a failed proof tells beyond its numbers: the mistake that computes them, and each cause once, with where it lies."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from rosetta.verify.levels import UNITS, Finding

GUESS = 3.0  # a mistake that comes so many times closer than the reference is told as a guess
CERTAIN = 100.0  # one that comes so many times closer as what happens, in training: numbers far from the reference do not meet a tolerance made for small ones


MANY = 0.1  # of the outputs are those of others where a recorded step is read late: a whole batch


@dataclass(frozen=True)
class Replay:
    """A known mistake, and what a failed level finds when the mistake takes the reference's place."""

    mistake: str
    finding: Finding


def excess(finding: Finding) -> float:
    """The largest difference of a finding, in tolerances; infinite where one is no number or nothing could be compared."""
    pairs = [(value, finding.tolerances[quantity]) for quantity, value in finding.measured.items()]
    if not pairs or any(value is None or value and not limit for value, limit in pairs):
        return math.inf
    return max(value / limit if value else 0.0 for value, limit in pairs)


def named(failed: Finding, replays: Iterable[Replay], certain: float = math.inf) -> str | None:
    """The mistake that reproduces what failed; else the closest, as a guess; None where none is much closer than the reference.

    Ends at the first mistake that reproduces it.
    """
    closest = None
    for replay in replays:
        if replay.finding.passed or excess(replay.finding) * certain <= excess(failed) < math.inf:
            return f"this is what happens with {replay.mistake} ({_within(failed, replay.finding)})"
        if closest is None or excess(replay.finding) < excess(closest.finding):
            closest = replay
    if closest is None or excess(closest.finding) == math.inf or excess(closest.finding) * GUESS > excess(failed):
        return None
    return f"closest to what happens with {closest.mistake}, a guess ({_within(failed, closest.finding)})"


def _within(failed: Finding, found: Finding) -> str:
    """How close, in the quantity that failed most of those that still differ."""
    differing = {name: value for name, value in found.measured.items() if value} or found.measured
    quantity = max(differing, key=lambda name: (failed.measured.get(name) or 0.0) / (found.tolerances[name] or 1e-9))
    value = differing[quantity] or 0.0
    return f"{quantity} within {value:.1f}{UNITS[quantity]}" if quantity in UNITS else f"{quantity} within {value:.1g}"


def spoken_of(error: str, sizes: dict[int, str], right: int, examples: int) -> str | None:
    """The mistake that an error gives away by a number: of an example's values, of a batch's, or of rows that a batch was cut into.

    sizes: number of an example's values -> mistake; right: how many there must be; examples: of a batch.
    """
    numbers = set(map(int, re.findall(r"\d+", error.partition(" (in the cell ")[0])))
    for size, mistake in sizes.items():
        told = {size, size * examples} | ({examples * size // right} if examples in numbers else set())
        if number := numbers & told - {examples}:
            return f"the error speaks of {max(number)}: this is what {mistake} makes of the sizes, a guess"
    return None


def transposed(exported: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> str | None:
    """The first tensor that has its axes in another order."""
    for name, shape in shapes.items():
        found = exported[name].shape if name in exported else ()
        if found != tuple(shape) and sorted(found) == sorted(shape):
            axes = next(axes for axes in permutations(range(len(found))) if _ordered(found, axes) == tuple(shape))
            return f"{name} is {found} instead of {tuple(shape)}: transpose it in export_weights, axes {axes}"
    return None


def _ordered(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[axis] for axis in axes)


def misplaced(mine: np.ndarray, first: np.ndarray, n: int, tolerance: float) -> str | None:
    """What is wrong with the order or the number of the test examples, where their probabilities are right.

    mine: the notebook's, a row an example; first: the reference's of the first examples; n: examples there are.
    """
    distances = np.abs(mine[:, None] - first).max(axis=2)  # of each row from each of the first
    places = [next(iter(np.flatnonzero(column <= tolerance)), None) for column in distances.T]
    if places[0] == 0 and len(mine) < n:
        return f"the first {len(mine)} of {n} test examples are there: is the last batch of the test dropped?"
    distinct = len(np.unique(mine, axis=0))
    # Some are the same by rounding, or say the same to what is alike: as large a share of the reference's
    alike = 1 - len(np.unique(first, axis=0)) / len(first)
    late = len(mine) - distinct > (alike + MANY) * len(mine)
    if late and (places[0] == 0 or distinct > len(first)):  # a network that has died says few things
        return (
            f"{len(mine) - distinct} test examples have the probabilities of others: are the outputs of a recorded step read late, "
            "when the next step has written over them?"
        )
    if len(mine) == n and places[0] != 0 and None not in places:
        return f"test example 1 stands at place {places[0] + 1}: are the test examples shuffled?"
    return None


@dataclass(frozen=True)
class Cause:
    """Why levels failed, and which."""

    reason: str
    levels: list[int]

    def told(self, names: dict[int, str]) -> str:
        """names: of the kind's levels."""
        one = f"level {self.levels[0]} ({names[self.levels[0]]})"
        return f"{f'levels {self.numbers}' if len(self.levels) > 1 else one}: {self.reason}"

    @property
    def numbers(self) -> str:
        return ", ".join(map(str, self.levels))


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """Each reason once."""
    found: dict[str, Cause] = {}
    for finding in findings:
        if not finding.passed:
            reason = finding.reason or ""
            found.setdefault(reason, Cause(reason, [])).levels.append(finding.level)
    return list(found.values())
