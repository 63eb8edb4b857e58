"""Where records to compare come from: a results folder, or ``results/`` as it was at a git revision."""

import io
import re
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from common.record import SCHEMA
from rosetta import records
from rosetta.errors import RosettaError
from rosetta.files import parse
from rosetta.paths import GIT, RESULTS, ROOT
from rosetta.records import Record


@dataclass(frozen=True)
class Source:
    title: str
    records: list[Record]


def read(name: str) -> Source:
    """The records of a folder, or of a revision where there is no folder of that name. Raises RosettaError for neither."""
    folder = Path(name)
    if folder.is_dir():
        source = Source(str(folder), [record for _, record in records.read_all(folder)])
    else:
        source = _revision(name)
    if not source.records:
        raise RosettaError(f"there is no record in {source.title}: a results folder holds MACHINE/TASK/PRESET/ROW.json")
    return source


def _revision(name: str) -> Source:
    try:
        commit = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except (OSError, subprocess.CalledProcessError):
        raise RosettaError(f"{name} is neither a folder nor a git revision of this repository") from None
    title, below = f"{name} ({commit[:7]})", RESULTS.relative_to(ROOT).as_posix()
    try:
        packed = _git("archive", "--format=tar", commit, "--", f":(glob){below}/{records.RECORDS}")
    except subprocess.CalledProcessError:  # git's answer where nothing matches
        return Source(title, [])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [member for member in archive if member.isfile()]
        texts = {file.name: archive.extractfile(file).read().decode(errors="replace") for file in files}
    found = [re.match(r'\{\s*"schema": (\d{1,9}),', text) for text in texts.values()]
    if any(schema and int(schema[1]) < SCHEMA for schema in found):
        raise RosettaError(f"the records at {title} are of an older schema than {SCHEMA}: name a later revision")
    return Source(title, [parse(Record, text, f"{file} of {name}") for file, text in texts.items()])


def _git(*arguments: str) -> bytes:
    return subprocess.run([*GIT, *arguments], capture_output=True, check=True).stdout
