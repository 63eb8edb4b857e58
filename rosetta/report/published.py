"""Figures that others have measured: the reference columns of the table."""

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from rosetta.errors import RosettaError
from rosetta.paths import RESULTS


class Published(BaseModel):
    """A file of ``results/published``, with its source."""

    model_config = ConfigDict(extra="forbid")

    task: str
    source: str
    url: str
    year: int
    conditions: str
    unit: str
    columns: dict[str, dict[str, float]]  # column title -> row name -> figure


def published(task: str, folder: Path = RESULTS / "published") -> list[Published]:
    """The published figures for a task."""
    found = []
    for file in sorted(folder.glob("*.toml")):
        try:
            found.append(Published.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))))
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise RosettaError(f"{file.name} is not valid: {str(error).splitlines()[0]}") from None
    return [one for one in found if one.task == task]
