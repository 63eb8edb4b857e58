"""Notebooks, and the reference in NumPy, cut into the same sections; the concepts that their lines show.

A notebook's own metadata says which lines show a concept, by a part of their text. Most concepts are questions of a task of entries.
"""

import ast
import builtins
import io
import re
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from tokenize import COMMENT, TokenError, generate_tokens

from rosetta import files
from rosetta.entries import load
from rosetta.errors import RosettaError
from rosetta.files import Strict
from rosetta.kinds import Kind
from rosetta.notebook import Step, cut
from rosetta.paths import from_root

REFERENCE = "reference"  # its key among the programs
STEP = re.compile(r"^ *# ---- \[(?P<role>\w+)\] (?P<note>.*)$", re.MULTILINE)  # how the reference marks its steps
RUFF = (sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--config", "format.quote-style='preserve'")
ALIGNED = re.compile(r" {3,}#")  # a comment that is far to the right only because others are


@dataclass(frozen=True)
class Program:
    """A notebook, or the reference. intro: Markdown; it and the notes of the sections are without their headings."""

    key: str
    path: Path
    intro: str
    sections: list[Step]


class Concept(Strict):
    """What lines of notebooks show. about: Markdown; aliases: other words that people type for one that is no question."""

    title: str
    about: str
    aliases: tuple[str, ...] = ()
    answered: bool = False  # it is a question, which has a page


class Concepts(Strict):
    """``concepts.toml``. order: ids of entries, and names of ``own``: concepts that are no question of any task."""

    order: list[str] = []
    own: dict[str, Concept] = {}


# ---- Programs


def notebook(path: Path, kind: Kind) -> Program:
    """Read a notebook as its sections. Raises RosettaError where its cells do not have the roles of its kind, in their order."""
    intro, steps = cut(path, kind)
    sections = [replace(step, note=step.note.partition("\n")[2].strip()) for step in steps]
    return Program(path.stem, path, intro.partition("\n")[2].strip(), sections)


def reference(module: Path, params: Path, kind: Kind) -> Program:
    """The reference as sections: its file is cut at comments ``# ---- [role] what follows``; the constants stand in their own file."""
    text = module.read_text(encoding="utf-8")
    marks = list(STEP.finditer(text))
    wrong = [mark["role"] for mark in marks if mark["role"] not in kind.names]
    if not marks or wrong:
        raise RosettaError(f"{module.name} marks no steps, or one that is none: {', '.join(wrong)}")
    intro, head = _docstring(text[: marks[0].start()])
    sections = {
        "parameters": _docstring(params.read_text(encoding="utf-8")),
        "setup": ("", "\n\n\n".join([head, *_imported(text, module.parent)])),
    }
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), None]):
        role, note = mark["role"], mark["note"].strip()
        code = dedent(text[mark.end() : end].strip("\n"))  # a step may be a method
        if role in sections:
            note, code = f"{sections[role][0]} {note}", f"{sections[role][1]}\n\n\n{code}"
        sections[role] = note, code
    steps = [Step(name, name, *sections[name], {}) for name in kind.names if name in sections]
    return Program(REFERENCE, module, intro, steps)


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


def _docstring(text: str) -> tuple[str, str]:
    """The text in a module's first quotes, and what comes after."""
    _, doc, rest = text.split('"""', 2)
    return doc.strip(), rest.strip("\n")


def settings(codes: list[str], widths: Collection[int]) -> list[list[str]]:
    """Each code as it is, then set anew by ``ruff format`` for each width, from the widest, that a line of the one before exceeds.

    A comment behind code that makes its line too long moves before it. Comments are not broken, and code that is no Python
    stays as it is.
    """
    found = [[code] for code in codes]
    with TemporaryDirectory() as folder:
        for width in sorted(widths, reverse=True):
            due = {Path(folder, f"{width}-{n}.py"): some for n, some in enumerate(found) if longest(some[-1]) > width}
            for file, some in due.items():
                file.write_text(_comments_before(some[0], width) + "\n", encoding="utf-8")
            if due:  # without a file ruff takes all below; it fails where one is no Python, and formats the others
                subprocess.run([*RUFF, f"--line-length={width}", *due], cwd=folder, capture_output=True)
            for file, some in due.items():
                if (new := file.read_text(encoding="utf-8").rstrip("\n")) != some[-1]:
                    some.append(new)
    return found


def _comments_before(code: str, width: int) -> str:
    """Each comment behind code that makes its line longer than this stands on a line before it."""
    lines = code.split("\n")
    try:
        tokens = list(generate_tokens(io.StringIO(code).readline))
    except (TokenError, SyntaxError):
        return code
    for token in reversed([one for one in tokens if one.type == COMMENT]):
        row, column = token.start
        line = lines[row - 1]
        before = line[:column].rstrip()
        # Between lines of a text, or behind a backslash, no line can be put
        inside = re.search("\"{3}|'{3}", line) or "".join(lines[: row - 1]).endswith("\\")
        if before and len(line) > width and not inside:
            lines[row - 1 : row] = [line[: len(line) - len(line.lstrip())] + token.string, before]
    return "\n".join(lines)


def longest(code: str) -> int:
    """Characters of its longest line."""
    return max(map(len, code.split("\n")))


def showing(section: Step, concept: str, new: str) -> list[int]:
    """The lines of ``new``, a section's code set anew, that hold a name, number, text or operator of a concept's lines, from 0."""
    lines = shown(section, concept)
    if section.code == new:
        return [number for number, is_shown in enumerate(lines) if is_shown]
    return sorted({after for before, after in _same_lines(section.code, new) if lines[before]})


@cache  # each concept asks
def _same_lines(code: str, new: str) -> set[tuple[int, int]]:
    """The line in ``code`` and that in ``new`` of each token that formatting kept."""
    before, after = _tokens(code), _tokens(new)
    matcher = SequenceMatcher(None, [text for text, _ in before], [text for text, _ in after], autojunk=False)
    blocks = matcher.get_matching_blocks()
    return {(before[block.a + n][1], after[block.b + n][1]) for block in blocks for n in range(block.size)}


@cache
def _tokens(code: str) -> list[tuple[str, int]]:
    """What formatting keeps: all but brackets and commas, each with its line from 0."""
    tokens = generate_tokens(io.StringIO(code).readline)
    return [(one.string, one.start[0] - 1) for one in tokens if one.string.strip() and one.string not in "()[]{},"]


def calls(code: str) -> list[tuple[str, str, int, int]]:
    """Name in lower case, arguments, first and last line (from 0) of each call; those of Python's own functions are left out.

    The name is the last part: ``nn.Conv2d(3, 50)`` is a call of ``conv2d`` with ``3, 50``. Code that is no Python has none.
    """
    try:
        nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    except SyntaxError:
        return []
    named = []
    for node in nodes:
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        if name and not hasattr(builtins, name):
            arguments = ", ".join(ast.unparse(argument) for argument in [*node.args, *node.keywords])
            named.append((name.lower(), arguments, node.lineno - 1, (node.end_lineno or node.lineno) - 1))
    return named


# ---- Concepts


def concepts(folder: Path) -> dict[str, Concept]:
    """Of a task's folder, in order; none where it has no ``concepts.toml``. Raises RosettaError for a name that nothing explains."""
    listed = files.load(Concepts, folder / "concepts.toml", missing=Concepts())
    found = dict(listed.own)
    for file in sorted(folder.parent.glob("*/entries.toml")):
        for key, entry in load(file.parent).entries.items():
            found[key] = Concept(title=entry.question, about=entry.definition, answered=True)
    if unknown := [name for name in listed.order if name not in found]:
        raise RosettaError(
            f"{from_root(folder / 'concepts.toml')}: {unknown[0]} is no entry of a task, and [own.{unknown[0]}] is not there"
        )
    return {name: found[name] for name in listed.order}


def shown(section: Step, concept: str) -> list[bool]:
    """Whether each line of a section shows a concept."""
    texts = section.concepts.get(concept, [])
    return [any(text in line for text in texts) for line in section.code.split("\n")]


def excerpts(program: Program, concept: str) -> list[str]:
    """The lines that express a concept, a text for each step that has some, as they stand there but for their indentation."""
    texts = []
    for section in program.sections:
        lines = []
        marked = zip(shown(section, concept), section.code.split("\n"))
        for is_shown, group in groupby(marked, key=lambda pair: pair[0]):
            if is_shown:  # lines that do not follow each other keep no common indentation
                lines += dedent("\n".join(line for _, line in group)).split("\n")
        if lines:
            texts.append("\n".join(ALIGNED.sub("  #", line) for line in lines))
    return texts


def check(program: Program, listed: Collection[str]) -> None:
    """Raises RosettaError for a concept that a program marks and the task does not list, and for a marker that no line has any more."""
    for section in program.sections:
        for concept, texts in section.concepts.items():
            if concept not in listed:
                raise RosettaError(f"{program.path.name} marks concepts that concepts.toml does not have: {concept}")
            for text in texts:
                if not any(text in line for line in section.code.split("\n")):
                    raise RosettaError(
                        f"{program.path.name}: no line of the cell {section.role} has the text {text!r} of its marker"
                    )
