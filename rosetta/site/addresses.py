"""Where everything is on the site. Addresses start at its root unless they are made ``relative`` to a page."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import quote, unquote

from rosetta import markdown, records
from rosetta.catalog import Row
from rosetta.paths import from_root
from rosetta.records import Record
from rosetta.report.tables import Executed

INDEX, OVERVIEW, PROOF, ABOUT = "index.html", "results.html", "docs/same-network.html", "about.html"
CHOICE = "choose.html"
LINK = re.compile(r'(?:href|src)="([^"]+)"')
PLACE = re.compile(r'\b(?:id|value|data-framework)="([^"]+)"|"program": "(\w+)"')  # what a fragment may name
FILES = {  # of the repository, and the page that each became
    r"README\.md": INDEX,
    r"results\.md": OVERVIEW,
    r"docs/README\.md": ABOUT,
    r"environments/README\.md": "docs/environments.html",
    r"(docs|results)/([^/]+)\.md": r"\1/\2.html",
    r"results/(conformance/[^/]+)\.md": r"\1.html",
    r"notebooks/([^/]+)/README\.md": r"network/\1.html",
    r"notebooks/([^/]+)/([^/]+)\.ipynb": r"frameworks/\2.html#\1",
    r"site/(.+)": r"\1",  # by a page's own address
}
OF_TASKS = ("compare", "concepts", "network", "results", "conformance")  # folders that hold a page a task


def of_task(folder: str, task: str) -> str:
    """A page that each task has one of; folder: one of ``OF_TASKS``."""
    return f"{folder}/{task}.html"


def entry(key: str, framework: str | None = None) -> str:
    """The page of a question, at a framework's answer."""
    return f"c/{key}.html" + (f"#{framework}" if framework else "")


def pair(one: str, other: str) -> str:
    """The page for a reader who knows the first framework and wants to write the second."""
    return f"from-{one}-to-{other}.html"


def compare(task: str, names: list[str], place: str | None = None) -> str:
    """These columns of the compare page. place: a step, or a concept whose lines are marked."""
    chosen = "+".join(quote(name, safe="") for name in names)
    return of_task("compare", task) + f"#{chosen}" + (f"/{place}" if place else "")


def framework(key: str, task: str | None = None) -> str:
    """The page of a framework, at its program for a task."""
    return f"frameworks/{key}.html" + (f"#{task}" if task else "")


def record(of: Record, suffix: str = ".json") -> str:
    """A file of a run: its record, or with ``.html`` the page of what its cells printed."""
    return records.path(of, Path("records"), suffix).as_posix()


def of_target(target: Row | Record | Executed | str | None) -> str | None:
    """The page that a table's cell leads to, or its address on the web; None where there is none."""
    match target:
        case Row():
            return None if target.facts.absent else framework(target.framework, target.task)
        case Record():
            return record(target)
        case Executed(of):
            return record(of, ".html") if of.notebook.executed else framework(of.framework, of.task)
    return target


def of_file(file: Path) -> str | None:
    """The page that a file of the repository became, from the root of the site; None for most."""
    for pattern, page in FILES.items():
        if found := re.fullmatch(pattern, from_root(file)):
            return found.expand(page)
    return None


def relative(target: str, href: str) -> str:
    """An address from the root of the site, as a page writes it; one on the web stays as it is."""
    if "://" in target:
        return target
    path, mark, fragment = target.partition("#")
    return markdown.link(Path(path), Path(href).parent) + mark + fragment


def wrong(out: Path) -> list[str]:
    """The links of a written site that lead to no file of it or to no place there, and its pages that no other page links to.

    A page of columns has an address such as ``#pytorch+flax/model``: each part is a place. Links that leave the site are not followed.
    """

    @cache
    def places(page: Path) -> set[str]:
        named = {"".join(found) for found in PLACE.findall(page.read_text(encoding="utf-8"))}
        return named | {"all", "none", "present"}  # of a page of columns

    found, linked = [], set()
    pages = set(out.rglob("*.html"))
    for page in sorted(pages):
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            path, _, fragment = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (page.parent / unquote(path)).resolve() if path else page
            linked |= {target} - {page}
            parts = re.split(r"[+/]", fragment) if target.parent.name in ("compare", "concepts") else [fragment]
            if not target.is_file():
                found.append(f"{page.relative_to(out)}: {link} leads to no file")
            elif fragment and target in pages and not {unquote(part) for part in parts if part} <= places(target):
                found.append(f"{page.relative_to(out)}: {link} leads to no place of that page")
    alone = pages - linked - {out / "404.html"}
    return found + [f"{page.relative_to(out)}: no page leads to it" for page in sorted(alone)]
