"""The questions of a task of kind ``entries``, from its ``entries.toml``, and what a notebook answers.

A notebook has a cell an entry, whose tag is the entry's id. The text above it has the question as its heading, then how the answer
differs from that of the framework which the others are compared with, in italics: *Other name.*
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from symtable import symtable

from pydantic import Field, model_validator

from rosetta import files
from rosetta.errors import meant
from rosetta.files import Strict
from rosetta.notebook import cut, troubles
from rosetta.paths import from_root
from rosetta.tasks import Task

LINES = 10  # of code that an answer may have: a whole training step has nine
SENTENCES = 4  # of the text above it, besides how it differs
DIFFERS = ("Same", "Other name", "Other default", "Other meaning", "Shortest way")
QUOTED = re.compile(r"`([^`]*)`")
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
    example: str | None = None  # the entry that the site's first page shows
    groups: list[str]
    entries: dict[str, Entry]

    @model_validator(mode="after")
    def _in_order(self) -> "Entries":
        groups = [group for group, _ in groupby(entry.group for entry in self.entries.values())]
        if groups != self.groups:
            raise ValueError(f"the entries stand in the groups {groups}, not in {self.groups}")
        if self.example and self.example not in self.entries:
            raise ValueError(f"example is {self.example}, which is no entry")
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
    """A framework's answer. differs: one of DIFFERS, None in the framework that the others are compared with; words: Markdown.

    uses: the API names in its code, each with its line.
    """

    differs: str | None
    words: str
    code: str
    uses: list[tuple[str, int]]


def answers(notebook: Path, task: Task) -> dict[str, Answer]:
    """By id, in the notebook's order. Raises RosettaError for one that breaks the contract of its cells."""
    _, steps = cut(notebook, task.kind)
    shared = [step.code for step in steps if step.role != task.kind.core]
    found = {}
    for step in steps:
        if step.role == task.kind.core:
            text = "\n".join(line for line in step.note.splitlines() if not line.startswith("#")).strip()
            mark = DIFFERING.match(text)
            words = text[mark.end() :] if mark else text
            found[step.name] = Answer(mark and mark["how"], words, step.code, list(names(step.code, shared)))
    return found


def contract(notebook: Path, task: Task) -> Iterator[str]:
    """Everything that breaks the contract of a notebook, one line each: ``notebook.troubles``, and those of its answers."""
    broken = list(troubles(notebook, task))
    yield from broken
    if not broken and any(role.many for role in task.kind.roles):
        yield from (f"{from_root(notebook)}: {trouble}" for trouble in _of_answers(notebook, task))


def _of_answers(notebook: Path, task: Task) -> Iterator[str]:
    asked, (_, every) = load(task.folder), cut(notebook, task.kind)
    steps = [step for step in every if step.role == task.kind.core]
    ids, order = [step.name for step in steps], list(asked.entries)
    if unknown := [name for name in ids if name not in order]:
        hint = meant(unknown[0], [*order, *task.kind.names]) or "entries.toml lists them"
        yield f"the tag {unknown[0]} is neither a role nor an entry; {hint}"
        return
    if twice := [name for name in order if ids.count(name) > 1]:
        yield f"{twice[0]} is answered twice"
    if ids != sorted(ids, key=order.index):
        yield "its answers stand in another order than those of entries.toml"
    by_code: dict[str, str] = {}
    for step in steps:
        if step.code in by_code:  # an AnswerLog knows a cell by its code
            yield f"{step.name} has the same code as {by_code[step.code]}: let it differ"
        by_code[step.code] = step.name
    compares = asked.compared_to not in (None, notebook.stem)
    inputs = {name for step in every if step.role != task.kind.core for name in _imports(step.code)}
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
        if not isinstance([None, *_tree(step.code).body][-1], ast.Expr):
            yield f"{step.name} does not end with an expression, which is its answer"
        if hidden := sorted(_assigned(step.code) & inputs):
            yield f"{step.name} gives {', '.join(hidden)} another value, which later answers take from the setup"


def _assigned(code: str) -> set[str]:
    """The names that code gives a value outside of its functions."""
    try:
        return {symbol.get_name() for symbol in symtable(code, "", "exec").get_symbols() if symbol.is_assigned()}
    except SyntaxError:
        return set()


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


# ---- The names that a framework's users know things by

OTHERS = {"numpy", "common", "IPython", *sys.stdlib_module_names}  # whose names are none of a framework
PYTHONS = {
    name for kind in (list, dict, str, tuple, set, float, bytes, object) for name in dir(kind)
}  # methods, not a framework's
SPELLING = str.maketrans("", "", "-_ ")  # in which batch-norm, batch_norm and BatchNorm differ


def names(code: str, before: Iterable[str] = ()) -> Iterator[tuple[str, int]]:
    """The API names in code, as it calls them, each with its line from 0: ``nn.Conv2d``, ``backward``.

    A name begins with what a framework's module is imported as, or is an attribute of something else. Names of Python, NumPy and
    ``common`` are left out, and those that the code makes itself. before: code whose imports hold in this code.
    """
    modules = {name: module for one in (*before, code) for name, module in _imports(one).items()}
    tree, inside = _tree(code), set()
    made = _made(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute | ast.Name) or node in inside:
            continue
        parts, root = [], node
        while isinstance(root, ast.Attribute):
            parts.insert(0, (root.attr, (root.end_lineno or root.lineno) - 1))
            root = root.value
            inside.add(root)
        if isinstance(root, ast.Name) and root.id in modules:
            if modules[root.id].partition(".")[0] not in OTHERS and (parts or root.id != modules[root.id]):
                yield ".".join([root.id, *(name for name, _ in parts)]), root.lineno - 1
        else:
            yield from ((name, line) for name, line in parts if name not in PYTHONS | made)


def keywords(code: str) -> Iterator[str]:
    """The names of arguments in code: ``padding_idx``."""
    return (node.arg for node in ast.walk(_tree(code)) if isinstance(node, ast.keyword) and node.arg)


@cache  # of a notebook each cell asks for all cells
def _tree(code: str) -> ast.Module:
    try:
        return ast.parse(code)
    except SyntaxError:
        return ast.Module([], [])


@cache
def _imports(code: str) -> dict[str, str]:
    """By the name in the code what it is imported from."""
    found = {}
    for node in ast.walk(_tree(code)):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _made(tree: ast.Module) -> set[str]:
    """Functions, classes, variables, arguments and attributes of ``self`` that code makes."""
    made = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                made.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(ast.Name("self"), name, ast.Store()):
                made.add(name)
    return made


def statements(found: dict[str, Answer], asked: Entries) -> dict[str, str]:
    """By id the statement that tells most of an answer, on one line. found: all answers of a notebook."""
    answers_with = Counter(last for answer in found.values() for last in {short(name) for name, _ in answer.uses})
    telling = {}
    for key, answer in found.items():
        searched = {short(alias).translate(SPELLING) for alias in (key, *asked.entries[key].aliases)}
        told = {short(word) for code in QUOTED.findall(answer.words) for word in re.findall(r"[\w.]+", code)}
        choices = []
        for name, line in answer.uses:
            last, statement = short(name), _statement(answer.code, line)
            arguments = {word.lower() for word in re.findall(r"\w+(?==)", statement)}
            weight = (
                last.translate(SPELLING) in searched,  # what people search it by
                last in told,  # what its text speaks of
                bool(arguments & (searched | told)),
                bool(re.search(r"[(=@]", statement)),  # more than a reading
                -answers_with[last],  # what few other answers need
                "." in name,
            )
            choices.append((weight, statement))
        lines = answer.code.splitlines()
        choices = choices or [((), _statement(answer.code, lines.index(max(lines, key=len))))]
        telling[key] = max(choices, key=itemgetter(0))[1]
    return telling


def _statement(code: str, line: int) -> str:
    """The statement that a line, from 0, belongs to, on one line. Of one that contains others, its head or its decorator."""
    spans = []
    for node in ast.walk(_tree(code)):
        if isinstance(node, ast.stmt):
            last = max(node.lineno, node.body[0].lineno - 1) if getattr(node, "body", None) else node.end_lineno
            spans.append((node.lineno, last))
            spans += [(one.lineno, one.end_lineno) for one in getattr(node, "decorator_list", [])]
    own = line + 1, line + 1  # an except clause is no statement
    first, last = max((span for span in spans if span[0] <= line + 1 <= span[1]), default=own)
    joined = " ".join(re.sub(r"  +#.*", "", one).strip() for one in code.splitlines()[first - 1 : last])
    return re.sub(r",? (?=[)\]}])", "", re.sub(r"(?<=[(\[{]) ", "", joined))


def short(name: str) -> str:
    """The part of a name that people type: ``F.cross_entropy(`` as ``cross_entropy``."""
    return name.strip("()").rpartition(".")[2].rstrip("_").lower()
