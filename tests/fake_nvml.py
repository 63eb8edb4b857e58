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
        answers = {
            "Init": lambda: None,
            "Shutdown": lambda: None,
            "SystemGetDriverVersion": lambda: driver,
            "SystemGetCudaDriverVersion": lambda: 13020,
            "DeviceGetCount": lambda: len(gpus),
            "DeviceGetHandleByIndex": lambda index: gpus[index],
            "DeviceGetHandleByUUID": lambda uuid: gpus[-1],
            "DeviceGetName": lambda gpu: gpu.name,
            "DeviceGetCudaComputeCapability": lambda gpu: list(gpu.capability),
            "DeviceGetUUID": lambda gpu: gpu.uuid,
            "DeviceGetMemoryInfo": self._memory,
            "DeviceGetTotalEnergyConsumption": lambda gpu: self._supported(self._alive(gpu).energy),
            "DeviceGetPowerUsage": lambda gpu: self._supported(self._alive(gpu).power),
            "DeviceGetUtilizationRates": lambda gpu: SimpleNamespace(gpu=self._alive(gpu).utilisation),
            "DeviceGetClockInfo": lambda gpu, _: self._alive(gpu).clock,
            "DeviceGetCurrentClocksThrottleReasons": lambda gpu: self._alive(gpu).throttle,
        }
        for name, answer in answers.items():
            monkeypatch.setattr(pynvml, f"nvml{name}", answer)
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

    def _memory(self, gpu: FakeGpu) -> SimpleNamespace:
        gpu.used += gpu.grows
        return SimpleNamespace(total=self._alive(gpu).total, used=gpu.used)


class _Plain:
    """Sets attributes for good, where there is no pytest."""

    setattr = staticmethod(setattr)

    @staticmethod
    def delenv(name, raising):
        pass


def play_two_gpus(lost: str) -> None:
    """For a whole process: two GPUs, of which one is lost once the file ``lost`` has its number."""
    gpus = [FakeGpu("Tesla V100", energy=0), FakeGpu("Tesla V100", energy=0)]
    gpus[0].grows = gpus[1].grows = GIB  # either may be at work
    played = FakeNvml(_Plain, gpus)

    def alive(gpu):
        gpu.lost = os.path.exists(lost) and Path(lost).read_text() == str(gpus.index(gpu))
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
