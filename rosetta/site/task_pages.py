"""The pages that set the notebooks of a task side by side and define it: compare, concepts, network."""

import json
from math import prod

from rosetta.catalog import Row
from rosetta.site import addresses, concepts, highlight
from rosetta.site.content import TaskContent
from rosetta.site.pages import Pages
from rosetta.site.programs import REFERENCE, Program

FIRST = 2  # columns that the compare page begins with


def write_compare(pages: Pages, content: TaskContent) -> None:
    """The compare page, and what it loads of each program."""
    page = addresses.of_task("compare", content.key)
    network = addresses.relative(addresses.of_task("network", content.key), page)
    rows = {
        row.name: {
            "title": row.title,
            "program": row.framework,
            "page": addresses.relative(addresses.framework(row.task, row.framework), page),
            "injected": _injected(row),
        }
        for row in content.rows
    }
    loaded = list(content.programs.values())
    if content.reference:
        rows[REFERENCE] = {"title": "Reference in NumPy", "program": REFERENCE, "page": network, "injected": []}
        loaded.append(content.reference)
    for program in loaded:
        pages.save(addresses.code(content.key, program.key), _code(pages, content, program, page, network))
    plain = [row.name for row in content.rows if row.variant is None] or list(rows)
    pages.write_of_task("compare", content, rows=rows, first="+".join(plain[:FIRST]))


def _injected(row: Row) -> list[str]:
    """The lines that a run of this variant adds to the parameters, as papermill does."""
    if not row.parameters:
        return []
    given = "\n".join(f"{name} = {value!r}" for name, value in row.parameters.items())
    return highlight.lines(f"\n# {row.title}:\n{given}")


def _code(pages: Pages, content: TaskContent, program: Program, page: str, network: str) -> str:
    """One program as a script that hands it to the compare page: pages opened from a disk may load nothing else."""
    steps: dict[str, list[dict]] = {}
    for section in program.sections:
        note = pages.markup(section.note, program.path.parent, page)
        code = highlight.lines(section.code, content.constants, network)
        steps.setdefault(section.role, []).append({"note": note, "code": code})
    return f"rosetta.add({json.dumps(program.key)}, {json.dumps(steps, ensure_ascii=False)});\n"


def write_concepts(pages: Pages, content: TaskContent) -> None:
    """The concept table."""
    for program in content.programs.values():
        concepts.check(program, content.concepts)
    pages.write_of_task("concepts", content, excerpts=concepts.excerpts)


def write_network(pages: Pages, content: TaskContent) -> None:
    """The page that defines a task: its text, constants and weights."""
    source = content.task.folder / "README.md"
    shapes = getattr(content.task.params, "WEIGHT_SHAPES", {})
    pages.write_of_task(
        "network",
        content,
        definition=source.read_text(encoding="utf-8") if source.is_file() else f"# {content.task.title}",
        weights={name: (shape, prod(shape)) for name, shape in shapes.items()},
        total=sum(map(prod, shapes.values())),
    )
