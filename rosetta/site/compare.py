"""The compare page, and what it loads of each program."""

import json

from rosetta.catalog import Row
from rosetta.site import addresses, highlight
from rosetta.site.content import TaskContent
from rosetta.site.pages import Pages
from rosetta.site.programs import REFERENCE, Program

FIRST = 2  # columns that the page begins with


def write(pages: Pages, content: TaskContent) -> None:
    href, task = addresses.of_task("compare", content.key), content.task
    definition = addresses.relative(addresses.of_task("network", task.key), href)
    rows = {
        row.name: {
            "title": row.title,
            "program": row.framework,
            "page": addresses.relative(addresses.framework(row.task, row.framework), href),
            "injected": _injected(row),
        }
        for row in content.rows
    }
    if content.reference:
        rows[REFERENCE] = {
            "title": "Reference in NumPy",
            "program": REFERENCE,
            "page": definition,
            "injected": [],
        }
    for program in filter(None, (*content.programs.values(), content.reference)):
        _code(pages, content, program)
    plain = [row.name for row in content.rows if row.variant is None] or list(rows)
    pages.write(
        href,
        "compare.html",
        f"Compare: {task.title}",
        "Compare",
        task,
        definition=definition,
        first="+".join(plain[:FIRST]),
        roles=[
            {
                "name": role.name,
                "heading": role.heading,
                "about": pages.markup(task.about.get(role.name, ""), task.folder / "task.toml", href),
            }
            for role in task.kind.roles
        ],
        rows=rows,
    )


def _injected(row: Row) -> list[str]:
    """The lines that a run of this variant adds to the parameters, as papermill does."""
    if not row.parameters:
        return []
    given = "\n".join(f"{name} = {value!r}" for name, value in row.parameters.items())
    return highlight.lines(f"\n# {row.title}:\n{given}")


def _code(pages: Pages, content: TaskContent, program: Program) -> None:
    """One program as a script that hands it to the compare page: pages opened from a disk may load nothing else."""
    page = addresses.of_task("compare", content.key)
    network = addresses.relative(addresses.of_task("network", content.key), page)
    steps: dict[str, list[dict]] = {}
    for section in program.sections:
        note = pages.markup(section.note, program.path, page)
        code = highlight.lines(section.code, content.constants, network)
        steps.setdefault(section.role, []).append({"note": note, "code": code})
    text = f"rosetta.add({json.dumps(program.key)}, {json.dumps(steps, ensure_ascii=False)});\n"
    pages.save(addresses.code(content.key, program.key), text)
