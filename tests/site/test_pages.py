"""All pages in a browser: they open without an error, ask nothing of the network, and are accessible; the teaching page."""

import re
import subprocess
import sys
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from rosetta import entries
from rosetta.cli import app
from rosetta.paths import checkout
from rosetta.site import addresses, build
from tests.test_report import CATALOG, TASK


def of_task(key: str) -> list[str]:
    """A page of each sort, with content."""
    rows = CATALOG.rows(key)
    names = [quote(row.name, safe="") for row in rows[:2]]
    programs = [
        f"compare/{key}.html#{'+'.join([*names, 'reference'])}",
        f"concepts/{key}.html#{'+'.join(row.framework for row in rows[:2])}",
    ]
    asked = CATALOG.task(key).folder / "entries.toml"
    questions = (
        [addresses.entry(one) for one in list(entries.load(asked.parent).entries)[:2]] if asked.is_file() else []
    )
    return [
        *(questions or programs),
        f"network/{key}.html",
        f"results/{key}.html",
        f"conformance/{key}.html",
    ]


FIXED = [
    "index.html",
    "about.html",
    "results.html",
    addresses.PROOF,
    "frameworks/cntk.html",
    "from-pytorch-to-flax.html",
]
PAGES = [*FIXED, *(page for key in CATALOG.tasks for page in of_task(key))]


def name(href: str) -> str:
    return re.sub(r"\W+", "-", href.partition(".html")[0])


@pytest.mark.drawn(6)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("href", PAGES, ids=name)
def test_no_serious_accessibility_fault(window, site, screenshot, href, scheme):
    reader = window(site, scheme=scheme)
    page = reader.open(href)
    page.wait_for_load_state("networkidle")
    screenshot(page)
    assert not reader.faults()


@pytest.mark.parametrize("href", PAGES, ids=name)
def test_fits_a_phone(window, site, screenshot, href):
    reader = window(site, width=390, height=844)
    page = reader.open(href)
    page.wait_for_load_state("networkidle")
    screenshot(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_link_leads_somewhere(site):
    assert addresses.wrong(site) == []


GONE = """
<a href="gone.html"><a href="#here" id="here"><a href="#there"><a href="compare/a.html#x+y/model">
<a href="compare/a.html#x+z/model"><a href="https://elsewhere.example/#any">"""


@pytest.mark.parametrize(
    "first, wrong",
    [
        ('<a href="compare/a.html#x"><a href="alone.html">', []),
        (
            GONE,
            [
                "index.html: gone.html leads to no file",
                "index.html: #there leads to no place of that page",
                "index.html: compare/a.html#x+z/model leads to no place of that page",
                "alone.html: no page leads to it",
            ],
        ),
    ],
)
def test_check_tells_links_that_lead_nowhere(tmp_path, monkeypatch, first, wrong):
    (tmp_path / "compare").mkdir()
    (tmp_path / "index.html").write_text(first)
    (tmp_path / "compare" / "a.html").write_text(
        '<option value="x"><option value="y"><p id="model"><a href="../index.html">'
    )
    (tmp_path / "alone.html").touch()
    monkeypatch.setattr(build, "write", lambda *_: tmp_path / "index.html")
    done = CliRunner().invoke(app, ["site", "--check", "--to", str(tmp_path)])
    assert done.exit_code == bool(wrong) and done.stdout.splitlines()[1:] == wrong


def test_theme_and_size_are_kept(reader):
    page = reader.open("index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Change the theme").click()
    page.get_by_role("button", name="Larger type").click()
    dark = page.evaluate(background)
    assert dark != light
    page = reader.open("results.html")
    assert page.evaluate(background) == dark
    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "20px"


def test_without_scripts_all_but_the_comparison_is_there(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{site}/concepts/{TASK}.html")
    assert page.locator("thead th:visible").count() == 1 + len({row.framework for row in CATALOG.rows(TASK)})
    page.goto(f"file://{site}/compare/{TASK}.html")
    assert "needs JavaScript" in page.locator("noscript").inner_text()
    page.goto(f"file://{site}/frameworks/flax.html")
    assert "nnx.value_and_grad" in page.locator("main").inner_text()
    context.close()


# ---- The teaching page as a class uses it

TEXT = (checkout.root / "docs" / "teaching.md").read_text(encoding="utf-8")
LESSONS = TEXT.split("\n## ")[2:]
COMMANDS = re.findall(
    r"^    \.venv/bin/python -c '\n([^']*)'\n(?:(?!\*\*Exercise).)*?\*Answer\*: `([^`]+)`",
    TEXT,
    re.DOTALL | re.MULTILINE,
)


def test_every_place_is_a_link_that_opens_it(reader, site):
    page = reader.open("docs/teaching.html")
    hrefs = page.locator("main a").evaluate_all("links => links.map(link => link.href)")
    assert page.locator("main a:not([href])").count() == 0, "a link that the site could not resolve"
    assert len(hrefs) >= 14 and all(href.startswith("file://") for href in hrefs)
    assert not re.search(r"`\S+\.html\S*`", TEXT), "an address that is no link"
    page.get_by_role("link", name="Model of all three, side by side").click()
    page.wait_for_selector("#model article:nth-child(3)")
    assert page.url.endswith("#tensorflow1+pytorch+flax/model")
    page = reader.open("docs/teaching.html")
    page.get_by_role("link", name="The row Dropout of the concept table").click()
    page.wait_for_selector("tr.here")
    assert page.locator("tr.here").get_attribute("id") == "dropout"
    assert page.locator("thead th:visible").all_inner_texts() == ["Concept", "PyTorch", "Flax", "TensorFlow 1"]


def test_lessons_say_what_they_need_and_exercises_have_a_command_before_their_answer():
    for lesson in LESSONS:
        head = lesson.partition("| minutes |")[0]
        assert "*This lesson needs the environments" in head
        assert ("tensorflow1" in lesson) == ("Python 3.6" in head)
    for exercise in re.split(r"^\*\*Exercise ", TEXT, flags=re.MULTILINE)[1:]:
        before, _, after = exercise.partition("*Answer*: ")
        assert after and re.search(r"^    (python3 run_all|print|\.venv/bin/python)", before, re.MULTILINE)


@pytest.mark.parametrize("code, answer", COMMANDS)
def test_command_prints_the_answer(code, answer):
    code = re.sub(r"^    ", "", code, flags=re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout.root, capture_output=True, text=True)
    assert done.stdout.strip() == answer, done.stderr
