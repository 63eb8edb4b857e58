"""The files of an environment as they were installed, so that those that were lost later can be told."""

import json
import os
from pathlib import Path

NAME = "rosetta.files.json"  # in the environment: the bytes of each file


def write(venv: Path) -> None:
    """Note the files that are there."""
    (venv / NAME).write_text(json.dumps(_sizes(venv)), encoding="utf-8")


def damaged(venv: Path) -> list[str]:
    """The files that are gone or shorter than they were; none where nothing was noted."""
    try:
        noted = json.loads((venv / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:  # made by an earlier version
        return []
    except (OSError, ValueError):
        return [NAME]
    sizes = _sizes(venv)
    return [file for file, size in noted.items() if sizes.get(file, -1) < size]


def _sizes(venv: Path) -> dict[str, int]:
    """By path from the environment. Not of compiled files: Python writes them anew whenever it likes."""
    sizes = {}
    for folder, folders, files in os.walk(venv):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            path = Path(folder, name)
            sizes[path.relative_to(venv).as_posix()] = path.lstat().st_size
    return sizes
