"""The only reader of notebooks: their cells, the parameters that they bind, and the contract that they keep.

The contract: one code cell for each role of the kind, in their order, each with its words above it; and what makes notebooks alike.
The site cuts notebooks by it, ``run`` and ``check`` refuse one that breaks it. Plain JSON is read: a run needs nothing of nbformat.
"""

import ast
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from rosetta import files
from rosetta.errors import RosettaError, Unavailable, meant
from rosetta.kinds import Kind
from rosetta.paths import checkout, from_root
from rosetta.tasks import TOLD, Task

WIDTH = 100  # of a line of code
RUNNER = ("rosetta", "papermill")  # words that no notebook has: it needs nothing of the runner
START = "INITIAL_WEIGHTS"  # bound where there are weights to start from
PARAMETERS = "parameters"  # the role of the cell that binds them
# Of a committed notebook, and what its cells say of themselves
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT = ("concepts", "tags")
MARK = re.compile(r"^# %% (after )?(\w+)$", re.MULTILINE)  # of a cell of a program

Read = Callable[[Path], bytes]  # reads a file; one that remembers, where many runs are looked at
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")  # within the project


@dataclass(frozen=True)
class Cell:
    """A cell as its file has it. kind: "code" or "markdown"; outputs: none of a notebook that was not executed."""

    kind: str
    source: str
    tags: list[str]
    metadata: dict[str, Any]
    outputs: list[dict[str, Any]]
    number: int | None

    @property
    def role(self) -> str | None:
        """Its first tag."""
        return self.tags[0] if self.tags else None


def cells(notebook: Path, read: Read = files.read) -> list[Cell]:
    """All cells, in their order. Raises RosettaError where the file is no notebook."""
    try:
        return [
            Cell(
                kind=cell["cell_type"],
                source="".join(cell["source"]),
                tags=cell["metadata"].get("tags", []),
                metadata=cell["metadata"],
                outputs=cell.get("outputs", []),
                number=cell.get("execution_count"),
            )
            for cell in json.loads(read(notebook).decode("utf-8"))["cells"]
        ]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = f"it lacks {error}" if isinstance(error, LookupError) else error
        raise RosettaError(f"{from_root(notebook)} is not a notebook: {what}") from None


def code(notebook: Path, read: Read = files.read) -> str:
    """The code of all cells: without texts, outputs and metadata. Nothing of a file that is no notebook: its run tells why."""
    try:
        return "\n\n".join(cell.source for cell in cells(notebook, read) if cell.kind == "code")
    except RosettaError:
        return ""


def by_role(notebook: Path) -> dict[str, str]:
    """The code of each role, in the notebook's order."""
    of_role: dict[str, str] = {}
    for cell in cells(notebook):
        if cell.kind == "code" and cell.role:
            of_role[cell.role] = f"{of_role[cell.role]}\n\n{cell.source}" if cell.role in of_role else cell.source
    return of_role


def links(notebook: Path) -> set[Path]:
    """The files and folders that a notebook's texts link, absolute; addresses on the web are left out."""
    text = "\n".join(cell.source for cell in cells(notebook) if cell.kind == "markdown")
    return {(notebook.parent / link).resolve() for link in LINK.findall(text)}


# ---- Programs, which change cells


def program(what: str, task: str, name: str) -> Path:
    """The program of that name for a task, ``WHAT/TASK/NAME.py``, else the one for any, ``WHAT/NAME.py``, which need not be there."""
    of_task = checkout.programs / what / task / f"{name}.py"
    return of_task if of_task.is_file() else checkout.programs / what / f"{name}.py"


def changes(file: Path, roles: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The cells of a program that stand instead of the notebook's, after a line ``# %% ROLE``, and those that follow the notebook's,
    after ``# %% after ROLE``.

    Raises Unavailable where there is no such file, RosettaError for a role that the notebooks do not have.
    """
    try:
        _, *pieces = MARK.split(file.read_text(encoding="utf-8"))  # after or None, role, code, and so on
    except FileNotFoundError:
        raise Unavailable(f"not written: there is no {from_root(file)}") from None
    instead, following = {}, {}
    for after, role, code in zip(pieces[::3], pieces[1::3], pieces[2::3]):
        if role not in roles:
            raise RosettaError(f"{from_root(file)}: notebooks have no cell {role}")
        (following if after else instead)[role] = code.strip()
    return instead, following


def changed(code: dict[str, str], instead: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """The cells of a notebook with a program's changes, as ``changes`` reads them.

    What follows the parameters begins the next cell, because a run's own parameters are put between the two.
    """
    made = {role: instead.get(role, source) for role, source in code.items()}
    for role, source in after.items():
        if role == "parameters":
            made["setup"] = f"{source}\n\n\n{made['setup']}"
        else:
            made[role] += f"\n\n\n{source}"
    return made


def rewritten(notebook: Path, code: Mapping[str, str], note: str) -> str:
    """The text of a notebook whose cells have this code, by role, and whose first text ends with a note."""
    content = json.loads(files.text(notebook))
    content["cells"][0]["source"] = [*content["cells"][0]["source"], f"\n\n{note}"]
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = code[cell["metadata"]["tags"][0]]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


# ---- Parameters


def bound(notebook: Path, constants: Mapping[str, Any]) -> dict[str, Any] | None:
    """The names that the parameters cell assigns or imports, each with its value (None: any, or not known).

    constants: values of what it imports. None where the notebook cannot be read or has no such cell: its own run tells why.
    """
    try:
        tagged = [cell.source for cell in cells(notebook) if PARAMETERS in cell.tags]
        return _bound(ast.parse("\n".join(tagged)), constants) if tagged else None
    except (RosettaError, ValueError, SyntaxError, TypeError, RecursionError):
        return None


def _bound(tree: ast.Module, constants: Mapping[str, Any]) -> dict[str, Any]:
    """The names that the statements of a module bind, and their values."""
    values: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                named = {alias.asname or alias.name: constants.get(alias.name)}
                values |= constants if alias.name == "*" else named
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                several = isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List)
                pairs = zip(target.elts, node.value.elts) if several else [(target, node.value)]
                values |= {name.id: _literal(value) for name, value in pairs if isinstance(name, ast.Name)}
    return values


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


# ---- The contract


@dataclass(frozen=True)
class Step:
    """A code cell with the text above it. name: its tag, which is the role, or what it answers where a role has many cells.

    note: Markdown; concepts: by concept, the texts whose lines show it.
    """

    role: str
    name: str
    note: str
    code: str
    concepts: dict[str, list[str]]


def cut(notebook: Path, kind: Kind) -> tuple[str, list[Step]]:
    """The first text of a notebook, and its cells. Raises RosettaError, which names the file, the cell and the role that is wrong."""
    name, every = from_root(notebook), cells(notebook)
    in_code = [cell for cell in every if cell.kind == "code"]
    roles = [_role(cell, number, kind, name) for number, cell in enumerate(in_code, start=1)]
    _check_order(roles, kind, name)
    kinds = [cell.kind for cell in every]
    above = [kind for kind, below in pairwise(["", *kinds]) if below == "code"]
    for role, before in zip(roles, above):
        if before != "markdown":
            raise RosettaError(f"{name}: the cell {role} has no text of its own above it")
    if kinds != ["markdown"] + ["markdown", "code"] * len(roles):
        raise RosettaError(f"{name}: it begins with one text, and then each code cell has one text above it, no more")
    intro, *notes = [cell.source for cell in every if cell.kind == "markdown"]
    return intro, [
        Step(role, cell.tags[0], note, cell.source, cell.metadata.get("concepts", {}))
        for role, note, cell in zip(roles, notes, in_code)
    ]


def refusal(notebook: Path, kind: Kind, optional: Iterable[str] = ()) -> str | None:
    """Why a run of the notebook is refused before it starts; None where its cells are as they must be.

    optional: parameters that a notebook need not have, and the run sets.
    """
    try:
        _, steps = cut(notebook, kind)
    except RosettaError as error:
        return str(error)
    text = "\n".join(step.code for step in steps)
    ignored = [name for name in optional if not re.search(rf"\b{name}\b", text)]
    return f"{from_root(notebook)} does not take {', '.join(ignored)}" if ignored else None


def troubles(notebook: Path, task: Task) -> Iterator[str]:
    """Everything that breaks the contract, one line each."""
    try:
        intro, steps = cut(notebook, task.kind)
    except RosettaError as error:
        yield str(error)
        return
    written = {checkout.results / f"{task.key}.md", checkout.results / "conformance" / f"{task.key}.md"}  # by a report
    missing = [target for target in sorted(links(notebook) - written) if not target.exists()]
    for trouble in (
        *_file(notebook),
        *_notes(intro, steps, task.kind),
        *_parameters(steps, task),
        *_length(steps, task.kind.lines),
        *(f"it links {from_root(target)}, which is not there" for target in missing),
    ):
        yield f"{from_root(notebook)}: {trouble}"


def _role(cell: Cell, number: int, kind: Kind, name: str) -> str:
    """By the only tag of a cell. A role of many cells has those whose tag is no role: it names what the cell answers."""
    tags, roles = cell.tags, ", ".join(kind.names)
    begins = (cell.source.strip().splitlines() or ["nothing"])[0]
    where = f"{name}: code cell {number} ({begins[:50]})"
    if not tags:
        raise RosettaError(f"{where} has no tag: give it its role, one of {roles}")
    if len(tags) > 1:
        raise RosettaError(f"{where} has the tags {', '.join(map(str, tags))}: it must have one, its role")
    many = [role.name for role in kind.roles if role.many]
    if many and tags[0] not in kind.names:
        return many[0]
    if tags[0] not in kind.names or tags[0] in many:
        hint = meant(str(tags[0]), kind.names) or f"the roles are {roles}"
        raise RosettaError(f"{where} has the tag {tags[0]}, which is no role of kind {kind.name}; {hint}")
    return tags[0]


def _check_order(roles: list[str], kind: Kind, name: str) -> None:
    """Raises RosettaError for roles that are missing, stand there twice, or not in their order."""
    runs = [(role, len(list(same))) for role, same in groupby(roles)]
    places = {role.name: place for place, role in enumerate(kind.roles)}
    for role in kind.roles:
        if role.name not in roles:
            raise RosettaError(f"{name}: no code cell has the role {role.name}; the roles are {', '.join(kind.names)}")
    for role, size in runs:
        if size > 1 and not kind.roles[places[role]].many:
            raise RosettaError(f"{name}: {size} code cells have the role {role}: put their code into one")
    for (earlier, _), (later, _) in pairwise(runs):
        if places[earlier] > places[later]:
            raise RosettaError(
                f"{name}: the cell {earlier} stands before the cell {later}; their order is {', '.join(kind.names)}"
            )


def tidy(notebook: Path) -> bool:
    """Take from a notebook what an editor has saved in it beside its cells: outputs, numbers, the kernel. Whether there was any.

    Raises RosettaError for a file that is no notebook.
    """
    text = files.text(notebook)
    try:
        content = json.loads(text)
        content["metadata"] = METADATA
        for cell in content["cells"]:
            cell["metadata"] = {name: value for name, value in cell["metadata"].items() if name in KEPT}
            if cell["cell_type"] == "code":
                cell |= {"execution_count": None, "outputs": []}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RosettaError(f"{from_root(notebook)} is no notebook: {type(error).__name__}: {error}") from None
    tidied = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    if tidied != text:
        files.write_atomically(notebook, tidied)
    return tidied != text


def _file(notebook: Path) -> Iterator[str]:
    import nbformat  # here, because a run does not need it

    try:
        read = nbformat.read(notebook, as_version=4)
        nbformat.validate(read)
    except (ValueError, nbformat.ValidationError) as error:
        yield f"it is not a valid notebook: {str(error).splitlines()[0]}"
        return
    for cell in cells(notebook):
        if cell.outputs or cell.number is not None:
            yield f"the cell {cell.role} has outputs or a number: run_all.py tidy takes them away"
    if read.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "its kernel is not python3, as that of every notebook: run_all.py tidy names it so"


def _notes(intro: str, steps: list[Step], kind: Kind) -> Iterator[str]:
    """The headings, and words below each."""
    if not intro.startswith("# "):
        yield "its first text does not begin with a title (# FRAMEWORK: ...)"
    for step in steps:
        heading, first = f"## {kind.headings[step.role]}", (step.note.splitlines() or [""])[0]
        if step.role == step.name and first != heading:
            yield f"the text above the cell {step.role} begins with {first[:50]!r}, not with {heading!r}"
        if len(step.note.splitlines()) < 2:
            yield f"the text above the cell {step.name} has a heading and nothing below it: say what is particular there"


def _parameters(steps: list[Step], task: Task) -> Iterator[str]:
    """The task's constants that a run may inject: each is bound, and something reads it."""
    wanted = set(task.constants()) - task.kind.free | {"SEED"}
    wanted |= set(task.without_chance).union(*task.presets.values())
    wanted |= {START} if "weights" in task.kind.names else set()
    wanted -= {*TOLD, *task.kind.judged}
    trees = []
    for step in steps:
        try:
            trees.append(ast.parse(step.code))
        except SyntaxError as error:
            yield f"the cell {step.name} is not Python: {error.msg}, line {error.lineno}"
            return
    bound_names = set(_bound(trees[0], {}))
    nodes = [node for tree in trees[1:] for node in ast.walk(tree)]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    if lacking := sorted(wanted - bound_names):
        yield f"the cell parameters does not bind {', '.join(lacking)}"
    if unread := sorted(name for name in bound_names - read if name.isupper()):
        yield f"the cell parameters binds {', '.join(unread)}, which no other cell reads"


def _length(steps: list[Step], most: int) -> Iterator[str]:
    lines = [(step.name, line) for step in steps for line in step.code.splitlines() if line.strip()]
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
