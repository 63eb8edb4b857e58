"""NVIDIA's management library as it answers on a box with GPUs, played back to ``pynvml``: tests run without one."""

import os
from types import SimpleNamespace

import pynvml

GIB = 2**30


class FakeGpu:
    """One GPU's answers. ``energy`` in millijoules and ``power`` in milliwatts may be None: not supported, as on a K80."""

    def __init__(self, name="Tesla V0", energy=None, power=None, capability=(7, 0)):
        self.name, self.energy, self.power, self.capability = name, energy, power, capability
        self.uuid = f"GPU-{name}"
        self.used, self.total = 1 * GIB, 16 * GIB
        self.utilisation, self.clock, self.throttle = 50, 1380, 0
        self.lost = False  # it has fallen off the bus


class FakeNvml:
    """Takes the place of pynvml's functions; handles are the GPUs themselves."""

    def __init__(self, monkeypatch, gpus: list[FakeGpu]):
        self.gpus = gpus
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
        return "580.1"

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
    played = FakeNvml(_Plain, gpus)

    def alive(gpu):
        gpu.lost = gpu is gpus[0] and os.path.exists(lost)
        return FakeNvml._alive(played, gpu)

    played._alive = alive
