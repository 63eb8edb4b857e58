"""Finds Python interpreters of a version on this machine, without believing what PATH says."""

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def find(version: str) -> Path | None:
    """The path of a Python of that version ("3.6"), or None.

    Looks in pyenv, then in conda's environments, then on PATH. Each candidate is run before it is believed:
    pyenv's shims on PATH exit with an error unless their version is active.
    """
    return next((path for path in _candidates(version) if runs(path, version)), None)


def runs(path: Path, version: str) -> bool:
    """Whether the interpreter starts and is of that version."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([str(path), "-c", code], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/*/bin/{name}"), reverse=True)
    for prefix in _conda_prefixes():
        yield prefix / "bin" / name
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = Path(folder) / name
        if candidate.is_file():
            yield candidate


def _conda_prefixes() -> Iterator[Path]:
    """conda lists every environment it has made in one file; the active one is in CONDA_PREFIX."""
    active = os.environ.get("CONDA_PREFIX")
    if active:
        yield Path(active)
    listed = Path.home() / ".conda" / "environments.txt"
    if listed.is_file():
        yield from (Path(line) for line in listed.read_text().split("\n") if line.strip())
