"""A framework's own page: what it is, how it is installed here, its records, conformance and lessons; and its executed notebooks."""

import re
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from rosetta import records
from rosetta.catalog import PRESETS, Framework, Row
from rosetta.paths import NOTEBOOKS, ROOT, from_root
from rosetta.records import Record
from rosetta.report.figures import PERCENT, SECONDS
from rosetta.roles import ROLES
from rosetta.run import environments
from rosetta.site import addresses, executed, highlight, results
from rosetta.site.pages import Link, Pages
from rosetta.site.programs import REFERENCE
from rosetta.site.task import Task

LESSONS = ROOT / "docs" / "lessons.md"
LESSON = re.compile(r"^- \*\*(?P<names>[^*]+)\*\*.*(?:\n  .*)*", re.MULTILINE)


@dataclass(frozen=True)
class Installed:
    """How some rows of a framework get their packages here."""

    rows: str
    name: str
    python: str
    packages: str


def write(pages: Pages, task: Task, key: str, folder: Path) -> None:
    """folder: where the records lie."""
    framework, program, href = task.frameworks[key], task.programs[key], addresses.framework(task.key, key)
    rows = task.of(key)
    path = from_root(program.path)
    copy = addresses.notebook(task.key, key)
    pages.save(copy, program.path.read_text(encoding="utf-8"))
    lessons = _lessons(framework.title, LESSONS.read_text(encoding="utf-8"))
    constants = addresses.relative(addresses.network(task.key), href)
    found = [record for record in task.records if record.framework == key]
    shown = _most_telling(found)
    pages.write(
        href,
        "framework.html",
        framework.title,
        framework={
            "title": framework.title,
            "state": _state(framework),
            "homepage": framework.homepage,
        },
        intro=pages.markup(program.intro, program.path, href),
        environments=_installed(rows),
        notebook={
            "href": addresses.relative(copy, href),
            "name": program.path.name,
            "key": key,
            "source": f"{pages.repository}/blob/main/{path}" if pages.colab else None,
            "colab": f"{pages.colab}{path}" if pages.colab else None,
        },
        compare=_comparisons(task, rows, href),
        records=_record_rows(found, href),
        conformance=[
            {"title": row.title, "text": cell.text, "badge": cell.badge or ""}
            for row in rows
            if (cell := results.badge(task.verified.get(row.name)))
        ],
        lessons=[pages.markup(lesson, LESSONS, href) for lesson in lessons],
        executed=shown
        and {
            "body": _executed(pages, shown, records.path(shown, folder).parent / shown.notebook.executed, href),
            "where": f"{shown.title} on {shown.machine.name}, {shown.preset}, {shown.started:%Y-%m-%d}",
        },
        sections=[
            {
                "role": role.name,
                "heading": role.heading,
                "note": pages.markup(section.note, program.path, href),
                "code": [Markup(line) for line in highlight.lines(section.code, task.constants, constants)],
            }
            for role, section in zip(ROLES, program.sections)
        ],
    )


def _comparisons(task: Task, rows: list[Row], href: str) -> list[Link]:
    """Ways to the compare page: with the reference, with the first other framework, and among the framework's own variants."""
    other = next((row for row in task.rows if row.framework != rows[0].framework and row.variant is None), None)
    chosen = [("with the reference", [rows[0].name, REFERENCE])]
    if other:
        chosen.append((f"with {other.title}", [rows[0].name, other.name]))
    if len(rows) > 1:
        chosen.append(("its variants", [row.name for row in rows][:4]))
    return [Link(title, addresses.relative(addresses.compare(task.key, names), href)) for title, names in chosen]


def write_record(pages: Pages, record: Record, folder: Path) -> None:
    """The record as it is, and the executed notebook as a file and as a page."""
    source = records.path(record, folder)
    pages.save(addresses.record(record), source.read_text(encoding="utf-8"))
    if not record.notebook.executed:
        return
    notebook, href = source.parent / record.notebook.executed, addresses.executed(record)
    pages.save(addresses.record(record, ".ipynb"), notebook.read_text(encoding="utf-8"))
    pages.write(
        href,
        "executed.html",
        f"{record.title} on {record.machine.name}",
        framework=addresses.relative(addresses.framework(record.task, record.framework), href),
        record={"title": record.title, "machine": record.machine.name, "preset": record.preset},
        json=Path(addresses.record(record)).name,
        ipynb=Path(addresses.record(record, ".ipynb")).name,
        body=_executed(pages, record, notebook, href),
    )


def _executed(pages: Pages, record: Record, notebook: Path, href: str) -> Markup:
    """An executed notebook for the page at href. Its links were written where its source lies."""
    source = NOTEBOOKS / record.task / notebook.name
    return executed.body(notebook, lambda text: pages.markup(text, source, href))


def _most_telling(found: list[Record]) -> Record | None:
    """Of the runs that left an executed notebook the longest on real data, and of those the newest."""
    there = [one for one in found if one.status == "ok" and one.notebook.executed and one.preset in PRESETS]
    order = [(not one.dataset.synthetic, PRESETS.index(one.preset), one.started) for one in there]
    return there[order.index(max(order))] if there else None


def _state(framework: Framework) -> str:
    """Living or retired, and since when."""
    if framework.retired:
        return f"retired: first release {framework.released}, last release {framework.retired}"
    return f"living, first release {framework.released}"


def _installed(rows: list[Row]) -> list[Installed]:
    """An entry for each environment that the rows run in, with the pins of what it was made for."""
    found = []
    for name in dict.fromkeys(row.environment for row in rows):
        loaded = environments.load(name)
        titles = ", ".join(row.title for row in rows if row.environment == name)
        found.append(Installed(titles, name, loaded.recipe.python, ", ".join(_asked_for(loaded.folder))))
    return found


def _asked_for(folder: Path) -> list[str]:
    """The packages that an environment names, with their versions."""
    text = (folder / "requirements.in").read_text(encoding="utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line.replace("==", " ") for line in lines if line and not line.startswith("-")]


def _lessons(title: str, text: str) -> list[str]:
    """The items of the lessons page that name a framework, as Markdown."""
    return [
        " ".join(match[0].removeprefix("- ").split())
        for match in LESSON.finditer(text)
        if any(name.strip() in title for name in match["names"].split(","))
    ]


def _record_rows(found: list[Record], href: str) -> list[dict]:
    """The table of a framework's records, for the page at href."""
    return [
        {
            "title": record.title + ("" if record.seed is None else f", seed {record.seed}"),
            "label": f"{record.title} on {record.machine.name}, {record.preset}",
            "machine": record.machine.name,
            "preset": record.preset + (", synthetic" if record.dataset.synthetic else ""),
            "status": record.status,
            "accuracy": PERCENT.one(record.metrics.accuracy),
            "accuracy_value": record.metrics.accuracy or "",
            "train": SECONDS.one(record.metrics.train_s),
            "train_value": record.metrics.train_s or "",
            "executed": _relative(addresses.executed(record), href),
            "json": _relative(addresses.record(record), href),
        }
        for record in found
    ]


def _relative(target: str | None, href: str) -> str | None:
    return None if target is None else addresses.relative(target, href)
