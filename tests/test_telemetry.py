"""What the runner measures of a run from outside; GPUs through a recorded stand-in for NVML."""

import subprocess
import sys
import time

import pytest

from rosetta.records import Metrics
from rosetta.run import telemetry
from rosetta.run.telemetry import RunMeter
from tests.fake_nvml import GIB, FakeGpu, FakeNvml

SLEEPER = "import subprocess, sys; subprocess.run([sys.executable, '-c', %r])"


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(telemetry, "INTERVAL_S", 0.05)


@pytest.fixture
def child():
    """A process whose own child takes memory and processor time."""
    code = "import time; x = bytearray(200 * 2**20); sum(range(10**7)); time.sleep(1.5)"
    process = subprocess.Popen([sys.executable, "-c", SLEEPER % code])
    yield process
    process.kill()
    process.wait()


def measured(meter: RunMeter, n_train=1000):
    metrics = Metrics()
    return metrics, meter.fill(metrics, n_train)


def test_memory_and_processor_time_of_a_whole_tree(child):
    with RunMeter(child.pid, gpu=None) as meter:
        child.wait()
    metrics, told = measured(meter)
    assert metrics.peak_rss > 200 * 2**20
    assert 0.05 < metrics.cpu_s < 5
    assert told is None and metrics.peak_gpu_memory is None and metrics.energy_j is None


def test_energy_of_the_counter(child, monkeypatch):
    gpu = FakeGpu(energy=5_000_000, power=300_000)
    FakeNvml(monkeypatch, [FakeGpu("other"), gpu])
    with RunMeter(child.pid, gpu="1") as meter:
        gpu.used, gpu.energy = 3 * GIB, 5_030_000  # the run starts: 30 J
        meter.epoch()
        gpu.energy += 50_000
        meter.epoch()
        gpu.energy += 50_000
        gpu.throttle = telemetry.THROTTLING["power"]
        meter.epoch()
        gpu.energy += 7_000  # the test
    metrics, told = measured(meter)
    assert metrics.energy_j == 137.0
    assert metrics.images_per_j == 20.0  # two epochs of 1,000 images in 100 J
    assert metrics.peak_gpu_memory == 2 * GIB
    assert told.energy_from == "counter" and told.power_w == 300.0
    assert (told.utilisation, told.clock_mhz, told.throttled, told.error) == (0.5, 1380, ["power"], None)


def test_power_is_added_up_where_there_is_no_counter(child, monkeypatch):
    """As on a K80."""
    FakeNvml(monkeypatch, [FakeGpu(power=100_000)])
    started = time.monotonic()
    with RunMeter(child.pid, gpu="0") as meter:
        time.sleep(0.5)
    metrics, told = measured(meter)
    assert told.energy_from == "power"
    assert metrics.energy_j == pytest.approx(100 * (time.monotonic() - started), rel=0.2)


def test_a_gpu_that_tells_nothing_of_energy(child, monkeypatch):
    FakeNvml(monkeypatch, [FakeGpu()])
    with RunMeter(child.pid, gpu="0") as meter:
        meter.epoch()
        meter.epoch()
    metrics, told = measured(meter)
    assert metrics.energy_j is None and metrics.images_per_j is None
    assert told.energy_from is None and told.power_w is None and metrics.peak_gpu_memory == 0


def test_a_gpu_that_is_lost_leaves_what_was_measured_before(child, monkeypatch):
    gpu = FakeGpu(energy=0)
    FakeNvml(monkeypatch, [gpu])
    with RunMeter(child.pid, gpu="0") as meter:
        gpu.energy = 30_000
        meter.epoch()
        gpu.lost = True
        meter.epoch()
    metrics, told = measured(meter)
    assert metrics.energy_j == 30.0 and "lost" in told.error.lower()


def test_a_gpu_that_is_lost_before_the_run(child, monkeypatch):
    gpu = FakeGpu()
    gpu.lost = True
    FakeNvml(monkeypatch, [gpu])
    with RunMeter(child.pid, gpu="0") as meter:
        meter.epoch()
    metrics, told = measured(meter)
    assert "lost" in told.error.lower() and metrics.energy_j is None
