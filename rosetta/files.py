"""Files that the project reads and writes: a model from TOML or JSON, and text that is there whole or not at all."""

import hashlib
import os
import tomllib
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rosetta.errors import RosettaError
from rosetta.paths import portable


class Strict(BaseModel):
    """A file, or a part of one, in which a misspelt key is an error."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=BaseModel)


def load(model: type[Model], file: Path, missing: Model | None = None) -> Model:
    """The model that a ``.toml`` or ``.json`` file holds; ``missing``, where it is given, stands for a file that is not there.

    Raises RosettaError, which names the file and the first field that is wrong.
    """
    if missing is not None and not file.exists():
        return missing
    return parse(model, text(file), portable(str(file)))


def text(file: Path) -> str:
    """What a file holds, which must be UTF-8. Raises RosettaError, which names it."""
    name = portable(str(file))
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RosettaError(f"{name} is not there") from None
    except OSError as error:
        raise RosettaError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RosettaError(f"{name} is not valid: its byte {error.start + 1} is no UTF-8; mend or delete it") from None


def parse(model: type[Model], text: str, name: str) -> Model:
    """The model that a text is, TOML where its ``name`` ends so and JSON otherwise. Raises RosettaError, which names it."""
    try:
        if name.endswith(".toml"):
            return part(model, tomllib.loads(text), name)
        return model.model_validate_json(text)
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise _invalid(name, error) from None


def part(model: type[Model], data: Any, name: str) -> Model:
    """The model that a part of a file is; ``name`` says which. Raises RosettaError."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _invalid(name, error) from None


def reason(error: ValidationError) -> str:
    """The first field that is wrong, and why."""
    first = error.errors(include_url=False)[0]
    where = " ".join(".".join(map(str, first["loc"])).split())  # keys may hold anything
    return f"{where}: {first['msg']}" if where else first["msg"]


def _invalid(name: str, error: Exception) -> RosettaError:
    why = reason(error) if isinstance(error, ValidationError) else str(error)
    return RosettaError(f"{name} is not valid: {why.splitlines()[0]}; mend or delete it")


def digest(files: Iterable[Path], base: Path) -> str:
    """SHA-256 over files and their paths from ``base``."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(base).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def write(target: Path, model: BaseModel) -> Path:
    """Write a model as JSON; returns its path."""
    write_atomically(target, dumped(model))
    return target


def dumped(model: BaseModel) -> str:
    """A model as the text of its JSON file."""
    return model.model_dump_json(by_alias=True, indent=1) + "\n"


def write_atomically(target: Path, text: str) -> None:
    """The file is there whole or as it was before, also when the disk is full; the user's umask gives its mode."""
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise RosettaError(f"cannot write {target.name}: {error.strerror}; what was finished before is kept") from error
