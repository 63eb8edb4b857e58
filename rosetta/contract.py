"""The contract of a notebook: one code cell for each role of its kind, in their order, each with its words above it; and what
makes notebooks alike. The site cuts notebooks by it, ``run`` and ``check`` refuse one that breaks it."""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from rosetta.errors import RosettaError, meant
from rosetta.kinds import Kind
from rosetta.parameters import TOLD
from rosetta.paths import from_root
from rosetta.tasks import Task

WIDTH = 100  # of a line of code
RUNNER = ("rosetta", "papermill")  # words that no notebook has: it needs nothing of the runner
GIVEN = "INITIAL_WEIGHTS"  # bound where there are weights to be given


@dataclass(frozen=True)
class Step:
    """A code cell with the text above it. ``note``: Markdown."""

    role: str
    note: str
    code: str
    metadata: dict[str, Any]


def steps(notebook: Path, kind: Kind) -> tuple[str, list[Step]]:
    """The first text of a notebook, and its cells. Raises RosettaError, which names the file, the cell and the role that is wrong."""
    name, cells = from_root(notebook), _cells(notebook)
    tagged = [(cell, _role(cell, number, kind, name)) for number, cell in enumerate(_code(cells), start=1)]
    _check_order([role for _, role in tagged], kind, name)
    kinds = [cell["cell_type"] for cell in cells]
    above = [kind for kind, below in pairwise(["", *kinds]) if below == "code"]
    for (_, role), before in zip(tagged, above):
        if before != "markdown":
            raise RosettaError(f"{name}: the cell {role} has no text of its own above it")
    if kinds != ["markdown"] + ["markdown", "code"] * len(tagged):
        raise RosettaError(f"{name}: it begins with one text, and then each code cell has one text above it, no more")
    notes = [_text(cell) for cell in cells if cell["cell_type"] == "markdown"]
    return notes[0], [Step(role, note, _text(cell), cell["metadata"]) for (cell, role), note in zip(tagged, notes[1:])]


def refusal(notebook: Path, kind: Kind, given: Iterable[str] = ()) -> str | None:
    """Why a run of the notebook is refused before it starts; None where its cells are as they must be.

    given: parameters that a notebook need not have, and the run sets.
    """
    try:
        _, cells = steps(notebook, kind)
    except RosettaError as error:
        return str(error)
    code = "\n".join(step.code for step in cells)
    ignored = [name for name in given if not re.search(rf"\b{name}\b", code)]
    return f"{from_root(notebook)} does not take {', '.join(ignored)}" if ignored else None


def troubles(notebook: Path, task: Task) -> Iterator[str]:
    """Everything that breaks the contract, one line each."""
    if refused := refusal(notebook, task.kind):
        yield refused
        return
    name, (intro, cells) = from_root(notebook), steps(notebook, task.kind)
    for trouble in (
        *_file(notebook),
        *_notes(intro, cells, task.kind),
        *_parameters(cells, task),
        *_length(cells, task.kind.lines),
    ):
        yield f"{name}: {trouble}"


def _cells(notebook: Path) -> list[dict[str, Any]]:
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            _text(cell), cell["metadata"].get("tags", []), cell["cell_type"]
        return cells
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = f"it lacks {error}" if isinstance(error, LookupError) else error
        raise RosettaError(f"{from_root(notebook)} is not a notebook: {what}") from None


def _code(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def _role(cell: dict[str, Any], number: int, kind: Kind, name: str) -> str:
    """The only tag of a cell."""
    tags, roles = cell["metadata"].get("tags", []), ", ".join(kind.names)
    begins = (_text(cell).strip().splitlines() or ["nothing"])[0]
    where = f"{name}: code cell {number} ({begins[:50]})"
    if not tags:
        raise RosettaError(f"{where} has no tag: give it its role, one of {roles}")
    if len(tags) > 1:
        raise RosettaError(f"{where} has the tags {', '.join(map(str, tags))}: it must have one, its role")
    if tags[0] not in kind.names:
        hint = meant(str(tags[0]), kind.names) or f"the roles are {roles}"
        raise RosettaError(f"{where} has the tag {tags[0]}, which is no role of kind {kind.name}; {hint}")
    return tags[0]


def _check_order(found: list[str], kind: Kind, name: str) -> None:
    """Raises RosettaError for roles that are missing, stand there twice, or not in their order."""
    runs = [(role, len(list(cells))) for role, cells in groupby(found)]
    places = {role.name: place for place, role in enumerate(kind.roles)}
    for role in kind.roles:
        if role.name not in found:
            raise RosettaError(f"{name}: no code cell has the role {role.name}; the roles are {', '.join(kind.names)}")
    for role, size in runs:
        if size > 1 and not kind.roles[places[role]].many:
            raise RosettaError(f"{name}: {size} code cells have the role {role}: put their code into one")
    for (earlier, _), (later, _) in pairwise(runs):
        if places[earlier] > places[later]:
            raise RosettaError(
                f"{name}: the cell {earlier} stands before the cell {later}; their order is {', '.join(kind.names)}"
            )


def _file(notebook: Path) -> Iterator[str]:
    import nbformat  # here, because a run does not need it

    try:
        read = nbformat.read(notebook, as_version=4)
        nbformat.validate(read)
    except (ValueError, nbformat.ValidationError) as error:
        yield f"it is not a valid notebook: {str(error).splitlines()[0]}"
        return
    for cell in _code(read.cells):
        if cell.outputs or cell.execution_count is not None:
            yield f"the cell {cell.metadata.tags[0]} has outputs or a number: clear all outputs before you save"
    if read.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "its kernel is not python3, as that of every notebook: name it so in metadata.kernelspec"


def _notes(intro: str, cells: list[Step], kind: Kind) -> Iterator[str]:
    """The headings, and words below each."""
    if not intro.startswith("# "):
        yield "its first text does not begin with a title (# FRAMEWORK: ...)"
    headings = {role.name: f"## {role.heading}" for role in kind.roles}
    for role, several in groupby(cells, key=lambda step: step.role):
        first, *others = (step.note.splitlines() or [""] for step in several)
        if first[0] != headings[role]:
            yield f"the text above the cell {role} begins with {first[0][:50]!r}, not with {headings[role]!r}"
        if len(first) < 2 or any(len(note) < 2 for note in others):
            yield f"the text above the cell {role} has a heading and nothing below it: say what is particular there"
        if any(note[0].startswith("## ") for note in others):
            yield f"the role {role} has one heading of two #, above its first cell"


def _parameters(cells: list[Step], task: Task) -> Iterator[str]:
    """The task's constants that a run may inject: each is bound, and something reads it."""
    wanted = set(task.constants()) - task.kind.free | {"SEED"}
    wanted |= set(task.without_chance).union(*task.presets.values())
    wanted |= {GIVEN} if "weights" in task.kind.names else set()
    wanted -= {*TOLD, *task.kind.judged}
    stored, read = set(), set()
    for step in cells:
        try:
            tree = ast.parse(step.code)
        except SyntaxError as error:
            yield f"the cell {step.role} is not Python: {error.msg}, line {error.lineno}"
            return
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        if step is cells[0]:
            imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
            stored |= {alias.asname or alias.name for node in imports for alias in node.names}
        else:
            read |= {name.id for name in names if isinstance(name.ctx, ast.Load)}
    if lacking := sorted(wanted - stored):
        yield f"the cell parameters does not bind {', '.join(lacking)}"
    if unread := sorted(name for name in stored - read if name.isupper()):
        yield f"the cell parameters binds {', '.join(unread)}, which no other cell reads"


def _length(cells: list[Step], most: int) -> Iterator[str]:
    lines = [(step.role, line) for step in cells for line in step.code.splitlines() if line.strip()]
    if len(lines) > most:
        yield f"it has {len(lines)} lines of code; {most} are allowed"
    for role, line in lines:
        if len(line) > WIDTH:
            yield f"the cell {role} has a line of {len(line)} characters; {WIDTH} are allowed: {line.strip()[:40]}..."
        if "import *" in line:
            yield f"the cell {role} imports *: name what it takes"
        for word in RUNNER:
            if word in line:
                yield f"the cell {role} names {word}: a notebook needs nothing of the runner"
