"""What the compare page sets side by side: the notebooks, and the reference in NumPy, cut into the same steps."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from rosetta.errors import RosettaError
from rosetta.kinds import Kind
from rosetta.notebook import cut

REFERENCE = "reference"  # its key among the programs
STEP = re.compile(r"^ *# ---- \[(?P<role>\w+)\] (?P<note>.*)$", re.MULTILINE)  # how the reference marks its steps


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


def notebook(path: Path, kind: Kind) -> Program:
    """A notebook as its sections. Raises RosettaError where its cells do not have the roles of its kind, in their order."""
    intro, steps = cut(path, kind)
    many = {role.name for role in kind.roles if role.many}
    sections = (
        Section(
            step.role,
            step.note if step.role in many else _body(step.note),
            step.code,
            step.concepts,
        )
        for step in steps
    )
    return Program(path.stem, path, _body(intro), tuple(sections))


def reference(module: Path, params: Path, kind: Kind) -> Program:
    """The reference as sections: its file is cut at comments ``# ---- [role] what follows``; the constants stand in their own file."""
    text = module.read_text(encoding="utf-8")
    marks = list(STEP.finditer(text))
    wrong = [mark["role"] for mark in marks if mark["role"] not in kind.names]
    if not marks or wrong:
        raise RosettaError(f"{module.name} marks no steps, or one that is none: {', '.join(wrong)}")
    intro, head = _docstring(text[: marks[0].start()])
    sections = {"parameters": Section("parameters", *_docstring(params.read_text(encoding="utf-8")))}
    sections["setup"] = Section("setup", "", "\n\n\n".join([head, *_imported(text, module.parent)]))
    for mark, after in zip(marks, [*marks[1:], None]):
        role, note = mark["role"], mark["note"].strip()
        code = dedent(text[mark.end() : after.start() if after else None].strip("\n"))  # a step may be a method
        if earlier := sections.get(role):
            note, code = f"{earlier.note} {note}", f"{earlier.code}\n\n\n{code}"
        sections[role] = Section(role, note, code)
    return Program(REFERENCE, module, intro, tuple(sections[name] for name in kind.names if name in sections))


def _imported(text: str, folder: Path) -> list[str]:
    """The functions that a reference imports from the modules beside it, and those that they call."""
    imported = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("common.reference."):
            source = (folder / f"{node.module.rpartition('.')[2]}.py").read_text(encoding="utf-8")
            functions = {one.name: one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)}
            wanted = [alias.name for alias in node.names]
            for name in wanted:  # grows by what each calls
                inside = ast.walk(functions[name]) if name in functions else ()
                called = {part.id for part in inside if isinstance(part, ast.Name)}
                wanted += [other for other in functions if other in called and other not in wanted]
            imported += [ast.get_source_segment(source, one) for name, one in functions.items() if name in wanted]
    return imported


def _body(note: str) -> str:
    """A text without its heading."""
    return note.partition("\n")[2].strip()


def _docstring(text: str) -> tuple[str, str]:
    """The text in a module's first quotes, and what comes after."""
    _, doc, rest = text.split('"""', 2)
    return doc.strip(), rest.strip("\n")
