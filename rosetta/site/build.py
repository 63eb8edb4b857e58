"""Writes the whole site: a pure function of the checkout and the records on disk."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rosetta import catalog as catalogs
from rosetta import records
from rosetta.catalog import Catalog
from rosetta.errors import RosettaError
from rosetta.measure import protocols, tables
from rosetta.paths import ENVIRONMENTS, GIT, RESULTS, ROOT
from rosetta.records import Record
from rosetta.report.tables import Cell
from rosetta.site import addresses, frameworks, results, task_pages
from rosetta.site.content import TaskContent
from rosetta.site.pages import NAME, Pages, home
from rosetta.verify import conformance, kinds
from rosetta.verify import page as conformance_page

ASSETS = Path(__file__).resolve().parent / "assets"
SCALING = RESULTS / "scaling.md"  # by studies/scaling.py
MARK = ".rosetta-site"  # in a folder that holds a site, so that no other folder is ever emptied


def write(out: Path, folder: Path, repository: str | None, branch: str | None = None) -> Path:
    """Write the site of the records below ``folder``; an earlier one at ``out`` is replaced once the new one is whole.

    repository: its address on the web, or None for that of the checkout's ``origin``. branch: the one that the site is
    published from, if it is one of GitHub. Returns the path of the first page.
    """
    catalog = catalogs.load()
    every = [_with_its_files(file, record) for file, record in records.read_all(folder)]
    contents = [TaskContent.of(catalog, key, every, _badges(catalog, key, folder)) for key in catalog.tasks]
    with _replaced(out) as new:
        repository = repository or home(_git("remote", "get-url", "origin"))
        pages = Pages(new, repository, _git("rev-parse", "--short", "HEAD"), branch)
        shutil.copytree(ASSETS, new / "assets")
        for content in contents:
            task_pages.write_compare(pages, content, folder)
            task_pages.write_concepts(pages, content)
            task_pages.write_network(pages, content)
            for key in content.frameworks:
                others = [other for other in contents if key in other.frameworks and other is not content]
                frameworks.write(pages, content, key, others, folder)
            for record in content.results.records:
                frameworks.write_record(pages, content, record, folder)
            proofs = RESULTS / "conformance" / f"{content.key}.md"
            _document(pages, proofs, conformance_page.page(catalog, content.key, folder), "Conformance", content)
        results.write(pages, contents)
        documents = [
            _document(pages, file, file.read_text(encoding="utf-8"), "Proof" if file.stem == "same-network" else "")
            for file in [*sorted((ROOT / "docs").glob("*.md")), ENVIRONMENTS / "README.md"]
            if file.is_file() and file != ROOT / "docs" / "README.md"  # the pages' index
        ]
        for module in (tables, protocols):
            documents.append(_document(pages, RESULTS / module.PAGE, module.text(catalog, every, folder)))
        if SCALING.is_file():
            documents.append(_document(pages, SCALING, SCALING.read_text(encoding="utf-8")))
        pages.write(addresses.INDEX, "index.html", NAME, "Tasks", contents=contents, documents=documents)
    return out / addresses.INDEX


def _with_its_files(file: Path, record: Record) -> Record:
    """The record; it leads to no executed notebook where somebody has taken that away."""
    if record.notebook.executed and not file.with_name(record.notebook.executed).is_file():
        record.notebook.executed = None
    return record


def _badges(catalog: Catalog, key: str, folder: Path) -> dict[str, Cell]:
    """By row, how many levels it passes."""
    levels = len(kinds.proof(catalog.task(key).kind_name).LEVELS)
    badges = {}
    for row, line in conformance_page.found(catalog, key, conformance.read(folder, key)):
        passed = sum(finding.passed for finding in line.findings)
        way, badge = addresses.of_task("conformance", key), "good" if line.passed else "bad"
        badges[row.name] = Cell("stale" if line.stale else f"{passed} of {levels} levels", to=way, badge=badge)
    return badges


@contextmanager
def _replaced(out: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``out``. Raises RosettaError where that holds something else than a site."""
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise RosettaError(f"{out} is not empty and holds no earlier site: name another folder with --to")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
            new = Path(folder) / out.name  # one more folder, since a temporary one is its owner's alone
            new.mkdir()
            (new / MARK).touch()
            yield new
            if out.exists():
                shutil.rmtree(out)
            new.rename(out)
    except OSError as error:
        raise RosettaError(f"cannot write {out}: {error.strerror or error}") from None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run([*GIT, *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _document(
    pages: Pages, source: Path, text: str, here: str = "", content: TaskContent | None = None
) -> tuple[str, str]:
    """A page of Markdown; returns its title and address."""
    href, title = addresses.of_file(source), text.partition("\n")[0].removeprefix("# ")
    pages.write(href, "document.html", title, here, content, text=text, base=source.parent)
    return title, href
