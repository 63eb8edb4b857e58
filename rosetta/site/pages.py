"""The pages as files: templates, addresses, and where a link between files of the repository leads on the site."""

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rosetta.paths import ROOT
from rosetta.site import addresses, prose
from rosetta.tasks import Task

NAME = "Deep Learning Rosetta Stone"
GITHUB = re.compile(r"(?:https://|git@|ssh://git@)github\.com[:/](?P<name>[^/]+/[^/]+?)(?:\.git)?/?$")


def home(remote: str | None) -> str | None:
    """The address on the web of a repository that git knows as ``remote``; None for one that is only a path or a private host."""
    found = GITHUB.match(remote or "")
    return f"https://github.com/{found['name']}" if found else None


@dataclass(frozen=True)
class Link:
    title: str
    href: str


@dataclass
class Pages:
    """The site below ``out``. repository: address of its home on the web, for links to files that are no page."""

    out: Path
    repository: str | None
    commit: str | None
    _templates: Environment = field(init=False)

    def __post_init__(self):
        self._templates = Environment(
            loader=PackageLoader("rosetta.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals["site"] = {
            "name": NAME,
            "repository": self.repository,
            "commit": self.commit,
            "navigation": [
                Link("Tasks", addresses.INDEX),
                Link("Results", addresses.OVERVIEW),
                Link("Proof", addresses.PROOF),
            ],
        }

    @property
    def colab(self) -> str | None:
        """Where Colab opens files of the repository; None unless that is on GitHub."""
        found = GITHUB.match(self.repository or "")
        return f"https://colab.research.google.com/github/{found['name']}/blob/main/" if found else None

    def write(
        self, href: str, template: str, title: str, here: str = "", task: Task | None = None, **context: Any
    ) -> None:
        """Render a template to a page. href: of the page, from the root of the site; here: its entry of the navigation.

        task: whose page it is; the navigation then leads to that task's other pages.
        """
        context |= {
            "root": addresses.root(href),
            "title": title,
            "here": here,
            "task": task,
            "of_task": [Link(folder.capitalize(), addresses.of_task(folder, task.key)) for folder in addresses.OF_TASKS]
            if task
            else [],
            "address": partial(self._address, href),
        }
        self.save(href, self._templates.get_template(template).render(context))

    def _address(self, href: str, target: Any) -> str | None:
        """What a table's cell leads to, seen from a page."""
        found = addresses.of_target(target)
        return found and addresses.relative(found, href)

    def save(self, href: str, text: str) -> None:
        target = self.out / href
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def markup(self, text: str, source: Path, href: str) -> Markup:
        """Markdown of a file as HTML for the page at href."""
        return Markup(prose.markup(text, source.parent, partial(self._resolve, href)))

    def _resolve(self, href: str, file: Path, fragment: str) -> str | None:
        """The address, seen from a page, of what a file of the repository became; None where it is nowhere."""
        target = addresses.of_file(file)
        if target is not None:
            return addresses.relative(target + fragment, href)
        if self.repository and file.is_relative_to(ROOT):
            return f"{self.repository}/blob/main/{file.relative_to(ROOT).as_posix()}{fragment}"
        return None
