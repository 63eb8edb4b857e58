"""The pages that set the notebooks of a task side by side and define it: compare, concepts, network."""

import json
from math import prod
from pathlib import Path

from rosetta import records
from rosetta.catalog import Row
from rosetta.site import addresses, concepts, executed, highlight, traps
from rosetta.site.calls import calls
from rosetta.site.content import TaskContent
from rosetta.site.frameworks import most_telling
from rosetta.site.pages import Pages
from rosetta.site.programs import REFERENCE, Program


def write_compare(pages: Pages, content: TaskContent, folder: Path) -> None:
    """The compare page, and what it loads of each program and executed copy. folder: where the records lie."""
    page = addresses.of_task("compare", content.key)
    network = addresses.relative(addresses.of_task("network", content.key), page)
    rows = [
        {
            "name": row.name,
            "title": row.title,
            "program": row.framework,
            "page": addresses.relative(addresses.framework(row.task, row.framework), page),
            "injected": _injected(row),
            "executed": _write_outputs(pages, content, row, page, folder),
        }
        for row in content.rows
    ]
    loaded = list(content.programs.values())
    if content.reference:
        own = {"name": REFERENCE, "title": "Reference in NumPy", "program": REFERENCE, "page": network}
        rows.append(own | {"injected": [], "executed": False})
        loaded.append(content.reference)
    for program in loaded:
        pages.save(addresses.code(content.key, program.key), _code(pages, content, program, page, network))
    known = {"rows": rows, "concepts": {key: concept.title for key, concept in content.concepts.items()}}
    pages.write_of_task("compare", content, known=known)


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
        code = section.code.split("\n")
        marked = {
            concept: [number for number, line in enumerate(code) if any(text in line for text in texts)]
            for concept, texts in section.concepts.items()
        }
        part = {
            "note": pages.markup(section.note, program.path.parent, page),
            "code": highlight.lines(section.code, content.constants, network),
            "concepts": marked,
            "calls": calls(section.code),
        }
        steps.setdefault(section.role, []).append(part)
    return _script("program", program.key, steps)


def _write_outputs(pages: Pages, content: TaskContent, row: Row, page: str, folder: Path) -> bool:
    """What each step of a row's executed copy printed, as a script like that of its program; whether there is a copy."""
    record = most_telling([record for record in content.results.records if record.name == row.name])
    if record is None:
        return False
    copy = records.path(record, folder).parent / record.notebook.executed
    printed = {
        role: [{"text": cell.text, "same": cell.source == section.code} for cell, section in zip(cells, sections)]
        for role, cells in executed.printed(copy, content.task.kind.names).items()
        if (sections := [section for section in content.programs[row.framework].sections if section.role == role])
    }
    about = f"{record.machine.name}, {record.preset}, {record.started:%Y-%m-%d}"
    href = addresses.relative(addresses.executed(record), page)
    script = _script("outputs", row.name, {"about": about, "page": href, "steps": printed})
    pages.save(addresses.outputs(content.key, row.name), script)
    return True


def _script(what: str, key: str, content: dict) -> str:
    return f"rosetta.{what}({json.dumps(key)}, {json.dumps(content, ensure_ascii=False)});\n"


def write_concepts(pages: Pages, content: TaskContent) -> None:
    """The concept table."""
    for program in content.programs.values():
        concepts.check(program, content.concepts)
    pages.write_of_task("concepts", content, excerpts=concepts.excerpts, trap=traps.sentence)


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
