"""Writes the whole site: a pure function of the checkout and the records on disk."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rosetta import catalog as catalogs
from rosetta import records
from rosetta.catalog import Catalog, Framework
from rosetta.errors import RosettaError
from rosetta.paths import ROOT
from rosetta.site import addresses, compare, concept_table, frameworks, network, results
from rosetta.site import task as tasks_of
from rosetta.site.pages import NAME, Link, Pages, home
from rosetta.site.task import Task
from rosetta.verify import conformance
from rosetta.verify import page as conformance_page
from rosetta.verify.levels import LEVELS

ASSETS = Path(__file__).resolve().parent / "assets"
MARK = ".rosetta-site"  # in a folder that holds a site, so that no other folder is ever emptied


def write(out: Path, folder: Path, repository: str | None) -> Path:
    """Write the site of the records below ``folder``; an earlier one at ``out`` is replaced once the new one is whole.

    repository: its address on the web, or None for that of the checkout's ``origin``. Returns the path of the first page.
    """
    catalog = catalogs.load()
    found = [record for _, record in records.read_all(folder)]
    verified = conformance.read(folder).rows
    tasks = [tasks_of.make(catalog, key, found, verified) for key in catalog.tasks]
    with _replaced(out) as new:
        pages = Pages(
            new,
            repository or home(_git("remote", "get-url", "origin")),
            _git("rev-parse", "--short", "HEAD"),
            _navigation(tasks[0].key),
        )
        shutil.copytree(ASSETS, new / "assets")
        for task in tasks:
            compare.write(pages, task)
            concept_table.write(pages, task)
            network.write(pages, task)
            for key in task.frameworks:
                frameworks.write(pages, task, key, folder)
            for record in task.records:
                frameworks.write_record(pages, record, folder)
        results.write(pages, tasks)
        _index(pages, tasks, _documents(pages, catalog, folder))
    return out / "index.html"


def _navigation(task: str) -> list[Link]:
    return [
        Link("Compare", addresses.compare(task)),
        Link("Concepts", addresses.concepts(task)),
        Link("Network", addresses.network(task)),
        Link("Results", results.PAGE),
        Link("Proof", "docs/same-network.html"),
    ]


@contextmanager
def _replaced(out: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``out``. Raises RosettaError where that holds something else than a site."""
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise RosettaError(f"{out} is not empty and holds no earlier site: name another folder with --to")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
        try:
            (new / MARK).touch()
            yield new
            new.chmod(0o755)  # temporary folders are their owner's alone
            if out.exists():
                shutil.rmtree(out)
            new.rename(out)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise RosettaError(f"cannot write {out}: {error.strerror or error}") from None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _documents(pages: Pages, catalog: Catalog, folder: Path) -> list[Link]:
    """Every page of docs/ but the definitions of networks, and the conformance page of these records."""
    files = [file for file in sorted((ROOT / "docs").glob("*.md")) if not addresses.is_definition(file)]
    sources = {file: file.read_text(encoding="utf-8") for file in files}
    sources[ROOT / "results" / "conformance.md"] = conformance_page.page(catalog, folder)
    links = []
    for source, text in sources.items():
        href = addresses.of_file(source)
        title = text.partition("\n")[0].removeprefix("# ")
        here = "Proof" if source.stem == "same-network" else ""
        pages.write(href, "document.html", title, here, body=pages.markup(text, source, href))
        links.append(Link(title, href))
    return links


def _index(pages: Pages, tasks: list[Task], documents: list[Link]) -> None:
    pages.write(
        "index.html",
        "index.html",
        NAME,
        tasks=[
            {
                "title": task.title,
                "compare": addresses.compare(task.key),
                "concepts": addresses.concepts(task.key),
                "network": addresses.network(task.key),
                "n_concepts": len(task.concepts),
                "conformance": _proof(task),
                "frameworks": [
                    {
                        "href": addresses.framework(task.key, key),
                        "title": framework.title,
                        "years": _years(framework),
                    }
                    for key, framework in task.frameworks.items()
                ],
            }
            for task in tasks
        ],
        pages=documents,
    )


def _proof(task: Task) -> str:
    passed = sum(one.passed for one in task.verified.values())
    return f"{passed} of {len(task.rows)} rows pass all {len(LEVELS)} levels against the reference in NumPy"


def _years(framework: Framework) -> str:
    return f"{framework.released} - {framework.retired}" if framework.retired else f"since {framework.released}"
