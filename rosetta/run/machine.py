"""What this machine is, read from it: processor, memory, system, and GPUs through NVML; what is known of NVIDIA's cards."""

import os
import platform
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import psutil
import pynvml
from pydantic import Field

from rosetta import files
from rosetta.files import Count, Strict
from rosetta.paths import checkout
from rosetta.records import Gpu, Machine

NAME_VARIABLE = "ROSETTA_MACHINE"


@dataclass(frozen=True)
class Device:
    """A GPU that a child process would see; ``id`` as CUDA_VISIBLE_DEVICES takes it: its number or its UUID."""

    id: str
    gpu: Gpu


def describe(devices: Sequence[Device] = ()) -> Machine:
    """This machine, as a run on the given GPUs, or without one, sees it.

    Its name is made of the models of these GPUs or of the processor, unless ROSETTA_MACHINE gives one: boxes with one and
    with eight GPUs of a model are the same machine to runs on one of them.
    """
    processor, cores = cpu(), len(processors())
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.platform(terse=True)
    models = Counter(device.gpu.name for device in devices)
    gpus = " ".join(f"{number}x {model}" if number > 1 else model for model, number in models.items())
    name = os.environ.get(NAME_VARIABLE) or gpus or f"{processor} {cores} cores"
    return Machine(
        name=re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "machine",  # of folders
        cpu=processor,
        cores=cores,
        memory=psutil.virtual_memory().total,
        os=f"{system}, kernel {platform.release()}",
        gpus=[device.gpu for device in devices],
    )


def cpu() -> str:
    """The processor's model name; with the numbers of family and model where it has none: a virtual machine says "AMD EPYC"."""
    name = cpuinfo("model name") or platform.processor() or platform.machine()
    family, model = cpuinfo("cpu family"), cpuinfo("model")
    return name if re.search(r"\d", name) or not model else f"{name} (family {family}, model {model})"


@cache
def cpuinfo(field: str) -> str:
    """What Linux says of the first processor: ``vendor_id`` is "AuthenticAMD" or "GenuineIntel"; empty where it does not."""
    try:
        line = re.search(rf"^{field}\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        line = None
    return line[1].strip() if line else ""


def processors() -> list[int]:
    """The numbers of the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def nvml():
    """NVIDIA's management library, open: yields whether it is there."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


def devices() -> list[Device]:
    """The NVIDIA GPUs that a child process would see and that answer, in order; none where there is no driver."""
    answering: list[Device] = []
    with nvml() as available:
        if not available:
            return []
        driver, number = pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlSystemGetCudaDriverVersion()
        about = {"driver": driver, "cuda": f"{number // 1000}.{number % 1000 // 10}"}
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = map(str, range(pynvml.nvmlDeviceGetCount())) if visible is None else map(str.strip, visible.split(","))
        for name in names:
            if name in ("", "-1"):
                continue
            with suppress(pynvml.NVMLError):  # it has fallen off the bus: nothing can run there
                gpu = handle(name)
                memory = pynvml.nvmlDeviceGetMemoryInfo(gpu).total
                capability = "{}.{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(gpu))
                model = pynvml.nvmlDeviceGetName(gpu)
                answering.append(Device(name, Gpu(name=model, memory=memory, capability=capability, **about)))
    return answering


def cards() -> list[Gpu]:
    """One GPU of each model that is there."""
    return list({device.gpu.name: device.gpu for device in devices()}.values())


def handle(name: str):
    """NVML's handle of the GPU that CUDA_VISIBLE_DEVICES calls so; call with NVML open."""
    return pynvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else pynvml.nvmlDeviceGetHandleByUUID(name)


def uuid(name: str) -> str:
    """The GPU's own identity, the same in every process and container that sees it; call it for a GPU that answers."""
    with nvml():
        return str(pynvml.nvmlDeviceGetUUID(handle(name)))


def trouble(name: str) -> str | None:
    """What NVML says when a GPU is asked for its memory and does not answer; None when it does."""
    with nvml():
        try:
            pynvml.nvmlDeviceGetMemoryInfo(handle(name))
        except pynvml.NVMLError as error:
            return f"GPU {name} does not answer: {error}"
    return None


class Card(Strict):
    """What is known of a model."""

    name: str
    capability: str
    memory_gib: Count
    peak_fp32: Annotated[float, Field(gt=0, le=1e15)]  # 10^12 operations a second, without tensor cores
    drivers: list[str]  # that a box with it may have

    def gpus(self) -> list[Gpu]:
        """As NVML would tell of it, one with each driver."""
        about = {"name": self.name, "memory": self.memory_gib * 2**30, "cuda": "", "capability": self.capability}
        return [Gpu(driver=driver, **about) for driver in self.drivers]


class Cards(Strict):
    """The file."""

    cards: list[Card]


@cache
def card_facts() -> dict[str, Card]:
    """What is known of NVIDIA's cards, by name; none where the file is not there, for a batch must not end for the want of it."""
    file = checkout.environments / "cards.toml"
    return {card.name: card for card in files.load(Cards, file, missing=Cards(cards=[])).cards}
