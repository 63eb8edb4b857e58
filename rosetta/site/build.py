"""Writes the whole site: a pure function of the checkout and the records on disk."""

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rosetta import catalog as catalogs
from rosetta import records
from rosetta.errors import RosettaError
from rosetta.measure import protocols, tables
from rosetta.paths import checkout
from rosetta.records import Record
from rosetta.site import addresses, html, pages
from rosetta.site.pages import Pages, TaskContent
from rosetta.verify import conformance

ASSETS = Path(__file__).resolve().parent / "assets"
EXAMPLES = 2  # frameworks on the first page beside those that a comparison begins with: the last ones of the catalog
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"
MARK = ".rosetta-site"  # in a folder that holds a site, so that no other folder is ever emptied


def write(
    out: Path, folder: Path, repository: str | None, branch: str | None = None, address: str | None = None
) -> Path:
    """Write the site of the records below ``folder``; an earlier one at ``out`` is replaced once the new one is whole.

    repository: its address on the web, or None for that of the checkout's ``origin``. branch: the one that the site is
    published from, if it is one of GitHub. address: of the site itself on the web: pages name theirs, and a map lists them.
    Returns the path of the first page.
    """
    catalog = catalogs.load()
    every = [_with_its_files(file, record) for file, record in records.read_all(folder)]
    contents = [TaskContent(catalog, key, every, folder) for key in catalog.tasks]
    with _replaced(out) as new:
        repository = repository or pages.home(_git("remote", "get-url", "origin"))
        site = Pages(new, folder, catalog, contents, repository, _git("rev-parse", "--short", "HEAD"), branch, address)
        shutil.copytree(ASSETS, new / "assets")
        for content in contents:
            pages.write_task(site, content)
            entries = [entry(record) for record in content.results.records]
            site.save(f"results/{content.key}.json", json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
            site.save(f"results/{content.key}.csv", spreadsheet(entries))
            proofs = checkout.results / "conformance" / f"{content.key}.md"
            _write_document(site, proofs, conformance.page(catalog, content.key, folder), content)
        for key in site.frameworks:
            pages.write_framework(site, key)
        pages.write_results(site)
        pages.write_choice(site)
        written = [*sorted(checkout.docs.glob("*.md")), checkout.environments / "README.md"]
        index = checkout.docs / "README.md"
        texts = {file: file.read_text(encoding="utf-8") for file in written if file != index and file.is_file()}
        texts |= {checkout.results / module.PAGE: module.text(catalog, every, folder) for module in (tables, protocols)}
        scaling = checkout.results / "scaling.md"  # by studies/scaling.py
        texts |= {scaling: scaling.read_text(encoding="utf-8")} if scaling.is_file() else {}
        documents, found = [], []
        for file, text in texts.items():
            title, href = _write_document(site, file, text)
            documents.append((title, href))
            headings = [(f"{title}: {heading}", f"{href}#{html.place(heading)}") for heading in HEADING.findall(text)]
            found += [(title, href), *headings]
        pages.write_search(site, found)
        shown = [*dict.fromkeys([*catalog.compared, *list(site.frameworks)[-EXAMPLES:]])]
        site.write(addresses.INDEX, "index.html", pages.NAME, "Home", frameworks=site.frameworks, shown=shown)
        site.write(addresses.ABOUT, "about.html", "About", "About", documents=documents)
        if address:
            _write_map(site, address)
    return out / addresses.INDEX


def _write_map(site: Pages, address: str) -> None:
    """What a host and search engines ask for: the list of all pages, and the page for an address that leads nowhere."""
    written = sorted(file.relative_to(site.out).as_posix() for file in site.out.rglob("*.html"))
    listed = "".join(f"<url><loc>{escape(address + href)}</loc></url>\n" for href in written)
    site.save("sitemap.xml", f'<?xml version="1.0"?>\n<urlset xmlns="{SITEMAP}">\n{listed}</urlset>\n')
    preview = checkout.docs / "pictures" / "compare.png"
    if preview.is_file():
        shutil.copy(preview, site.out / "assets" / "preview.png")
    site.save("robots.txt", f"Sitemap: {address}sitemap.xml\n")
    gone = f'<p>Nothing is at this address. <a href="{escape(address)}">Search here</a>.</p>'
    site.save(
        "404.html", f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{pages.NAME}</title>{gone}</html>\n'
    )


def _with_its_files(file: Path, record: Record) -> Record:
    """The record; it leads to no executed notebook where somebody has taken that away."""
    if record.notebook.executed and not file.with_name(record.notebook.executed).is_file():
        record.notebook.executed = None
    return record


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
        done = subprocess.run([*checkout.git, *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _write_document(site: Pages, source: Path, text: str, content: TaskContent | None = None) -> tuple[str, str]:
    """A page of Markdown; returns its title and address. content: of the task whose conformance it shows."""
    href, title = addresses.of_file(source), text.partition("\n")[0].removeprefix("# ")
    here = "Conformance" if content else "How we know" if href == addresses.PROOF else ""
    site.write(href, "document.html", title, here, content, text=text, base=source.parent)
    return title, href


# ---- All records of a task as one file: CSV for a spreadsheet, and JSON, which has lists such as the loss of each epoch too


def entry(record: Record) -> dict[str, Any]:
    """What a run was, then its metrics under their own names: times in seconds, memory in bytes."""
    return {
        "row": record.name,
        "framework": record.framework,
        "title": record.title,
        "machine": record.machine.name,
        "gpus": [gpu.name for gpu in record.machine.gpus],
        "device": record.device,
        "preset": record.preset,
        "changed": record.changed,
        "synthetic": record.dataset.synthetic,
        "seed": record.seed,
        "status": record.status,
        "started": record.started.isoformat(),
        "versions": record.versions,
        **record.metrics.model_dump(mode="json"),
        "record": addresses.record(record),
    }


def spreadsheet(entries: list[dict[str, Any]]) -> str:
    """The entries as CSV; what has several values is one text."""
    names = dict.fromkeys(name for one in entries for name in one)
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _flat(value) for name, value in one.items()} for one in entries)
    return text.getvalue()


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return _flat(f"{name} {inside}" for name, inside in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "; ".join(str(inside) for inside in value)
    return value
