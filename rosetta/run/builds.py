"""The builds of an environment for GPUs, beside that for the CPU, and which of them computes on a card."""

import platform
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field

from rosetta.errors import Unavailable
from rosetta.files import Strict
from rosetta.records import Gpu

CPU = "cpu"  # the name of the build that every environment has
Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]
PythonVersion = Annotated[str, Field(pattern=r"^\d+\.\d+$")]  # "3.11"
GpuCode = Annotated[str, Field(pattern=r"^\d+\.\d+(\+PTX)?$")]


class Build(Strict):
    """Packages that compute on NVIDIA's GPUs: a table of ``environment.toml``, with two requirement files of its name."""

    cuda: Version  # of its libraries
    driver: Version  # the oldest that it runs with
    glibc: Version | None = None  # the oldest that it runs with, where that is newer than uv asks for
    python: PythonVersion | None = None  # where it is another than the environment's
    note: str | None = None  # what a table must say of its rows
    disk_gb: float = 0.0  # as an environment's
    download_gb: float = 0.0
    post_install: str | None = None  # run by the build's interpreter after the packages
    libraries: list[str] = []  # packages of NVIDIA's whose folders must be on the path of libraries: "cublas"
    code: dict[str, list[GpuCode]]  # by module: the compute capabilities that it has code for
    variables: dict[str, str] = {}  # of the kernel; {venv} is the build's virtual environment

    def codes(self, imports: Iterable[str]) -> list[list[GpuCode]]:
        """What it has for each module of these imports that it has code for, by its own name or its package's."""
        packages = {module: module.partition(".")[0] for module in imports}
        names = [module if module in self.code else package for module, package in packages.items()]
        return [self.code[name] for name in names if name in self.code]

    def obstacle(self, imports: Iterable[str], gpu: Gpu) -> str | None:
        """Why it does not compute on a GPU for a notebook with these imports, in a few words."""
        for codes in self.codes(imports):
            if gpu.capability and not any(_runs_on(code, gpu.capability) for code in codes):
                oldest = min((code.partition("+")[0] for code in codes), key=_numbers)
                if _numbers(gpu.capability) < _numbers(oldest):
                    return f"needs compute capability {oldest} or newer"
                return f"has code for compute capability {', '.join(codes)} alone"
        if _numbers(gpu.driver) < _numbers(self.driver):
            return f"needs driver {self.driver} or newer"
        libc, version = platform.libc_ver()
        if self.glibc and libc == "glibc" and _numbers(version) < _numbers(self.glibc):
            return f"needs glibc {self.glibc} or newer, and this system has {version}"
        return None


def told(builds: dict[str, Build], without: dict[str, str], imports: Sequence[str]) -> bool:
    """Whether an environment says what a GPU is to a notebook with these imports: a build has code for it, or why none has."""
    return bool({module.partition(".")[0] for module in imports} & set(without)) or any(
        build.codes(imports) for build in builds.values()
    )


def choose(builds: dict[str, Build], without: dict[str, str], imports: Sequence[str], gpus: Iterable[Gpu]) -> str:
    """The name of the first build that computes on all of these GPUs for a notebook with these imports.

    builds: the newest first. without: by module, why no build has it. Raises Unavailable, saying what each lacks.
    """
    serving = {name: build for name, build in builds.items() if build.codes(imports)}
    if not serving:
        packages = [module.partition(".")[0] for module in imports]
        name = next((package for package in packages if package in without), packages[0])
        raise Unavailable(f"no build of {name} for a GPU" + (f": {without[name]}" if name in without else ""))
    reasons: list[str] = []
    for name, build in serving.items():
        found = ((gpu, build.obstacle(imports, gpu)) for gpu in gpus)
        gpu, reason = next(((gpu, reason) for gpu, reason in found if reason), (None, None))
        if gpu is None:
            return name
        card = gpu
        reasons.append(f"{name} {reason}")
    raise Unavailable(
        f"no build for {card.name} (compute capability {card.capability}, driver {card.driver}): {'; '.join(reasons)}"
    )


def _runs_on(code: str, capability: str) -> bool:
    """CUDA's rule: machine code runs on its capability and later ones of the same major number, PTX on all later ones."""
    number, _, ptx = code.partition("+")
    held, card = _numbers(number), _numbers(capability)
    return held <= card and (bool(ptx) or held[0] == card[0])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
