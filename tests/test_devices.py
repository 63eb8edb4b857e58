"""Which runs go where: GPUs, processors, and what may share them."""

import pytest

from rosetta.errors import RosettaError, SlotLost
from rosetta.run import devices, machine
from rosetta.run.devices import Workers
from tests.fake_nvml import FakeGpu, FakeNvml
from tests.standin import one_line


@pytest.fixture
def box(monkeypatch) -> list[FakeGpu]:
    """Four GPUs, two models, eight processors."""
    gpus = [FakeGpu("H200"), FakeGpu("H200"), FakeGpu("A100"), FakeGpu("A100")]
    FakeNvml(monkeypatch, gpus)
    monkeypatch.setattr(machine, "processors", lambda: list(range(8)))
    return gpus


def test_every_gpu_is_a_slot_with_its_share_of_the_processors(box):
    slots = devices.timed(gpus=None, threads=None)
    assert [(slot.title, slot.machine.name, slot.processors) for slot in slots] == [
        ("GPU 0", "h200", (0, 1)),
        ("GPU 1", "h200", (2, 3)),
        ("GPU 2", "a100", (4, 5)),
        ("GPU 3", "a100", (6, 7)),
    ]
    variables = slots[2].variables()
    assert (variables["CUDA_DEVICE_ORDER"], variables["CUDA_VISIBLE_DEVICES"]) == ("PCI_BUS_ID", "2")
    assert variables["OMP_NUM_THREADS"] == variables["MKL_NUM_THREADS"] == "2"
    assert [gpu.name for gpu in slots[2].machine.gpus] == ["A100"]


def test_some_gpus_and_none(box):
    assert [slot.gpus for slot in devices.timed("2, 0", None)] == [("2",), ("0",)]
    (cpu,) = devices.timed("none", None)
    assert cpu.title == "CPU" and not cpu.on_gpu and cpu.machine.gpus == [] and cpu.processors is None
    assert cpu.variables() == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "-1"}
    assert devices.timed("1", None)[0].processors is None, "the only slot has all, unless told"
    assert devices.timed("1", 3)[0].processors == (0, 1, 2)
    assert devices.timed("none", 1)[0].threads == 1


def test_a_slot_of_several_gpus(box):
    first, second = devices.timed(None, None, per_run=2)
    assert (first.title, first.machine.name, first.processors) == ("GPUs 0,1", "2x-h200", (0, 1, 2, 3))
    assert first.variables()["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert [gpu.name for gpu in second.machine.gpus] == ["A100", "A100"] and second.machine.name == "2x-a100"
    (mixed,) = devices.timed("0,2", 3, per_run=2)
    assert (mixed.machine.name, mixed.threads) == ("h200-a100", 3)
    box[3].lost = True
    assert first.lost() is None and "GPU 3 does not answer" in second.lost()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: devices.timed("7", None), "there is no GPU 7: this machine shows 0, 1, 2, 3"),
        (lambda: devices.timed(",", None), "--gpus takes numbers"),
        (lambda: devices.timed(None, 3), "--threads 3 for each of 4 runs at a time needs 12 processors; there are 8"),
        (lambda: devices.timed("0", 9), "--threads 9 needs 9 processors; there are 8"),
        (
            lambda: devices.timed(None, None, 3),
            "--gpus-per-run 3 does not divide the 4 GPUs: choose others with --gpus",
        ),
        (lambda: devices.timed("none", None, 2), "--gpus-per-run 2 does not divide the 0 GPUs"),
        (lambda: devices.shared(None, 9), "--jobs 9 needs 9 processors; there are 8"),
    ],
)
def test_what_is_not_there_is_one_line(box, call, message, monkeypatch):
    with pytest.raises(RosettaError) as caught:
        call()
    assert message in one_line(str(caught.value))
    FakeNvml(monkeypatch, [])
    with pytest.raises(RosettaError, match="there is no GPU 0: this machine shows none"):
        devices.timed("0", None)


def test_untimed_work_shares(box):
    assert [slot.gpus for slot in devices.shared(None, None)] == [("0",), ("1",), ("2",), ("3",)]
    assert [slot.gpus for slot in devices.shared("0,1", 4)] == [("0",), ("1",)] * 2
    assert [slot.alone for slot in devices.shared("0,1", 3)] == [False, True, False], "two share the first"
    assert [slot.processors for slot in devices.shared("none", 4)] == [(0, 1), (2, 3), (4, 5), (6, 7)]


def test_a_lost_gpu_gets_no_more_runs(box):
    workers = Workers(devices.timed("0,1", None))
    box[0].lost = True
    assert list(workers.each(lambda _: _title(workers), range(6))) == ["GPU 1"] * 6
    box[1].lost = True
    with pytest.raises(SlotLost, match="GPU 1 does not answer: .*lost"):
        _title(workers)


def test_a_run_waits_for_a_slot_that_fits_it(box):
    """On a box with two models of cards, each row goes where a build computes; where none does it is told on any."""
    workers = Workers(devices.timed(None, None))
    wanted = ["h200", "a100", "a100", "a100", "h200", "k80"] * 3

    def place(name: str) -> tuple[str, str]:
        with workers.share(lambda slot: slot.machine.name == name) as slot:
            return name, slot.machine.name

    placed = list(workers.each(place, wanted))
    assert len(placed) == len(wanted) and all(name == where for name, where in placed if name != "k80")
    for gpu in box[:2]:
        gpu.lost = True
    assert [where for _, where in workers.each(place, ["h200"] * 3)] == ["a100"] * 3, "the fitting ones are lost"


def _title(workers: Workers) -> str:
    with workers.share() as slot:
        return slot.title
