"""Finds Python interpreters of a version on this machine, without believing what PATH says."""

import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from rosetta.paths import ROOT
from rosetta.run.guard import guarded


@cache
def find(version: str) -> Path | None:
    """The path of a Python of that version ("3.6"), or None.

    Looks in pyenv, then in conda's environments, then on PATH. Each candidate is run before it is believed:
    pyenv's shims on PATH exit with an error unless their version is active.
    """
    return next((path for path in _candidates(version) if runs(path, version)), None)


def runs(path: Path, version: str) -> bool:
    """Whether the interpreter starts and is of that version."""
    done = ask(path, "import sys; print('%d.%d' % sys.version_info[:2])", timeout_s=30)
    return done is not None and done.returncode == 0 and done.stdout.strip() == version


def ask(
    python: Path, code: str, timeout_s: float, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """What an interpreter makes of some code; None where it does not end in time. Nothing that it starts is left behind.

    variables: on top of this process's own. Bytes that are no UTF-8 are replaced.
    """
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | (variables or {})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace"}
    command = [str(python), "-c", code]
    try:
        with guarded(command, ROOT, env, uuid.uuid4().hex, **pipes) as process:
            out, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return None
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def _candidates(version: str) -> Iterator[Path]:
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"))
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
    listed = Path(os.path.expanduser("~/.conda/environments.txt"))
    if listed.is_file():
        yield from (
            Path(line)
            for line in listed.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
            if line.strip()
        )
