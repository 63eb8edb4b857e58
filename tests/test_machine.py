"""What is told about a machine; GPUs through a stand-in for NVML, since tests run without one."""

import pynvml
import pytest

from rosetta.records import Gpu
from rosetta.run import machine
from tests.fake_nvml import FakeGpu, FakeNvml


@pytest.fixture
def two_gpus(monkeypatch) -> list[FakeGpu]:
    gpus = [FakeGpu("Tesla V0"), FakeGpu("Tesla V1", capability=(7, 5))]
    FakeNvml(monkeypatch, gpus)
    return gpus


def test_gpus_are_described_and_name_the_machine(two_gpus, monkeypatch):
    found = machine.devices()
    assert [(device.id, device.gpu) for device in found] == [
        ("0", Gpu(name="Tesla V0", memory=16 * 2**30, driver="580.1", cuda="13.2", capability="7.0")),
        ("1", Gpu(name="Tesla V1", memory=16 * 2**30, driver="580.1", cuda="13.2", capability="7.5")),
    ]
    here = machine.describe(found[1:])
    assert (here.name, here.gpus) == ("tesla-v1", [found[1].gpu])
    assert machine.describe().gpus == []
    assert machine.describe(found).name == "tesla-v0-tesla-v1"
    two_gpus[1].name = "Tesla V0"
    assert machine.describe(machine.devices()).name == "2x-tesla-v0"
    monkeypatch.setenv("ROSETTA_MACHINE", "Lab box #3")
    assert machine.describe().name == "lab-box-3", "the user's wins"


@pytest.mark.parametrize(
    "visible, names",
    [("1", ["Tesla V1"]), ("1,0", ["Tesla V1", "Tesla V0"]), ("GPU-abc", ["Tesla V1"]), ("", []), ("-1", [])],
)
def test_only_visible_gpus_count(two_gpus, monkeypatch, visible, names):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [device.gpu.name for device in machine.devices()] == names


def test_no_driver_is_no_gpu(monkeypatch):
    def fail():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    assert machine.devices() == []


@pytest.mark.parametrize(
    "name, expected",
    [
        ("AMD EPYC", "AMD EPYC (family 25, model 17)"),
        ("AMD EPYC 9654 96-Core Processor", "AMD EPYC 9654 96-Core Processor"),
    ],
)
def test_a_processor_without_a_number_in_its_name_has_its_model(monkeypatch, name, expected):
    fields = {"model name": name, "cpu family": "25", "model": "17"}
    monkeypatch.setattr(machine, "cpuinfo", fields.__getitem__)
    assert machine.cpu() == expected
