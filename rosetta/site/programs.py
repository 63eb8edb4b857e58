"""What the compare page sets side by side: the notebooks, and the reference in NumPy, cut into the same steps."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from rosetta.errors import RosettaError
from rosetta.roles import NAMES

REFERENCE = "reference"  # its key among the programs
STEP = re.compile(r"^# ---- \[(?P<role>\w+)\] (?P<note>.*)$", re.MULTILINE)  # how the reference marks its steps


@dataclass(frozen=True)
class Section:
    """One step of a program. ``note``: Markdown; ``concepts``: by concept, the texts whose lines show it."""

    role: str
    note: str
    code: str
    concepts: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    key: str
    path: Path
    intro: str  # Markdown
    sections: tuple[Section, ...]


def notebook(path: Path) -> Program:
    """A notebook as its sections. Raises RosettaError where it does not keep to the order of cells that all share."""
    try:
        cells = nbformat.read(path, as_version=4).cells
    except (OSError, ValueError, nbformat.ValidationError) as error:
        raise RosettaError(f"{path.name} is not a notebook: {str(error).splitlines()[0]}") from None
    notes = [cell.source for cell in cells if cell.cell_type == "markdown"]
    code = [cell for cell in cells if cell.cell_type == "code"]
    tags = [cell.metadata.get("tags", []) for cell in code]
    if tags != [[name] for name in NAMES] or len(notes) != len(NAMES) + 1:
        raise RosettaError(
            f"{path.name} has not one code cell for each of {', '.join(NAMES)}, each with a text above it"
        )
    sections = (
        Section(name, _body(note), cell.source, dict(cell.metadata.get("concepts", {})))
        for name, note, cell in zip(NAMES, notes[1:], code)
    )
    return Program(path.stem, path, _body(notes[0]), tuple(sections))


def reference(module: Path, params: Path) -> Program:
    """The reference as sections: its file is cut at comments ``# ---- [role] what follows``; the constants stand in their own file."""
    text = module.read_text(encoding="utf-8")
    marks = list(STEP.finditer(text))
    wrong = [mark["role"] for mark in marks if mark["role"] not in NAMES]
    if not marks or wrong:
        raise RosettaError(f"{module.name} marks no steps, or one that is none: {', '.join(wrong)}")
    intro, head = _docstring(text[: marks[0].start()])
    found = {"parameters": Section("parameters", *_docstring(params.read_text(encoding="utf-8")))}
    found["setup"] = Section("setup", "", head)
    for mark, after in zip(marks, [*marks[1:], None]):
        code = text[mark.end() : after.start() if after else None].strip("\n")
        earlier = found.get(mark["role"])
        note = mark["note"].strip()
        if earlier:
            note, code = f"{earlier.note} {note}", f"{earlier.code}\n\n\n{code}"
        found[mark["role"]] = Section(mark["role"], note, code)
    return Program(REFERENCE, module, intro, tuple(found[name] for name in NAMES if name in found))


def _body(note: str) -> str:
    """A text without its heading."""
    return note.partition("\n")[2].strip()


def _docstring(text: str) -> tuple[str, str]:
    """The text in a module's first quotes, and what comes after."""
    _, doc, rest = text.split('"""', 2)
    return doc.strip(), rest.strip("\n")
