"""``sweep --protocol``: the points of a published benchmark are runs of each row's notebook, and their page shows the figures of then."""

import json
import re
from pathlib import Path

import pytest

from rosetta import catalog
from rosetta.measure import protocols
from rosetta.measure.protocols import Benchmark, PublishedPoint
from rosetta.paths import checkout
from rosetta.records import Point, read_all
from rosetta.tasks import Protocol
from tests import toys
from tests.standin import one_line

PROTOCOL = """
[protocols.small]
title = "Small (2016)"
about = "Steps of two networks."
warmup = 1
steps = 3
repeats = 2
points = [
    { NETWORK = ["narrow", "wide"], BATCHSIZE = [2, 4], PHASE = "step" },
    { NETWORK = "wide", BATCHSIZE = 2, PHASE = "forward" },
]
"""
COMMAND = ("measure", "sweep", "--task", "toy_speed", "--protocol", "small", "--threads", "1")


class Toy:
    """A checkout whose toy of kind speed has a protocol."""

    def __init__(self, inside):
        self.root, self.out, self.inside = inside.root, inside.out, inside
        inside.catalog(inside.entry("other"))
        toys.write(inside.root)
        self.task(r"\[about\]", f"{PROTOCOL}\n[about]")

    def task(self, pattern: str, text: str) -> None:
        """Replace what its task.toml says."""
        file = self.root / "notebooks" / "toy_speed" / "task.toml"
        told, count = re.subn(pattern, lambda match: text, file.read_text(), count=1)
        assert count
        file.write_text(told)

    def measure(self, *arguments: str, code: int = 0) -> str:
        done = self.inside.call(*COMMAND, *arguments, "--out", str(self.out))
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout or one_line(done.stderr)

    def session(self) -> Path:
        """The file of the newest."""
        return max(self.out.glob("*/toy_speed/protocol,protocol=small-synthetic/numpy.*.json"))

    def points(self) -> dict:
        """What the newest session kept: (network, batch, phase) -> the point."""
        kept = json.loads(self.session().read_text())["points"]
        return {tuple(point["at"][name] for name in ("NETWORK", "BATCHSIZE", "PHASE")): point for point in kept}

    def page(self) -> str:
        return (self.out / "benchmarks.md").read_text()


@pytest.fixture
def toy(inside) -> Toy:
    return Toy(inside)


def test_every_point_is_measured_once(toy):
    first = toy.measure()
    assert "Small (2016): 5 points of 1 rows, 0 of them are there" in first
    said = r"^\[\d/5\] toy_speed/numpy: threads 1, network .*: [\d.]+ ± [\d.]+ ms$"
    assert len(re.findall(said, first, re.MULTILINE)) == 5
    steps = {(name, size, "step") for name in ("narrow", "wide") for size in (2, 4)}
    assert toy.points().keys() == steps | {("wide", 2, "forward")}
    assert all(len(point["values"]) == 2 and point["at"]["steps"] == 3 for point in toy.points().values())
    assert "0 points to measure" in toy.measure()
    page = toy.page()
    assert "## Small (2016)" in page and "**Full step, 1 thread: ms**" in page and "**Forward, 1 thread: ms**" in page
    assert "|  | `narrow`, batch 2 | `narrow`, batch 4 | `wide`, batch 2 | `wide`, batch 4 |" in page

    file = toy.session()
    earlier = json.loads(file.read_text())
    earlier["versions"]["numpy"] = "0.1"
    earlier["points"] = [point | {"values": [99.0, 99.0]} for point in earlier["points"]]
    file.write_text(json.dumps(earlier))
    assert "5 points to measure" in toy.measure(), "after a re-lock a protocol begins anew"
    assert json.loads(file.read_text()) == earlier and toy.session() != file, "a session stays as it was written"
    assert "99000.0" not in toy.page(), "the table shows the points of one version alone"
    toys.notebook(toy.root, "toy_speed", "np.maximum(", "np.maximum( ")
    assert "5 points to measure" in toy.measure(), "the points of another notebook do not count"


def test_budget_takes_the_cheapest_and_names_the_others(toy):
    toy.task(r"cost = \{[^}]*\}", "cost = { start_s = 50, item_ms = 1 }")
    shown = toy.measure("--minutes", "0.5")
    assert "30 s suffice for about 0 of them; call it again, and it goes on" in shown
    assert re.search(r"^left out: 5 points, about [\d:]+ min, of numpy$", shown, re.MULTILINE), shown


@pytest.mark.parametrize(
    ("mistake", "status", "said", "again"),
    [
        ('raise MemoryError("no memory for it")', "out of memory", "out of memory", 0),
        ('raise ValueError("no such layer")', "failed", "failed: ValueError: no such layer (in the cell step)", 3),
    ],
)
def test_point_that_cannot_be_is_kept_with_its_reason(toy, mistake, status, said, again):
    toys.notebook(toy.root, "toy_speed", "run = forward", f'if NETWORK == "wide":\n    {mistake}\nrun = forward')
    assert f"phase forward: {said}\n" in toy.measure(code=int(status == "failed"))
    kept = toy.points()
    assert {name: point["status"] for (name, *_), point in kept.items()} == {"narrow": "ok", "wide": status}
    assert not any(point["values"] for (name, *_), point in kept.items() if name == "wide")
    assert re.search(rf"\| NumPy \| .*\| {status} \| {status} \|", toy.page())
    assert f"{again} points to measure" in toy.measure(code=int(status == "failed")), "what failed is tried again"


@pytest.mark.parametrize(
    ("error", "full"),
    [
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", True),
        ("ResourceExhaustedError: OOM when allocating tensor with shape[64,512]", True),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes", True),
        ("MemoryError: Unable to allocate 5.00 GiB for an array", True),
        ("SystemError: Fail to alloc memory of 8 bytes", True),
        ("RuntimeError: Malloc for kernel output failed, Memory isn't enough", True),
        ("RuntimeError: Allocate memory failed", True),
        ("SIGKILL, as the system sends it when memory runs out", True),
        ("computed on the CPU: the GPU's memory was never used (device: cuda:0)", False),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", False),
        ("RuntimeError: unsupported memory format option 5", False),
    ],
)
def test_error_that_only_speaks_of_memory_is_a_failure(error, full):
    assert bool(protocols.MEMORY.search(error)) == full


def test_machine_without_gpu_takes_the_points_made_for_it(toy):
    toy.task(r"\n\[about\]", 'points_on_cpu = [{ NETWORK = "wide", BATCHSIZE = 2, PHASE = "forward" }]\n\n[about]')
    assert "1 points of 1 rows" in toy.measure()
    assert toy.points().keys() == {("wide", 2, "forward")}
    assert "| `wide`, batch 2 |" in toy.page() and "narrow" not in toy.page()


def test_row_that_gains_nothing_without_a_gpu_is_left_out_unless_it_is_named(toy):
    toy.task(r"numpy = \{", 'numpy = { gpu_only = "no gain",')
    assert toy.measure(code=2).endswith("no row gains anything without a GPU: name those to be measured")
    assert "5 points of 1 rows" in toy.measure("numpy")


@pytest.mark.parametrize("fact", ["lacks", "lacks_on_cpu"])
def test_row_that_lacks_a_network_is_not_asked_for_it(toy, fact):
    toy.task("zoo = .*", f'{fact} = {{ wide = "too wide" }} }}')
    assert "2 points of 1 rows" in toy.measure()
    toy.task(r"too wide. \}", 'too wide" }, zoo = { wide = "" }')
    assert "zoo has wide, which the row lacks" in toy.measure(code=2)


@pytest.mark.parametrize(
    "options, message",
    [
        (("--protocol", "smal"), "unknown protocol smal; did you mean small"),
        (("--protocol", "small", "--plot"), "--protocol says its points itself"),
        (("--minutes", "5"), "--minutes is for --protocol NAME"),
        ((), "sweep measures nothing of toy_speed: it takes rows of "),
        (("toy_speed/numpy",), "sweep measures nothing of toy_speed/numpy: it takes rows of "),
    ],
)
def test_mistakes_are_one_line(toy, options, message):
    done = toy.inside.call("measure", "sweep", "--task", "toy_speed", *options)
    assert done.returncode == 2 and message in one_line(done.stderr)


@pytest.mark.parametrize(("values", "status"), [([], "ok"), ([1.0], "failed")])
def test_point_has_values_if_and_only_if_it_could_be_taken(values, status):
    with pytest.raises(ValueError, match="a point has values if, and only if, its status is ok"):
        Point(at={}, values=values, status=status)


PLACES = Protocol(
    title="Small",
    about="",
    points=[
        {"NETWORK": ["a", "b"], "BATCHSIZE": 64, "PHASE": ["forward", "gradient"]},
        {"NETWORK": "a", "BATCHSIZE": [1, 2], "PHASE": "forward"},
    ],
)


def test_networks_and_sizes_are_tables_of_their_own():
    made = protocols.layouts(PLACES, [1, 2])
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
    (layout,) = protocols.layouts(one, [1, 2], {1, 4})
    assert layout.columns == [("a", 64, 1), ("a", 64, 2), ("a", 64, 4)]
    title, table = layout.table("ms", [["x", "1", "2", "3"]])
    assert title == "**Forward: ms**" and "| `a`, batch 64, 4 threads |" in table


def then(layout: protocols.Layout, figures: dict[str, float], **at) -> list[list[str]]:
    """The lines of a benchmark with one point."""
    point = PublishedPoint(at={"NETWORK": "a", "BATCHSIZE": 64, "PHASE": "forward"} | at, device="K40", figures=figures)
    benchmark = Benchmark(source="then", year=2017, conditions="", points=[point])
    return protocols.then(layout, [benchmark], {"y": "The row y"})


def test_figure_of_then_stands_in_the_column_of_its_point_alone():
    (forward, _, by_size) = protocols.layouts(PLACES, [2])
    assert then(forward, {"x": 12.5}) == [["*x, K40, 2017*", "12.5", ""]]
    other = then(forward, {"x": 7, "y": 8}, NETWORK="b", BATCHSIZE=32)
    assert other == [["*x, K40, 2017*", "", "7 (batch 32)"], ["*The row y, K40, 2017*", "", "8 (batch 32)"]]
    assert then(by_size, {"x": 1}) == [], "another size is no column of sizes"
    for at in ({"PHASE": "gradient"}, {"devices": 2}, {"NETWORK": "c"}, {"threads": 1}, {"DATA": "real"}):
        assert then(forward, {"x": 1}, **at) == [], at


def test_published_points_are_of_networks_and_phases_of_their_task():
    """A network that is spelt otherwise would stand in no table."""
    compared = 0
    for task in catalog.load().tasks.values():
        for name in {name for protocol in task.protocols.values() for name in protocol.published}:
            for told in protocols.read_published(name).points:
                assert all(told.at[key] in task.params.CHOICES[key] for key in ("NETWORK", "PHASE")), (name, told)
                compared += 1
    assert compared > 100


def test_page_has_rates_and_ratios(tmp_path):
    known = catalog.load()
    seconds = {("vgg16", 8, "forward"): 2.0, ("vgg16", 8, "gradient"): 5.0}
    seconds |= {("alexnet", size, "forward"): 0.1 * size for size in (1, 2)}
    points = []
    for place, value in seconds.items():
        at = dict(zip(("NETWORK", "BATCHSIZE", "PHASE"), place)) | {"threads": 2, "steps": 1}
        points.append(Point(at=at, values=[value]))
    of_any_row = next(record for _, record in read_all(checkout.results) if record.task == "networks")
    of_protocol = {"preset": protocols.NAME, "changed": {protocols.NAME: "addfor"}, "title": "A row"}
    text = protocols.text(known, [of_any_row.model_copy(update=of_protocol | {"points": points})], tmp_path)
    assert re.search(r"\| A row \|[ |]* 2000\.0 \|", text), "milliseconds, of a single repeat"
    assert re.search(r"\| A row \| 100\.00 \| 100\.00 \|", text), "milliseconds an example"
    flop = 2 * known.task("networks").params.network("vgg16").MULTIPLY_ADDS * 8
    assert f" {flop / 2.0 / 1e9:.1f} |" in text and f" {3 * flop / 5.0 / 1e9:.1f} |" in text, "GFLOP/s"
    assert re.search(r"times its forward pass\*\*\n\n.*\n.*\n\| A row \|[ |]* 2\.5 \|", text)
    assert "*TensorFlow 1, GTX 1080, 2017*" in text and "420.28 (batch 64)" in text


def test_committed_gradients_take_longer_than_their_forward_pass():
    """A framework may leave out a gradient that nothing reads. The backward pass has about twice the arithmetic of the forward one."""
    compared = 0
    for file, each in read_all(checkout.results):
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
