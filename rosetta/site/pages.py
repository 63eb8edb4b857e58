"""The pages as files: templates, addresses, and where a link between files of the repository leads on the site."""

import re
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rosetta.paths import ROOT
from rosetta.site import addresses, highlight, prose
from rosetta.site.content import TaskContent

NAME = "Deep Learning Rosetta Stone"
NAVIGATION = {"Tasks": addresses.INDEX, "Results": addresses.OVERVIEW, "Proof": addresses.PROOF}
GITHUB = re.compile(r"(?:https://|git@|ssh://git@)github\.com[:/](?P<name>[^/]+/[^/]+?)(?:\.git)?/?$")


def home(remote: str | None) -> str | None:
    """The address on the web of a repository that git knows as ``remote``; None for one that is only a path or a private host."""
    found = GITHUB.match(remote or "")
    return f"https://github.com/{found['name']}" if found else None


class Pages:
    """The site below ``out``. repository: address of its home on the web, for links to files that are no page.

    branch: of the repository, the one that the site is published from; ``colab`` is what opens a notebook of it, or None.
    All templates have ``site``, ``to`` (the addresses, from the root of the site) and ``lines`` (of Python, as HTML).
    """

    def __init__(self, out: Path, repository: str | None, commit: str | None, branch: str | None = None):
        self.out, self.repository, self.commit = out, repository, commit
        found = GITHUB.match(repository or "") if branch else None
        self.colab = found and f"https://colab.research.google.com/github/{found['name']}/blob/{branch}/"
        self._templates = Environment(
            loader=PackageLoader("rosetta.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        site = {"name": NAME, "navigation": NAVIGATION, "repository": repository, "commit": commit}
        self._templates.globals |= {"site": site, "to": addresses, "lines": highlight.lines}

    def write_of_task(self, folder: str, content: TaskContent, **context: Any) -> None:
        """A page that each task has one of; its folder has a template of that name."""
        heading, href = folder.capitalize(), addresses.of_task(folder, content.key)
        self.write(href, f"{folder}.html", f"{heading}: {content.task.title}", heading, content, **context)

    def write(
        self, href: str, template: str, title: str, here: str = "", content: TaskContent | None = None, **context: Any
    ) -> None:
        """Render a template to a page. href: of the page, from the root of the site; here: its entry of the navigation.

        content: of the task whose page it is; the navigation then leads to that task's other pages.
        """
        context |= {
            "root": addresses.root(href),
            "title": title,
            "here": here,
            "content": content,
            "task": content and content.task,
            "address": partial(self._address, href),
            "markup": partial(self.markup, href=href),
        }
        self.save(href, self._templates.get_template(template).render(context))

    def _address(self, href: str, target: Any) -> str | None:
        """What a table's cell leads to, or an address from the root of the site, seen from a page."""
        found = addresses.of_target(target)
        return found and addresses.relative(found, href)

    def save(self, href: str, text: str) -> None:
        target = self.out / href
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def markup(self, text: str, folder: Path, href: str) -> Markup:
        """Markdown of a file in this folder as HTML for the page at href."""
        return prose.markup(text, folder, partial(self._resolve, href))

    def _resolve(self, href: str, file: Path, fragment: str) -> str | None:
        """The address, seen from a page, of what a file of the repository became; None where it is nowhere."""
        target = addresses.of_file(file)
        if target is not None:
            return addresses.relative(target + fragment, href)
        if self.repository and file.is_relative_to(ROOT):
            return f"{self.repository}/blob/main/{file.relative_to(ROOT).as_posix()}{fragment}"
        return None
