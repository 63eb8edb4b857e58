"""Files that the project reads and writes: a model from TOML or JSON, and text that is there whole or not at all."""

import errno
import hashlib
import os
import stat
import tomllib
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rosetta.errors import RosettaError, meant
from rosetta.paths import portable

# Numbers as files may have them: finite, and so small that sums, squares and clocks of them are too
Count = Annotated[int, Field(ge=0, lt=2**63)]
Number = Annotated[float, Field(ge=-1e100, le=1e100)]
Positive = Annotated[float, Field(ge=0, le=1e15)]
Seconds = Annotated[float, Field(ge=0, le=1e12)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Module = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", max_length=200)]  # as Python imports it
# Names of files and folders that lie where they are expected: no path, not hidden
Name = Annotated[str, Field(pattern=r"^\w[\w.-]*$", max_length=200)]


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


def read(file: Path) -> bytes:
    """The bytes of a file. Raises OSError at once for what is none: a pipe or a device might never answer."""
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(file))
        return opened.read()


def text(file: Path) -> str:
    """What a file holds, which must be UTF-8. Raises RosettaError, which names it."""
    name = portable(str(file))
    try:
        return read(file).decode("utf-8")
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
            return model.model_validate(tomllib.loads(text))
        return model.model_validate_json(text)
    except (ValueError, RecursionError) as error:  # of numbers and nesting, tomllib leaves Python's own
        raise _invalid(name, error, model) from None


def part(model: type[Model], data: Any, name: str) -> Model:
    """The model that a part of a file is; ``name`` says which. Raises RosettaError."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _invalid(name, error, model) from None


def reason(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The first field that is wrong, and why. model: whose fields may have been meant by a name that is none."""
    first = error.errors(include_url=False)[0]
    where = " ".join(".".join(map(str, first["loc"])).split())  # keys may hold anything
    why = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden" and model:
        near = meant(str(first["loc"][-1]), _fields(model), cutoff=0.7)
        why += f"; {near}" if near else ""
    return f"{where}: {why}" if where else why


def _fields(model: Any) -> set[str]:
    """The names of the fields of a model and of those that it consists of."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return set().union(*map(_fields, get_args(model)))
    fields = model.model_fields.items()
    return {field.alias or name for name, field in fields}.union(*(_fields(field.annotation) for _, field in fields))


def _invalid(name: str, error: Exception, model: type[BaseModel] | None = None) -> RosettaError:
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    if isinstance(error, ValidationError):
        why, first = reason(error, model), error.errors(include_url=False)[0]
        is_schema, schema = (first["type"], first["loc"]) == ("literal_error", ("schema",)), first["input"]
        if is_schema and isinstance(schema, int) and schema > int(read := first["ctx"]["expected"]):
            about = f"its schema is {str(schema)[:9]}, and this one reads {read}"
            return RosettaError(f"{name} was written by a newer version: {about}; update the checkout")
    return RosettaError(f"{name} is not valid: {' '.join(why.split())}; mend or delete it")


def digest(files: Iterable[Path], base: Path) -> str:
    """SHA-256 over files and their paths from ``base``."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(base).as_posix().encode() + b"\0" + read(file))
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
