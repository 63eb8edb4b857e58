"""The pages of published benchmarks: today's points beside those of then, and the model of several devices."""

import re

import pytest

from rosetta import catalog
from rosetta.measure import protocols
from rosetta.measure.protocols import Benchmark, PublishedPoint
from rosetta.paths import RESULTS
from rosetta.records import Point, Record, read_all
from rosetta.tasks import Protocol

PROTOCOLS = [
    (task, name, protocol) for task in catalog.load().tasks.values() for name, protocol in task.protocols.items()
]


def source(*points: PublishedPoint) -> Benchmark:
    return Benchmark(source="then", url="https://example.org", year=2017, conditions="", points=list(points))


def point(network: str, batch: int, phase: str, seconds: float, threads: int = 2) -> Point:
    at = {"NETWORK": network, "BATCHSIZE": batch, "PHASE": phase, "threads": threads, "steps": 1}
    return Point(at=at, values=[seconds])


def record(*points: Point) -> Record:
    """Of any row, with these points."""
    (_, first), *_ = ((file, each) for file, each in read_all(RESULTS) if each.task == "networks")
    return first.model_copy(update={"points": list(points), "preset": protocols.NAME, "title": "A row"})


PLACES = Protocol(
    title="Small",
    about="",
    points=[
        {"NETWORK": ["a", "b"], "BATCHSIZE": 64, "PHASE": ["forward", "gradient"]},
        {"NETWORK": "a", "BATCHSIZE": [1, 2], "PHASE": "forward"},
    ],
)


def test_networks_and_sizes_are_tables_of_their_own():
    made = protocols.layouts(PLACES, "NETWORK", [1, 2])
    assert [(each.phase, each.by_size, each.columns) for each in made] == [
        ("forward", False, [("a", 64, 1), ("b", 64, 1)]),
        ("forward", False, [("a", 64, 2), ("b", 64, 2)]),
        ("gradient", False, [("a", 64, 1), ("b", 64, 1)]),
        ("gradient", False, [("a", 64, 2), ("b", 64, 2)]),
        ("forward", True, [("a", 1, 1), ("a", 2, 1)]),
        ("forward", True, [("a", 1, 2), ("a", 2, 2)]),
    ]


def test_threads_of_one_point_are_one_table_with_those_of_then():
    one = Protocol(title="One", about="", points=[{"NETWORK": "a", "BATCHSIZE": 64, "PHASE": "forward"}])
    (layout,) = protocols.layouts(one, "NETWORK", [1, 2], {1, 4})
    assert layout.columns == [("a", 64, 1), ("a", 64, 2), ("a", 64, 4)]
    assert layout.headings()[-1] == "`a`, batch 64, 4 threads"


def test_figure_of_then_stands_in_the_column_of_its_point():
    (forward, _, by_size) = protocols.layouts(PLACES, "NETWORK", [2])
    same = PublishedPoint(at={"NETWORK": "a", "BATCHSIZE": 64, "PHASE": "forward"}, device="K40", figures={"x": 12.5})
    other = PublishedPoint(
        at={"NETWORK": "b", "BATCHSIZE": 32, "PHASE": "forward"}, device="K40", figures={"x": 7, "y": 8}
    )
    lines = protocols.then(forward, [source(same, other)], "NETWORK", {"y": "The row y"})
    assert lines == [["*x, K40, 2017*", "12.5", "7 (batch 32)"], ["*The row y, K40, 2017*", "", "8 (batch 32)"]]
    assert protocols.then(by_size, [source(same)], "NETWORK", {}) == [], "another size is no column of sizes"


@pytest.mark.parametrize(
    "at", [{"PHASE": "gradient"}, {"devices": 2}, {"NETWORK": "c"}, {"threads": 1}, {"DATA": "real"}]
)
def test_figure_of_another_point_stands_nowhere(at):
    (forward, *_) = protocols.layouts(PLACES, "NETWORK", [2])
    whole = {"NETWORK": "a", "BATCHSIZE": 64, "PHASE": "forward"} | at
    other = PublishedPoint(at=whole, device="K40", figures={"x": 1})
    assert protocols.then(forward, [source(other)], "NETWORK", {}) == []


@pytest.mark.parametrize(("task", "name", "protocol"), PROTOCOLS, ids=[name for _, name, _ in PROTOCOLS])
def test_published_points_are_of_networks_and_phases_of_their_task(task, name, protocol):
    """A network that is spelt otherwise would stand in no table."""
    choices = task.params.CHOICES
    for each in map(protocols.read_published, protocol.published):
        for told in each.points:
            assert told.at[task.kind.which] in choices[task.kind.which] and told.at["PHASE"] in choices["PHASE"]


def test_page_has_rates_and_ratios(tmp_path):
    known = catalog.load()
    made = record(
        *(point("vgg16", 8, phase, seconds) for phase, seconds in (("forward", 2.0), ("gradient", 5.0))),
        *(point("alexnet", size, "forward", 0.1 * size) for size in (1, 2)),
    ).model_copy(update={"changed": {protocols.NAME: "addfor"}})
    text = protocols.text(known, [made], tmp_path)
    assert re.search(r"\| A row \|[ |]* 2000\.0 \|", text), "milliseconds, of a single repeat"
    assert re.search(r"\| A row \| 100\.00 \| 100\.00 \|", text), "milliseconds an example"
    flop = 2 * known.task("networks").params.network("vgg16").MULTIPLY_ADDS * 8
    assert f" {flop / 2.0 / 1e9:.1f} |" in text and f" {3 * flop / 5.0 / 1e9:.1f} |" in text, "GFLOP/s"
    assert re.search(r"times its forward pass\*\*\n\n.*\n.*\n\| A row \|[ |]* 2\.5 \|", text)
    assert "*TensorFlow 1, GTX 1080, 2017*" in text and "420.28 (batch 64)" in text


def test_committed_gradients_take_longer_than_their_forward_pass():
    """A framework may leave out a gradient that nothing reads. The backward pass has about twice the arithmetic of the forward one."""
    compared = 0
    for file, each in read_all(RESULTS):
        phases: dict[str, dict] = {}
        for one in each.points:
            if one.values and "PHASE" in one.at:
                where = {name: value for name, value in one.at.items() if name not in ("PHASE", "steps")}
                phases.setdefault(str(where), {})[one.at["PHASE"]] = one.sample.median
        for where, seconds in phases.items():
            if {"forward", "gradient"} <= seconds.keys():
                compared += 1
                assert seconds["gradient"] > 1.5 * seconds["forward"], (file, where)
    assert compared > 100
