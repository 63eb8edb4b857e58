"""``sweep --protocol``: the points of a published benchmark, as runs of each row's notebook."""

import json
import re

import pytest

from rosetta.measure import protocols
from rosetta.records import Point
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
COMMAND = ("sweep", "--task", "toy_speed", "--protocol", "small", "--threads", "1")


@pytest.fixture
def toy(inside):
    """A checkout whose toy of kind speed has a protocol."""
    inside.catalog(inside.entry("other"))
    toys.write(inside.root)
    file = inside.root / "notebooks" / "toy_speed" / "task.toml"
    file.write_text(file.read_text().replace("[about]", PROTOCOL + "\n[about]"))
    return inside


def points(toy) -> dict:
    """What the newest session kept: (network, batch, phase) -> the point."""
    *_, file = sorted(toy.out.glob("*/toy_speed/protocol,protocol=small-synthetic/numpy.*.json"))
    found = json.loads(file.read_text())["points"]
    return {(point["at"]["NETWORK"], point["at"]["BATCHSIZE"], point["at"]["PHASE"]): point for point in found}


def test_every_point_is_measured_once(toy):
    first = toy.call(*COMMAND, "--out", str(toy.out))
    assert first.returncode == 0, first.stderr
    assert "Small (2016): 5 points of 1 rows, 0 of them are there" in first.stdout
    assert (
        len(re.findall(r"^\[\d/5\] toy_speed/numpy: threads 1, network .*: [\d.]+ ± [\d.]+ ms$", first.stdout, re.M))
        == 5
    )
    kept = points(toy)
    assert set(kept) == {(name, size, "step") for name in ("narrow", "wide") for size in (2, 4)} | {
        ("wide", 2, "forward")
    }
    assert all(len(point["values"]) == 2 and point["at"]["steps"] == 3 for point in kept.values())
    again = toy.call(*COMMAND, "--out", str(toy.out))
    assert again.returncode == 0 and "0 points to measure" in again.stdout
    page = (toy.out / "benchmarks.md").read_text()
    assert (
        "## Small (2016)" in page
        and "|  | `narrow`, batch 2 | `narrow`, batch 4 | `wide`, batch 2 | `wide`, batch 4 |" in page
    )
    assert "**Full step, 1 thread: ms**" in page and "**Forward, 1 thread: ms**" in page

    toys.notebook(toy.root, "toy_speed", "np.maximum(", "np.maximum( ")
    changed = toy.call(*COMMAND, "--out", str(toy.out))
    assert "5 points to measure" in changed.stdout, "the points of another notebook do not count"


def test_a_record_has_points_of_one_notebook(toy):
    assert toy.call(*COMMAND, "--out", str(toy.out)).returncode == 0
    assert len(points(toy)) == 5
    toys.notebook(toy.root, "toy_speed", "np.maximum(", "np.maximum( ")
    file = toy.root / "notebooks" / "toy_speed" / "task.toml"
    own = 'points_on_cpu = [{ NETWORK = "wide", BATCHSIZE = 2, PHASE = "forward" }]'
    whole = file.read_text()
    file.write_text(whole.replace("\n[about]", f"{own}\n\n[about]", 1))
    assert "1 points to measure" in toy.call(*COMMAND, "--out", str(toy.out)).stdout
    assert set(points(toy)) == {("wide", 2, "forward")}
    file.write_text(whole)
    assert "5 points of 1 rows, 1 of them are there" in toy.call(*COMMAND, "--out", str(toy.out)).stdout


def test_points_of_another_version_are_not_there(toy):
    """After a re-lock a protocol begins anew, and the table shows the points of one version alone."""
    assert toy.call(*COMMAND, "--out", str(toy.out)).returncode == 0
    (file,) = toy.out.glob("*/toy_speed/protocol,protocol=small-synthetic/numpy*.json")
    earlier = json.loads(file.read_text())
    earlier["versions"]["numpy"] = "0.1"
    earlier["points"] = [point | {"values": [99.0, 99.0]} for point in earlier["points"]]
    file.write_text(json.dumps(earlier))
    again = toy.call(*COMMAND, "--out", str(toy.out))
    assert "5 points to measure" in again.stdout, again.stderr
    assert json.loads(file.read_text()) == earlier, "a session stays as it was written"
    assert "99000.0" not in (toy.out / "benchmarks.md").read_text()


def test_budget_takes_the_cheapest_and_names_the_others(toy):
    file = toy.root / "notebooks" / "toy_speed" / "task.toml"
    file.write_text(re.sub(r"cost = \{[^}]*\}", "cost = { start_s = 50, item_ms = 1 }", file.read_text()))
    done = toy.call(*COMMAND, "--minutes", "0.5", "--out", str(toy.out))
    assert done.returncode == 0, done.stderr
    assert "30 s suffice for about 0 of them; call it again, and it goes on" in done.stdout
    left = re.findall(r"^left out, about 50 s: toy_speed/numpy: (.*)$", done.stdout, re.M)
    assert len(left) == 5 and left[0] == "threads 1, network wide, batchsize 2, phase forward"


@pytest.mark.parametrize(
    "mistake, status, code",
    [
        ('raise MemoryError("no memory for it")', "out of memory", 0),
        ('raise ValueError("no such layer")', "failed", 1),
    ],
)
def test_point_that_cannot_be_is_kept_with_its_reason(toy, mistake, status, code):
    toys.notebook(toy.root, "toy_speed", "run = forward", f'if NETWORK == "wide":\n    {mistake}\nrun = forward')
    done = toy.call(*COMMAND, "--out", str(toy.out))
    assert done.returncode == code
    kept = points(toy)
    assert {name: point["status"] for (name, *_), point in kept.items()} == {"narrow": "ok", "wide": status}
    assert not any(point["values"] for (name, *_), point in kept.items() if name == "wide")
    assert re.search(rf"\| NumPy \| .*\| {status} \| {status} \|", (toy.out / "benchmarks.md").read_text())
    again = toy.call(*COMMAND, "--out", str(toy.out))
    assert f"{0 if code == 0 else 3} points to measure" in again.stdout, "what failed is tried again"


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
    file = toy.root / "notebooks" / "toy_speed" / "task.toml"
    own = 'points_on_cpu = [{ NETWORK = "wide", BATCHSIZE = 2, PHASE = "forward" }]'
    file.write_text(file.read_text().replace("\n[about]", f"{own}\n\n[about]", 1))
    done = toy.call(*COMMAND, "--out", str(toy.out))
    assert done.returncode == 0 and "1 points of 1 rows" in done.stdout
    assert set(points(toy)) == {("wide", 2, "forward")}
    page = (toy.out / "benchmarks.md").read_text()
    assert "| `wide`, batch 2 |" in page and "narrow" not in page


def test_row_that_gains_nothing_without_a_gpu_is_left_out_unless_it_is_named(toy):
    file = toy.root / "notebooks" / "toy_speed" / "task.toml"
    file.write_text(file.read_text().replace("[rows]\nnumpy = {", '[rows]\nnumpy = { gpu_only = "no gain",'))
    none = toy.call(*COMMAND, "--out", str(toy.out))
    assert none.returncode == 2 and one_line(none.stderr).endswith(
        "no row gains anything without a GPU: name those to be measured"
    )
    assert "5 points of 1 rows" in toy.call(*COMMAND, "numpy", "--out", str(toy.out)).stdout


@pytest.mark.parametrize("fact", ["lacks", "lacks_on_cpu"])
def test_row_that_lacks_a_network_is_not_asked_for_it(toy, fact):
    file = toy.root / "notebooks" / "toy_speed" / "task.toml"
    before, after = file.read_text().split("zoo = ")
    file.write_text(f'{before}{fact} = {{ wide = "too wide" }} }}')
    assert "2 points of 1 rows" in toy.call(*COMMAND, "--out", str(toy.out)).stdout
    file.write_text(f'{before}{fact} = {{ wide = "too wide" }}, zoo = {after}')
    done = toy.call(*COMMAND, "--out", str(toy.out))
    assert done.returncode == 2 and "zoo has wide, which the row lacks" in one_line(done.stderr)


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
    done = toy.call("sweep", "--task", "toy_speed", *options)
    assert done.returncode == 2 and message in one_line(done.stderr)


@pytest.mark.parametrize(("values", "status"), [([], "ok"), ([1.0], "failed")])
def test_point_has_values_if_and_only_if_it_could_be_taken(values, status):
    with pytest.raises(ValueError, match="a point has values if, and only if, its status is ok"):
        Point(at={}, values=values, status=status)
