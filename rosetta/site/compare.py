"""The compare page, and what it loads of each program."""

import json

from rosetta.catalog import Row
from rosetta.paths import ROOT
from rosetta.roles import ROLES
from rosetta.site import addresses, highlight
from rosetta.site.pages import Pages
from rosetta.site.programs import REFERENCE, Program
from rosetta.site.task import Task

FIRST = 2  # columns that the page begins with


def write(pages: Pages, task: Task) -> None:
    href = addresses.compare(task.key)
    rows = {
        row.name: {
            "title": row.title,
            "program": row.framework,
            "page": addresses.relative(addresses.framework(row.task, row.framework), href),
            "injected": _injected(row),
        }
        for row in task.rows
    }
    rows[REFERENCE] = {
        "title": "Reference in NumPy",
        "program": REFERENCE,
        "page": addresses.relative(addresses.network(task.key), href),
        "injected": [],
    }
    for program in (*task.programs.values(), task.reference):
        _code(pages, task, program)
    pages.write(
        href,
        "compare.html",
        f"Compare: {task.title}",
        "Compare",
        task={
            "key": task.key,
            "title": task.title,
            "definition": addresses.relative(addresses.network(task.key), href),
        },
        first="+".join([row.name for row in task.rows if row.variant is None][:FIRST]),
        roles=[
            {"name": role.name, "heading": role.heading, "about": pages.markup(role.about, ROOT / "README.md", href)}
            for role in ROLES
        ],
        rows=rows,
        options=[{"name": name, "title": row["title"]} for name, row in rows.items()],
    )


def _injected(row: Row) -> list[str]:
    """The lines that a run of this variant adds to the parameters, as papermill does."""
    if not row.parameters:
        return []
    given = "\n".join(f"{name} = {value!r}" for name, value in row.parameters.items())
    return highlight.lines(f"\n# {row.title}:\n{given}")


def _code(pages: Pages, task: Task, program: Program) -> None:
    """One program as a script that hands it to the compare page: pages opened from a disk may load nothing else."""
    page, network = addresses.compare(task.key), addresses.network(task.key)
    content = {
        section.role: {
            "note": pages.markup(section.note, program.path, page),
            "code": highlight.lines(section.code, task.constants, addresses.relative(network, page)),
        }
        for section in program.sections
    }
    text = f"rosetta.add({json.dumps(program.key)}, {json.dumps(content, ensure_ascii=False)});\n"
    pages.save(addresses.code(task.key, program.key), text)
