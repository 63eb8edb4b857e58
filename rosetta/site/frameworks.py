"""A framework's page in one task: what it is, how it is installed here, its records, conformance and lessons; and its executed notebooks."""

import re
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from rosetta import records
from rosetta.catalog import Framework, Row
from rosetta.paths import ROOT, from_root
from rosetta.records import Record
from rosetta.report import tables
from rosetta.run import environments
from rosetta.site import addresses, executed, highlight
from rosetta.site.content import TaskContent
from rosetta.site.pages import Link, Pages
from rosetta.site.programs import REFERENCE
from rosetta.tasks import PRESETS

LESSONS = ROOT / "docs" / "lessons.md"
LESSON = re.compile(r"^- \*\*(?P<names>[^*]+)\*\*.*(?:\n  .*)*", re.MULTILINE)


@dataclass(frozen=True)
class Installed:
    """How some rows of a framework get their packages here."""

    rows: str
    name: str
    python: str
    packages: str


def write(pages: Pages, content: TaskContent, key: str, others: list[TaskContent], folder: Path) -> None:
    """others: the tasks that have a page of this framework too. folder: where the records lie."""
    task, framework, program = content.task, content.frameworks[key], content.programs[key]
    href, rows = addresses.framework(task.key, key), content.of_framework(key)
    path, copy = from_root(program.path), addresses.notebook(task.key, key)
    pages.save(copy, program.path.read_text(encoding="utf-8"))
    constants = addresses.relative(addresses.of_task("network", task.key), href)
    own = [record for record in content.results.records if record.framework == key]
    shown = _most_telling(own)
    headings = {role.name: role.heading for role in task.kind.roles}
    pages.write(
        href,
        "framework.html",
        framework.title,
        "",
        task,
        framework=framework,
        state=_state(framework),
        intro=pages.markup(program.intro, program.path, href),
        environments=_installed(rows),
        notebook={
            "href": addresses.relative(copy, href),
            "name": program.path.name,
            "key": key,
            "source": f"{pages.repository}/blob/main/{path}" if pages.colab else None,
            "colab": f"{pages.colab}{path}" if pages.colab else None,
        },
        compare=_comparisons(content, rows, href),
        others=[
            Link(other.task.title, addresses.relative(addresses.framework(other.key, key), href)) for other in others
        ],
        records=tables.of_framework(content.results, key),
        conformance=[(row.title, content.badges[row.name]) for row in rows if row.name in content.badges],
        lessons=[
            pages.markup(lesson, LESSONS, href)
            for lesson in _lessons(framework.title, LESSONS.read_text(encoding="utf-8"))
        ],
        executed=shown
        and {
            "body": _executed(pages, content, shown, folder, href),
            "where": f"{shown.title} on {shown.machine.name}, {shown.preset}, {shown.started:%Y-%m-%d}",
        },
        sections=[
            {
                "heading": headings[section.role],
                "note": pages.markup(section.note, program.path, href),
                "code": [Markup(line) for line in highlight.lines(section.code, content.constants, constants)],
            }
            for section in program.sections
        ],
    )


def _comparisons(content: TaskContent, rows: list[Row], href: str) -> list[Link]:
    """Ways to the compare page: with the reference, with the first other framework, and among the framework's own variants."""
    first = rows[0].name
    chosen = [("with the reference", [first, REFERENCE])] if content.reference else []
    other = next((row for row in content.rows if row.framework != rows[0].framework and row.variant is None), None)
    if other:
        chosen.append((f"with {other.title}", [first, other.name]))
    if len(rows) > 1:
        chosen.append(("its variants", [row.name for row in rows][:4]))
    return [Link(title, addresses.relative(addresses.compare(content.key, names), href)) for title, names in chosen]


def write_record(pages: Pages, content: TaskContent, record: Record, folder: Path) -> None:
    """The record as it is, and the executed notebook as a file and as a page."""
    source = records.path(record, folder)
    pages.save(addresses.record(record), source.read_text(encoding="utf-8"))
    href = addresses.executed(record)
    if href is None:
        return
    copy = addresses.record(record, ".ipynb")
    pages.save(copy, (source.parent / record.notebook.executed).read_text(encoding="utf-8"))
    pages.write(
        href,
        "executed.html",
        f"{record.title} on {record.machine.name}",
        "",
        content.task,
        framework=addresses.relative(addresses.framework(record.task, record.framework), href),
        record=record,
        json=Path(addresses.record(record)).name,
        ipynb=Path(copy).name,
        body=_executed(pages, content, record, folder, href),
    )


def _executed(pages: Pages, content: TaskContent, record: Record, folder: Path, href: str) -> Markup:
    """An executed notebook for the page at href. Its links were written where its source lies."""
    notebook = records.path(record, folder).parent / record.notebook.executed
    return executed.body(notebook, lambda text: pages.markup(text, content.task.folder / notebook.name, href))


def _most_telling(own: list[Record]) -> Record | None:
    """Of the runs that left an executed notebook the longest on real data, and of those the newest."""
    there = [one for one in own if one.status == "ok" and one.notebook.executed and one.preset in PRESETS]
    order = lambda one: (not one.dataset.synthetic, PRESETS.index(one.preset), one.started)  # noqa: E731
    return max(there, key=order, default=None)


def _state(framework: Framework) -> str:
    """Living or retired, and since when."""
    if framework.retired:
        return f"retired: first release {framework.released}, last release {framework.retired}"
    return f"living, first release {framework.released}"


def _installed(rows: list[Row]) -> list[Installed]:
    """An entry for each environment that the rows run in, with the pins of what it was made for."""
    installed = []
    for name in dict.fromkeys(row.environment for row in rows):
        loaded = environments.load(name)
        titles = ", ".join(row.title for row in rows if row.environment == name)
        installed.append(Installed(titles, name, loaded.recipe.python, ", ".join(_asked_for(loaded.folder))))
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
