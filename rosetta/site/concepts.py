"""The concept table: for each concept and framework the lines of its notebook that the notebook's own markers name."""

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import dedent

from pydantic import RootModel

from rosetta import files
from rosetta.errors import RosettaError
from rosetta.files import Strict
from rosetta.site.programs import Program, Section

ALIGNED = re.compile(r" {3,}#")  # a comment that is far to the right only because others are


class Concept(Strict):
    """An entry of a task's ``concepts.toml``. ``about``: Markdown."""

    title: str
    about: str


class Concepts(RootModel[dict[str, Concept]]):
    """``concepts.toml``."""


@dataclass(frozen=True)
class Excerpt:
    """Lines of one step, as they stand in the notebook but for their common indentation."""

    role: str
    code: str


def read(file: Path) -> dict[str, Concept]:
    """The concepts of a task, in order; none where it has no such file."""
    return files.load(Concepts, file, missing=Concepts({})).root


def excerpts(program: Program, concept: str) -> list[Excerpt]:
    """Where a program expresses a concept. Raises RosettaError for a marker that no line has any more."""
    found = []
    for section in program.sections:
        if texts := section.concepts.get(concept):
            found.append(Excerpt(section.role, "\n".join(_lines(program, section, texts))))
    return found


def _lines(program: Program, section: Section, texts: list[str]) -> list[str]:
    code = section.code.split("\n")
    gone = [text for text in texts if not any(text in line for line in code)]
    if gone:
        raise RosettaError(
            f"{program.path.name}: no line of the cell {section.role} has the text {gone[0]!r} of its marker"
        )
    found = []
    for marked, lines in groupby(code, key=lambda line: any(text in line for text in texts)):
        if marked:  # lines that do not follow each other keep no common indentation
            found += dedent("\n".join(lines)).split("\n")
    return [ALIGNED.sub("  #", line) for line in found]


def check(program: Program, known: dict[str, Concept]) -> None:
    """Raises RosettaError for concepts that a program marks and the task does not list."""
    strange = sorted({name for section in program.sections for name in section.concepts} - set(known))
    if strange:
        raise RosettaError(f"{program.path.name} marks concepts that concepts.toml does not have: {', '.join(strange)}")
