"""Calls that take turns, so that the mood of a machine is shared by all of them."""

import time
from collections.abc import Callable, Mapping

from rosetta.records import Point


def timed(call: Callable[[], object]) -> float:
    """Seconds, to the millisecond."""
    started = time.perf_counter()
    call()
    return round(time.perf_counter() - started, 3)


def by_turns(axis: str, calls: Mapping[str, Callable[[], float]], repeats: int, warm_up: int = 0) -> list[Point]:
    """A point for each call, whose name is its place on the axis: what the call returns, after so many times that do not count."""
    rounds = [[call() for call in calls.values()] for _ in range(warm_up + repeats)]
    return [Point(at={axis: name}, values=values) for name, values in zip(calls, zip(*rounds[warm_up:]))]
