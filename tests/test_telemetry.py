"""What the runner measures of a run from outside; GPUs through a recorded stand-in for NVML."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from rosetta.records import Metrics
from rosetta.run import telemetry
from rosetta.run.telemetry import RunMeter
from tests.fake_nvml import GIB, FakeGpu, FakeNvml

SLEEPER = "import subprocess, sys; subprocess.run([sys.executable, '-c', %r])"


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(telemetry, "INTERVAL_S", 0.05)


def measured(meter: RunMeter):
    metrics = Metrics()
    return metrics, meter.fill(metrics)


def test_memory_and_processor_time_of_a_whole_tree():
    """Of a process whose own child takes them."""
    code = "import time; x = bytearray(200 * 2**20); sum(range(10**7)); time.sleep(1.5)"
    with subprocess.Popen([sys.executable, "-c", SLEEPER % code]) as child, RunMeter(child.pid, gpus=()) as meter:
        child.wait()
    metrics, told = measured(meter)
    assert metrics.peak_rss > 200 * 2**20
    assert 0.05 < metrics.cpu_s < 5
    assert told is None and metrics.peak_gpu_memory is None and metrics.energy_j is None


def test_energy_of_the_counter(monkeypatch):
    gpu = FakeGpu(energy=5_000_000, power=300_000)
    FakeNvml(monkeypatch, [FakeGpu("other"), gpu])
    with RunMeter(os.getpid(), gpus=["1"]) as meter:
        gpu.used, gpu.energy = 3 * GIB, 5_030_000  # the run starts: 30 J
        meter.mark()
        gpu.energy += 50_000
        meter.mark()
        gpu.energy += 50_000
        gpu.throttle = telemetry.THROTTLING["power"]
        meter.mark()
        gpu.energy += 7_000  # the test
    metrics, told = measured(meter)
    assert metrics.energy_j == 137.0
    assert meter.marked_j == 100.0  # without start and test
    assert metrics.peak_gpu_memory == 2 * GIB
    assert told.energy_from == "counter" and told.power_w == 300.0
    assert (told.utilisation, told.clock_mhz, told.throttled, told.error) == (0.5, 1380, ["power"], None)


def test_power_is_added_up_where_there_is_no_counter(monkeypatch):
    """As on a K80: the mean of two looks, over the time between them."""
    gpu, clock = FakeGpu(power=100_000), iter((0.0, 2.0, 5.0))
    FakeNvml(monkeypatch, [gpu])
    monkeypatch.setattr(telemetry, "INTERVAL_S", 1000.0)  # it looks when it is told to, and at the end
    monkeypatch.setattr(telemetry, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with RunMeter(os.getpid(), gpus=["0"]) as meter:
        gpu.power = 300_000
        meter.mark()
        gpu.power = 100_000
    metrics, told = measured(meter)
    assert (told.energy_from, told.power_w, metrics.energy_j) == ("power", 200.0, 400.0 + 600.0)


@pytest.mark.parametrize("when, energy_j", [("before", None), ("meanwhile", 30.0)])
def test_a_gpu_that_is_lost_leaves_what_was_measured_before(monkeypatch, when, energy_j):
    """One of two ends the sampling of both."""
    first, second = FakeGpu(energy=0), FakeGpu(energy=0)
    FakeNvml(monkeypatch, [first, second])
    second.lost = when == "before"
    with RunMeter(os.getpid(), gpus=["0", "1"]) as meter:
        first.energy, second.energy = 20_000, 10_000
        meter.mark()
        second.lost = True
        meter.mark()
        first.energy = 90_000
        meter.mark()
    metrics, told = measured(meter)
    assert metrics.energy_j == energy_j and meter.marked_j is None and "lost" in told.error.lower()


def test_several_gpus_are_added_up(monkeypatch):
    """Energy, power and memory are sums; use and clocks are of all."""
    first, second = FakeGpu(energy=0, power=300_000), FakeGpu(energy=0, power=200_000)
    FakeNvml(monkeypatch, [FakeGpu("other"), first, second])
    with RunMeter(os.getpid(), gpus=["1", "2"]) as meter:
        second.utilisation, second.clock, second.throttle = 100, 1380, telemetry.THROTTLING["temperature"]
        first.used, second.used = 3 * GIB, 2 * GIB
        meter.mark()
        first.energy, second.energy = 60_000, 40_000
        meter.mark()
    metrics, told = measured(meter)
    assert (metrics.energy_j, meter.marked_j, metrics.peak_gpu_memory) == (100.0, 100.0, 3 * GIB)
    assert (told.energy_from, told.power_w, told.utilisation) == ("counter", 500.0, 0.75)
    assert (told.clock_mhz, told.throttled) == (1380, ["temperature"])


@pytest.mark.parametrize(
    "gpus, source",
    [
        ([{}], None),
        ([{"energy": 0, "power": 300_000}, {}], None),
        ([{"energy": 0, "power": 300_000}, {"power": 100_000}], "power"),
    ],
)
def test_energy_needs_every_gpu_to_tell(monkeypatch, gpus, source):
    FakeNvml(monkeypatch, [FakeGpu(**facts) for facts in gpus])
    with RunMeter(os.getpid(), gpus=[*map(str, range(len(gpus)))]) as meter:
        meter.mark()
        meter.mark()
    metrics, told = measured(meter)
    assert told.energy_from == source and metrics.peak_gpu_memory == 0
    for figure in (metrics.energy_j, meter.marked_j, told.power_w):
        assert (figure is None) == (source is None)


@pytest.mark.parametrize(
    "used, share",
    [
        ([[0.9, 0.4, 0.3, 1.0]], 0.3),  # the first may be of the run before, the last is its own
        ([[0.0, 0.0, 0.0, 1.0], [0.5, 0.6, 0.5]], 0.5),
        ([[0.9, 0.9]], None),
        ([], None),
    ],
)
def test_what_others_computed_on_the_gpus_before_the_run(used, share):
    meter = RunMeter(1, gpus=())
    meter.meters = [SimpleNamespace(used=samples) for samples in used]
    assert meter.busy_before == share
