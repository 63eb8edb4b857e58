"""NVIDIA's management library as it answers on a box with GPUs, played back to ``pynvml``: tests run without one."""

import os
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pynvml

GIB = 2**30
CARDS = Path(__file__).resolve().parent.parent / "environments" / "cards.toml"


class FakeGpu:
    """One GPU's answers. ``energy`` in millijoules and ``power`` in milliwatts may be None: not supported, as on a K80."""

    def __init__(self, name="Tesla V0", energy=None, power=None, capability=(7, 0)):
        self.name, self.energy, self.power, self.capability = name, energy, power, capability
        self.uuid = f"GPU-{name}"
        self.used, self.total = 1 * GIB, 16 * GIB
        self.utilisation, self.clock, self.throttle = 50, 1380, 0
        self.lost = False  # it has fallen off the bus
        self.grows = 0  # bytes more in use at each look, as if a run were at work


class FakeNvml:
    """Takes the place of pynvml's functions; handles are the GPUs themselves."""

    def __init__(self, monkeypatch, gpus: list[FakeGpu], driver: str = "580.1"):
        self.gpus, self.driver = gpus, driver
        for name in dir(self):
            if name.startswith("nvml"):
                monkeypatch.setattr(pynvml, name, getattr(self, name))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.delenv("ROSETTA_MACHINE", raising=False)

    def _alive(self, gpu: FakeGpu) -> FakeGpu:
        if gpu.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return gpu

    def _supported(self, value):
        if value is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value

    def nvmlInit(self):
        pass

    def nvmlShutdown(self):
        pass

    def nvmlSystemGetDriverVersion(self):
        return self.driver

    def nvmlSystemGetCudaDriverVersion(self):
        return 13020

    def nvmlDeviceGetCount(self):
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return self.gpus[-1]

    def nvmlDeviceGetName(self, gpu):
        return gpu.name

    def nvmlDeviceGetCudaComputeCapability(self, gpu):
        return list(gpu.capability)

    def nvmlDeviceGetUUID(self, gpu):
        return gpu.uuid

    def nvmlDeviceGetMemoryInfo(self, gpu):
        gpu.used += gpu.grows
        return SimpleNamespace(total=self._alive(gpu).total, used=gpu.used)

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu):
        return self._supported(self._alive(gpu).energy)

    def nvmlDeviceGetPowerUsage(self, gpu):
        return self._supported(self._alive(gpu).power)

    def nvmlDeviceGetUtilizationRates(self, gpu):
        return SimpleNamespace(gpu=self._alive(gpu).utilisation)

    def nvmlDeviceGetClockInfo(self, gpu, _):
        return self._alive(gpu).clock

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, gpu):
        return self._alive(gpu).throttle


class _Plain:
    """Sets attributes for good, where there is no pytest."""

    setattr = staticmethod(setattr)

    @staticmethod
    def delenv(name, raising):
        pass


def play_two_gpus(lost: str) -> None:
    """For a whole process: two GPUs, the first of which is lost once the file ``lost`` is there."""
    gpus = [FakeGpu("Tesla V100", energy=0), FakeGpu("Tesla V100", energy=0)]
    gpus[1].grows = GIB
    played = FakeNvml(_Plain, gpus)

    def alive(gpu):
        gpu.lost = gpu is gpus[0] and os.path.exists(lost)
        return FakeNvml._alive(played, gpu)

    played._alive = alive


def drivers(name: str) -> list[str]:
    """Those that a box with a card of environments/cards.toml may have; a part of its name is enough."""
    return _card(name)["drivers"]


def _card(name: str) -> dict:
    """Read without rosetta: a process that plays may have another one."""
    known = tomllib.loads(CARDS.read_text(encoding="utf-8"))["cards"]
    return next(card for card in known if name in card["name"])


def cards(*names: str) -> list[FakeGpu]:
    """Cards of environments/cards.toml, at work."""
    found = []
    for card in map(_card, names):
        gpu = FakeGpu(card["name"], energy=0, capability=tuple(map(int, card["capability"].split("."))))
        gpu.total, gpu.grows = card["memory_gib"] * GIB, GIB
        found.append(gpu)
    return found


def play(*names: str, driver: str = "580.95.05") -> None:
    """For a whole process: these cards."""
    FakeNvml(_Plain, cards(*names), driver)
