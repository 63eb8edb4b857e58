"""A framework's page in one task: what it is, how it is installed here, its records, conformance and lessons; and its executed notebooks."""

import re
from pathlib import Path

from markupsafe import Markup

from rosetta import records
from rosetta.catalog import Row
from rosetta.paths import ROOT
from rosetta.records import Record
from rosetta.report import tables
from rosetta.run import environments
from rosetta.run.environments import Environment
from rosetta.site import addresses, executed, standalone
from rosetta.site.content import TaskContent
from rosetta.site.pages import Pages
from rosetta.site.programs import REFERENCE
from rosetta.tasks import PRESETS

LESSONS = ROOT / "docs" / "lessons.md"
LESSON = re.compile(r"^- \*\*(?P<names>[^*]+)\*\*.*(?:\n  .*)*", re.MULTILINE)


def write(pages: Pages, content: TaskContent, key: str, others: list[TaskContent], folder: Path) -> None:
    """others: the tasks that have a page of this framework too. folder: where the records lie."""
    framework, program, rows = content.frameworks[key], content.programs[key], content.of_framework(key)
    href, notebook = addresses.framework(content.key, key), addresses.notebook(content.key, key)
    pages.save(notebook, standalone.text(rows[0], pages.repository, pages.commit))
    shown = most_telling([record for record in content.results.records if record.framework == key])
    pages.write(
        href,
        "framework.html",
        framework.title,
        "",
        content,
        framework=framework,
        program=program,
        environments=_installed(rows),
        notebook=notebook,
        colab=pages.colab and standalone.hosted(rows[0]) and pages.colab + notebook,
        comparisons=_comparisons(content, rows),
        others=others,
        records=tables.of_framework(content.results, key),
        verified=[(row.title, content.badges[row.name]) for row in rows if row.name in content.badges],
        lessons=_lessons(framework.title, LESSONS.read_text(encoding="utf-8")),
        lessons_folder=LESSONS.parent,
        shown=shown,
        body=shown and _executed(pages, content, shown, folder, href),
        headings={role.name: role.heading for role in content.task.kind.roles},
    )


def _comparisons(content: TaskContent, rows: list[Row]) -> list[tuple[str, list[str]]]:
    """What to compare a framework with, and the columns: the reference, the first other framework, its own variants."""
    first = rows[0].name
    chosen = [("with the reference", [first, REFERENCE])] if content.reference else []
    other = next((row for row in content.rows if row.framework != rows[0].framework and row.variant is None), None)
    if other:
        chosen.append((f"with {other.title}", [first, other.name]))
    if len(rows) > 1:
        chosen.append(("its variants", [row.name for row in rows][:4]))
    return chosen


def write_record(pages: Pages, content: TaskContent, record: Record, folder: Path) -> None:
    """The record as it is, and the executed notebook as a file and as a page."""
    source = records.path(record, folder)
    pages.save(addresses.record(record), source.read_text(encoding="utf-8"))
    href = addresses.executed(record)
    if href is None:
        return
    notebook = source.parent / record.notebook.executed
    pages.save(addresses.record(record, ".ipynb"), notebook.read_text(encoding="utf-8"))
    body = _executed(pages, content, record, folder, href)
    title = f"{record.title} on {record.machine.name}"
    pages.write(href, "executed.html", title, "", content, record=record, body=body)


def _executed(pages: Pages, content: TaskContent, record: Record, folder: Path, href: str) -> Markup:
    """An executed notebook for the page at href. Its links were written where its source lies."""
    notebook = records.path(record, folder).parent / record.notebook.executed
    return executed.body(notebook, lambda text: pages.markup(text, content.task.folder, href))


def most_telling(own: list[Record]) -> Record | None:
    """Of the runs that left an executed notebook the longest on real data, and of those the newest."""
    return max(
        (record for record in own if record.status == "ok" and record.notebook.executed),
        key=lambda record: (not record.dataset.synthetic, PRESETS.index(record.preset), record.started),
        default=None,
    )


def _installed(rows: list[Row]) -> list[tuple[Environment, str, str]]:
    """Each environment that the rows run in, with their titles and the pins of what it was made for."""
    installed = []
    for name in dict.fromkeys(row.environment for row in rows):
        environment = environments.load(name)
        titles = ", ".join(row.title for row in rows if row.environment == name)
        installed.append((environment, titles, ", ".join(_asked_for(environment.folder))))
    return installed


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
