"""Measurements on disk: ``results/MACHINE/speed/KIND.json``."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from rosetta import records
from rosetta.errors import RosettaError
from rosetta.paths import portable

FOLDER = "speed"  # below a machine's folder
Kept = TypeVar("Kept", bound=BaseModel)


def path(results: Path, machine: str, kind: str) -> Path:
    return results / machine / FOLDER / f"{kind}.json"


def machines(results: Path) -> list[str]:
    """Those that something was measured on, in the order of their names."""
    return sorted(folder.parent.name for folder in results.glob(f"*/{FOLDER}"))


def read(what: type[Kept], file: Path) -> Kept:
    """What earlier measurements have left; nothing where there is no file yet."""
    try:
        return what.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return what()
    except ValueError as error:
        raise RosettaError(
            f"{portable(str(file))} is not valid: {str(error).splitlines()[0]}; mend or delete it"
        ) from None


def write(measured: BaseModel, file: Path) -> None:
    records.write_atomically(file, measured.model_dump_json(indent=1) + "\n")
