"""What this machine is, read from it: processor, memory, system, and GPUs through NVML."""

import os
import platform
import re
from contextlib import contextmanager
from pathlib import Path

import psutil
import pynvml

from rosetta.records import Gpu, Machine

NAME_VARIABLE = "ROSETTA_MACHINE"


def describe() -> Machine:
    """This machine; its name is made of the GPU's or the processor's model unless ROSETTA_MACHINE gives one."""
    processor, cores, found = cpu(), len(processors()), gpus()
    automatic = (
        f"{len(found)}x {found[0].name}" if len(found) > 1 else found[0].name if found else f"{processor} {cores} cores"
    )
    name = os.environ.get(NAME_VARIABLE) or automatic
    return Machine(
        name=slug(name), cpu=processor, cores=cores, memory=psutil.virtual_memory().total, os=system(), gpus=found
    )


def slug(text: str) -> str:
    """A text as a folder name: lower case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "machine"


def cpu() -> str:
    """The processor's model name."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def processors() -> list[int]:
    """The numbers of the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def system() -> str:
    """The operating system with its version, without the host's name."""
    try:
        pretty = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        pretty = platform.platform(terse=True)
    return f"{pretty}, kernel {platform.release()}"


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


def gpus() -> list[Gpu]:
    """The NVIDIA GPUs that a child process would see, in order; none where there is no driver."""
    with nvml() as there:
        if not there:
            return []
        driver, number = pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlSystemGetCudaDriverVersion()
        cuda = f"{number // 1000}.{number % 1000 // 10}"
        return [
            Gpu(
                name=pynvml.nvmlDeviceGetName(handle),
                memory=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
                driver=driver,
                cuda=cuda,
            )
            for handle in visible_handles()
        ]


def visible_handles() -> list:
    """NVML's handles of the GPUs that CUDA_VISIBLE_DEVICES leaves; call with NVML open."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    chosen = [part.strip() for part in visible.split(",") if part.strip() and part.strip() != "-1"]
    return [
        pynvml.nvmlDeviceGetHandleByIndex(int(part)) if part.isdigit() else pynvml.nvmlDeviceGetHandleByUUID(part)
        for part in chosen
    ]
