"""What a script can find in the pages and notebooks: long lines, links that lead nowhere, commands that do not exist."""

import re
import shlex
from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt

from common.params import networks
from common.reference import networks as reference
from rosetta import catalog, cli, markdown
from rosetta.report import pages
from rosetta.site import html
from tests.standin import ROOT

LINE = 120
PAGES = sorted(
    [ROOT / "README.md", ROOT / "environments/README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("notebooks/*/README.md")]
)
NOTEBOOKS = sorted({row.notebook for row in catalog.load().rows()})
COMMAND = re.compile(
    r"(?:\$ )?(?:[\w./-]+=\S+ )*(?:.*&& )?(?:python3? (?:-m )?)?(?:uv run (?:--\S+ (?:site|cluster) )?)?"
    r"(?:python3? )?run_all\.py\b(.*)"
)
MARKDOWN = MarkdownIt("commonmark").enable("table")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def texts(path: Path) -> list[str]:
    """The texts of a page, or of a notebook's cells."""
    if path.suffix == ".ipynb":
        return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    return [path.read_text(encoding="utf-8")]


def links(text: str) -> list[str]:
    return [
        child.attrs["href"]
        for token in MARKDOWN.parse(text)
        if token.type == "inline"
        for child in token.children
        if child.type == "link_open"
    ]


def anchors(page: Path) -> set[str]:
    return {html.place(heading) for heading in re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))}


def commands(text: str) -> list[list[str]]:
    """The arguments of every ``run_all.py`` in a text's blocks of code and between its backticks."""
    found = []
    for token in MARKDOWN.parse(text):
        inline = [child.content for child in token.children or [] if child.type == "code_inline"]
        code = token.content.splitlines() if token.type in ("code_block", "fence") else inline
        for line in code:
            start = COMMAND.match(line)
            if start and "..." not in start[1]:
                found.append(shlex.split(start[1], comments=True))
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_lines_fit(page):
    """But for tables, addresses and blocks of code that show what a command printed."""
    text = page.read_text(encoding="utf-8")
    by_hand = markdown.fill(text, {name: lambda: "" for name in markdown.blocks(text)})
    excused = ("|", "    ", "[//]:")
    lines = [line for line in by_hand.splitlines() if not line.startswith(excused) and "](" not in line]
    assert not [line for line in lines if len(line) > LINE]


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=named)
def test_links_lead_somewhere(page):
    lost = []
    for link in {link for text in texts(page) for link in links(text)}:
        path, _, anchor = link.partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or anchor and target.suffix == ".md" and anchor not in anchors(target):
            lost.append(link)
    assert not lost


@pytest.fixture(scope="module")
def command_line():
    """The real command line, whose commands do nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for _, command in pages.commands(cli.app):
            patch.setattr(command, "callback", lambda **_: None)
        yield cli.app


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_exist(page, command_line):
    for arguments in commands(page.read_text(encoding="utf-8")):
        command_line.main(cli.completed(arguments), standalone_mode=False)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) <= 6000


def test_table_of_networks_says_what_their_lists_of_layers_come_to():
    page = (ROOT / "notebooks" / "networks" / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| `(\w+)` \| .* \| ([\d,]+) \| ([\d,.]+) \| [^|]+ \|$", page, re.MULTILINE)
    every = [(name, networks.network(name)) for name in networks.NETWORKS]
    assert lines == [(name, f"{one.PARAMETERS:,}", f"{one.MULTIPLY_ADDS / 1e6:,.1f}") for name, one in every]
    flavours = re.findall(r"^\| `([\w ]+)` \| ([\d,]+) \|$", page, re.MULTILINE)
    counts = {name: reference.of(name).network("lstm").PARAMETERS for name in networks.FLAVOURS}
    assert flavours == [(name, f"{count:,}") for name, count in counts.items()]
