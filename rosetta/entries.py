"""The questions of a task of kind ``entries``, from its ``entries.toml``, and what a notebook answers.

A notebook has a cell an entry, whose tag is the entry's id. The text above it has the question as its heading, then how the answer
differs from that of the framework which the others are compared with, in italics: *Other name.*
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pydantic import Field, model_validator

from rosetta import files
from rosetta.errors import meant
from rosetta.files import Strict
from rosetta.notebook import Step, cut, troubles
from rosetta.paths import from_root
from rosetta.tasks import Task

LINES = 10  # of code that an answer may have: a whole training step has nine
SENTENCES = 4  # of the text above it, besides how it differs
DIFFERS = ("Same", "Other name", "Other default", "Other meaning", "Shortest way")
DIFFERING = re.compile(r"\*(?P<how>[A-Z][a-z ]+)\.\*\s+")
PLACES = re.compile(r"`[^`]*`|\]\([^)]*\)|\b(?:e\.g|i\.e)\.|\d\.\d")  # full stops there end no sentence


class Entry(Strict):
    """A question that people look up."""

    question: str
    group: str
    definition: str  # one line, Markdown
    proof: str  # what the answer is held against
    aliases: list[str] = Field(min_length=1)  # other words that people type for it
    see: list[str] = []  # ids of entries beside it


class Entries(Strict):
    """``entries.toml``. compared_to: the framework that the other notebooks say how they differ from, if any."""

    compared_to: str | None = None
    groups: list[str]
    entries: dict[str, Entry]

    @model_validator(mode="after")
    def _in_order(self) -> "Entries":
        groups = [group for group, _ in groupby(entry.group for entry in self.entries.values())]
        if groups != self.groups:
            raise ValueError(f"the entries stand in the groups {groups}, not in {self.groups}")
        for key, entry in self.entries.items():
            if unknown := [other for other in entry.see if other not in self.entries]:
                raise ValueError(f"{key} says see {unknown[0]}, which is no entry")
        return self


def load(folder: Path) -> Entries:
    """Of a task's folder. Raises RosettaError where it has none, or one that is wrong."""
    return files.load(Entries, folder / "entries.toml")


def texts(folder: Path, words: str) -> dict[str, str]:
    """The text above each answer of a notebook, by id: headings, and these words."""
    found, group = {}, None
    for key, entry in load(folder).entries.items():
        begins = f"### {entry.question}" if entry.group == group else f"## {entry.group}\n\n### {entry.question}"
        found[key], group = f"{begins}\n\n{words}", entry.group
    return found


# ---- What a notebook answers


@dataclass(frozen=True)
class Answer:
    """A framework's answer. differs: one of DIFFERS, None in the framework that the others are compared with; words: Markdown."""

    key: str
    differs: str | None
    words: str
    code: str


def answers(notebook: Path, task: Task) -> dict[str, Answer]:
    """By id, in the notebook's order. Raises RosettaError for one that breaks the contract of its cells."""
    _, steps = cut(notebook, task.kind)
    found = {}
    for step in steps:
        if step.role == task.kind.core:
            text = "\n".join(line for line in step.note.splitlines() if not line.startswith("#")).strip()
            mark = DIFFERING.match(text)
            found[step.name] = Answer(
                step.name, mark["how"] if mark else None, text[mark.end() :] if mark else text, step.code
            )
    return found


def contract(notebook: Path, task: Task) -> Iterator[str]:
    """Everything that breaks the contract of a notebook, one line each: ``notebook.troubles``, and those of its answers."""
    broken = list(troubles(notebook, task))
    yield from broken
    if not broken and any(role.many for role in task.kind.roles):
        yield from (f"{from_root(notebook)}: {trouble}" for trouble in _of_answers(notebook, task))


def _of_answers(notebook: Path, task: Task) -> Iterator[str]:
    asked, (_, steps) = load(task.folder), cut(notebook, task.kind)
    steps = [step for step in steps if step.role == task.kind.core]
    ids, order = [step.name for step in steps], list(asked.entries)
    if unknown := [name for name in ids if name not in order]:
        hint = meant(unknown[0], [*order, *task.kind.names]) or "entries.toml lists them"
        yield f"the tag {unknown[0]} is neither a role nor an entry; {hint}"
        return
    if twice := [name for name in order if ids.count(name) > 1]:
        yield f"{twice[0]} is answered twice"
    if ids != sorted(ids, key=order.index):
        yield "its answers stand in another order than those of entries.toml"
    compares = asked.compared_to not in (None, notebook.stem)
    groups = [asked.entries[name].group for name in ids]
    found = answers(notebook, task)
    for step, group, before in zip(steps, groups, ["", *groups]):
        heading = f"### {asked.entries[step.name].question}"
        wanted = [heading] if group == before else [f"## {group}", "", heading]
        if step.note.splitlines()[: len(wanted)] != wanted:
            yield f"the text above {step.name} does not begin with {' / '.join(filter(None, wanted))!r}"
            continue
        yield from (f"{step.name}: {trouble}" for trouble in _words(found[step.name], compares))
        lines = [line for line in step.code.splitlines() if line.strip()]
        if len(lines) > LINES:
            yield f"{step.name} has {len(lines)} lines of code; {LINES} are allowed"
        if not isinstance(_last(step), ast.Expr):
            yield f"{step.name} does not end with an expression, which is its answer"


def _last(step: Step) -> ast.stmt | None:
    try:
        return (ast.parse(step.code).body or [None])[-1]
    except SyntaxError:
        return None


def _words(answer: Answer, compares: bool) -> Iterator[str]:
    if not compares and answer.differs:
        yield "its text says how it differs, but there is nothing that it is compared with"
    if compares and answer.differs not in DIFFERS:
        yield f"its text does not begin with how it differs, one of {', '.join(f'*{how}.*' for how in DIFFERS)}"
    sentences = len(re.findall(r"[.?](?=\s|$)", PLACES.sub("", answer.words)))
    if not 1 <= sentences <= SENTENCES:
        yield f"its text has {sentences} sentences; one to {SENTENCES} are asked for"
    if "](http" not in answer.words:
        yield "its text links no page of the framework's documentation"
