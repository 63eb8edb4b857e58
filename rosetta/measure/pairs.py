"""Two scripts that compute by turns, an epoch, a pass or a repeat each, on the same processors: what one gains over the other, in one run."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from rosetta.kinds.kind import BATCH
from rosetta.measure import cells, scripts
from rosetta.measure.process import Process
from rosetta.measure.rows import Measuring
from rosetta.measure.scripts import UNCHANGED, Changes, Script
from rosetta.plan import Plan
from rosetta.records import Point
from rosetta.run.devices import Slot
from rosetta.where import Where, assignments

NOTEBOOK, FASTEST, SETTINGS = "notebook", "fastest", "settings"
HEADING = cells.line(["notebook, ms a step", "other, ms a step", "notebook / other"], 26)


def fastest(options: Where, steps: int, epochs: int) -> int:
    """Every notebook against the program of its framework with the fastest idiomatic loop."""

    def change(planned: Plan) -> Changes:
        return scripts.changes(scripts.program(FASTEST, planned.row), planned.kind.names)

    return _measure(options, FASTEST, steps, epochs, change, {})


def settings(options: Where, variables: list[str], steps: int, epochs: int) -> int:
    """Every notebook against itself with environment variables; it goes without those that are empty."""
    given = assignments("--set", variables)
    return _measure(options, SETTINGS, steps, epochs, lambda planned: UNCHANGED, given)


def _measure(
    options: Where,
    what: str,
    steps: int,
    turns: int,
    change: Callable[[Plan], Changes],
    variables: dict[str, str],
) -> int:
    """Let every notebook compute by turns with itself, changed or with other variables; the first turn, which may still compile
    and warm up, does not count."""
    bench = Measuring(options, f"measure {what}", "turns")

    def work(planned: Plan) -> Iterator[list[Point]]:
        size, code = planned.constants, scripts.cells(planned.row.notebook)
        with bench.scripts(planned, code, scripts.changed(code, change(planned))) as (own, other):
            other = replace(other, variables=other.variables | variables)
            both = alternate((own, other), planned.kind.turns, bench.slot, turns)
        steps, points = planned.kind.steps(size), []
        for program, messages in zip((NOTEBOOK, what), both):
            at = {"program": program, **_which(planned), BATCH: size[BATCH], "steps": steps}
            counted = messages[1:]
            points.append(Point(at=at, values=[turn["seconds"] / steps for turn in counted]))
            evidence = next(name for name in counted[0] if name != "seconds")  # that it computed
            points.append(Point(at=at, values=[turn[evidence] for turn in counted], unit=evidence))
        yield points

    plans = [
        bench.short(row, steps, turns, place)
        for row in bench.rows
        for place in bench.catalog.task(row.task).compared
        if place.get(bench.catalog.kind(row).which) not in row.facts.lacking(bench.slot.on_gpu)
    ]
    return bench.each(what, HEADING, plans, work, _line, variables)


def _which(planned: Plan) -> dict[str, Any]:
    """The constant that names the network, where a task has several."""
    name = planned.kind.which
    return {name: planned.constants[name]} if name else {}


def _line(points: list[Point]) -> str:
    ((label, group),) = cells.pairs(points).items()
    return f"{cells.line(cells.pair(group), 26)}  {label}".rstrip()


def alternate(both: tuple[Script, Script], todo: str, slot: Slot, turns: int) -> tuple[list[dict], list[dict]]:
    """What both scripts tell of their turns. todo: the function of ``inside`` that gives them turns. They begin a round by turns, so that neither is always the first."""
    done: tuple[list[dict], list[dict]] = ([], [])
    at_work = []
    with ExitStack() as stack:
        for script in both:
            at_work.append(stack.enter_context(Process(script, slot, todo, {})).turns())
            next(at_work[-1])  # it is about to begin, and is stopped before the other one starts
        for number in range(turns):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                done[which].append(next(at_work[which]))
    return done
