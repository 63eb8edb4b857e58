"""What ``run_all.py env`` does: make environments; with ``--lock`` resolve an environment's packages, install them, import what its frameworks import."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import tomlkit
from packaging import tags
from packaging.markers import default_environment
from packaging.pylock import Pylock
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from uv import find_uv_bin

from rosetta import catalog, files
from rosetta.errors import RosettaError
from rosetta.run import environments, processes
from rosetta.run.environments import Environment, Tell, events, uv_error
from rosetta.run.processes import FOREIGN_VARIABLES
from rosetta.where import assignments

LOCAL = ("UV_FIND_LINKS",)  # what the shell adds to an index: a lock would record local builds
GLIBC = "2.28"  # that a build for GPUs may ask for, unless it says more
IMPORT_S = 600
GIGABYTE = 1e9


def make_all(names: Sequence[str], builds: Sequence[str], again: bool, locked: bool) -> int:
    """Make environments unless they are ready, or anew if ``again``. Exit code 1 if one cannot be made; the others are.

    builds: ENVIRONMENT=NAME, where it is not the build for the CPU. locked: resolve packages first, try imports afterwards.
    """
    asked = assignments("--build", builds, "ENVIRONMENT=NAME")
    if others := set(asked) - set(names):
        raise RosettaError(f"--build names {', '.join(sorted(others))}, which is not to be made: name it as ENV, too")
    bad = 0
    for environment in [environments.load(name, asked.get(name)) for name in dict.fromkeys(names)]:
        with TemporaryDirectory(prefix="rosetta-") as folder:
            log = Path(folder) / "install.log"
            try:
                if locked:
                    print(make(environment, log, events(print), again))
                else:
                    environment.provision(log, events(print), again)
                    print(f"{environment.title}: ready")
            except RosettaError as error:
                bad += 1
                print(f"run_all.py: {error}", file=sys.stderr)
    return 1 if bad else 0


def make(environment: Environment, log: Path, tell: Tell, again: bool = False) -> str:
    """Lock, make and try an environment; what came of it, in one line. Raises RosettaError where a step fails."""
    download_gb = lock(environment, tell)
    environment = environments.load(environment.name, environment.build)  # as it is written now
    environment.provision(log, tell, again)
    imports = _imports(environment.name)
    for modules, variables in imports:
        tell(f"importing {', '.join(modules)}")
        _import(environment, modules, variables)
    names = dict.fromkeys(module for modules, _ in imports for module in modules)
    sizes = {"disk_gb": _disk_gb(environment.venv), "download_gb": download_gb}
    written = environment.build is None and _write_sizes(environment.folder / "environment.toml", sizes)
    told = ", ".join(f"{name} = {value:g}" for name, value in sizes.items())
    where = f"written into environments/{environment.name}/environment.toml" if written else "measured"
    return f"{environment.title}: ready; imports {', '.join(names) or 'nothing yet'}; {told} ({where})"


def lock(environment: Environment, tell: Tell) -> float:
    """Write the lock of an environment, and the versions that it chose where none is asked for; 10^9 bytes to download.

    What the earlier lock has stays as it is while it still fits.
    """
    asked, locked = environment.requirements
    tell(f"locking {environment.title}")
    version = environment.python_version
    glibc = environment.gpu_build and environment.gpu_build.glibc or GLIBC
    platform = f"x86_64-manylinux_{glibc.replace('.', '_')}"  # of the builds for GPUs
    usual = ["--python-platform", platform] if environment.build else ["--universal"]
    flags = environment.recipe.lock_flags or [*usual, "--python-version", version]
    flags = [flag.replace("{python}", str(environments.find_python(version) or version)) for flag in flags]
    brought = "" if environment.build else "\n".join(environment.recipe.brought.values())
    flags += [asked.name, *(["-"] if brought else [])]
    newest = f"{version}.99"
    here = default_environment() | {"python_version": version, "python_full_version": newest}
    with TemporaryDirectory(prefix="rosetta-") as folder:
        new, files_of = Path(folder) / locked.name, Path(folder) / "pylock.toml"
        new.write_text(files.text(locked), encoding="utf-8")
        with_hashes = [*flags, "--generate-hashes", "--no-header", "-o", str(new)]
        _compile(environment, with_hashes, brought)
        if _pin(asked, new, here):  # exact versions leave out what was there for other Pythons
            _compile(environment, with_hashes, brought)
        text = files.text(new)
        if "://" in text:
            raise RosettaError(
                f"the lock of {environment.title} would name an address: ask in {asked.name} for versions"
            )
        _compile(environment, [*flags, "--format", "pylock.toml", "-c", str(new), "-o", str(files_of)], brought)
        download_gb = _download_gb(files_of, version, here)
    files.write_atomically(locked, text)
    return download_gb


def _compile(environment: Environment, arguments: list[str], given: str) -> None:
    env = {name: value for name, value in os.environ.items() if name not in (*FOREIGN_VARIABLES, *LOCAL)}
    command = [find_uv_bin(), "pip", "compile", "--quiet", *arguments]
    done = subprocess.run(command, cwd=environment.folder, env=env, input=given, capture_output=True, text=True)
    if done.returncode:
        raise RosettaError(f"{environment.title} cannot be locked: {uv_error(done.stderr)}")


def _pin(asked: Path, lock: Path, here: dict[str, str]) -> bool:
    """Write the versions that a lock has into requirements that name none exactly. Whether there were any.

    here: the markers of the environment, which of several versions one fits.
    """
    locked = [Requirement(line.rstrip("\\ ")) for line in files.text(lock).splitlines() if line[:1].isalnum()]
    pins = {
        canonicalize_name(one.name): one.specifier for one in locked if one.marker is None or one.marker.evaluate(here)
    }
    before = files.text(asked)
    after = "".join(_pinned(line, pins) for line in before.splitlines(keepends=True))
    files.write_atomically(asked, after)
    return after != before


def _pinned(line: str, pins: dict[str, SpecifierSet]) -> str:
    text, mark, comment = line.partition("#")
    try:
        asked = Requirement(text.strip())
    except InvalidRequirement:
        return line
    if any(one.operator in ("==", "===") for one in asked.specifier) or canonicalize_name(asked.name) not in pins:
        return line
    asked.specifier = pins[canonicalize_name(asked.name)]
    return str(asked) + text[len(text.rstrip()) :] + mark + comment


def _download_gb(lock: Path, version: str, here: dict[str, str]) -> float:
    """The sizes of the files that are installed here, as the package index tells them."""
    python = tuple(map(int, version.split(".")))
    fitting = [*tags.cpython_tags(python), *tags.compatible_tags(python, f"cp{python[0]}{python[1]}")]
    chosen = Pylock.from_dict(tomllib.loads(files.text(lock))).select(environment=here, tags=fitting)
    return _rounded(sum(getattr(file, "size", 0) or 0 for _, file in chosen))


def _disk_gb(folder: Path) -> float:
    return _rounded(
        sum(os.lstat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(folder) for name in names)
    )


def _rounded(size: float) -> float:
    """10^9 bytes, with two digits."""
    return float(f"{size / GIGABYTE:.2g}")


def _imports(name: str) -> list[tuple[tuple[str, ...], dict[str, str]]]:
    """What the frameworks of an environment and their variants import, whether they have a notebook yet or not, each with its
    variables: Keras imports what they name."""
    found: list[tuple[tuple[str, ...], dict[str, str]]] = []
    for framework in catalog.load().frameworks.values():
        if framework.plain and framework.environment == name:
            found.append((framework.imports, {}))
        for variant in framework.variants.values():
            if (variant.environment or framework.environment) == name:
                found.append((variant.imports or framework.imports, variant.variables))
    return [pair for place, pair in enumerate(found) if pair not in found[:place]]


def _import(environment: Environment, modules: tuple[str, ...], variables: dict[str, str]) -> None:
    variables = environment.variables(modules, locked=True) | {"PYTHONNOUSERSITE": "1"} | variables
    done = processes.ask(environment.python, f"import {', '.join(modules)}", IMPORT_S, variables)
    if done is None:
        raise RosettaError(f"{environment.title}: import {', '.join(modules)} did not end within {IMPORT_S} s")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RosettaError(
            f"{environment.title} is made, but import {', '.join(modules)} fails: {last[:300]}; "
            "mend requirements.in, or imports in catalog.toml"
        )


def _write_sizes(recipe: Path, sizes: dict[str, float]) -> bool:
    """Write sizes into an ``environment.toml`` that has none. Whether they were written."""
    content = tomlkit.parse(files.text(recipe))
    if any(name in content for name in sizes):
        return False
    for name, size in sizes.items():
        content[name] = size
    files.write_atomically(recipe, tomlkit.dumps(content))
    return True
