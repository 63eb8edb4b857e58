"""All other pages: they open without an error, ask nothing of the network, and are accessible."""

import re
from urllib.parse import quote

import pytest

from rosetta import catalog, records
from rosetta.paths import RESULTS
from rosetta.site import addresses
from tests.site.browser import Reader
from tests.test_report import TASK


def of_task(key: str) -> list[str]:
    """A page of each sort, with content."""
    rows = CATALOG.rows(key)
    names = [quote(row.name, safe="") for row in rows[:2]]
    of_runs = [record for _, record in records.read_all(RESULTS) if record.task == key and record.notebook.executed]
    return [
        f"compare/{key}.html#{'+'.join([*names, 'reference'])}",
        f"concepts/{key}.html#{'+'.join(row.framework for row in rows[:2])}",
        f"network/{key}.html",
        f"results/{key}.html",
        f"conformance/{key}.html",
        f"frameworks/{key}/{rows[-1].framework}.html",
        *map(addresses.executed, of_runs[:1]),
    ]


CATALOG = catalog.load()
PAGES = [
    "index.html",
    "results.html",
    "docs/same-network.html",
    *(page for key in CATALOG.tasks for page in of_task(key)),
]


def name(href: str) -> str:
    return re.sub(r"\W+", "-", href.partition(".html")[0])


@pytest.mark.drawn(6)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("href", PAGES, ids=name)
def test_no_serious_accessibility_fault(browser, site, screenshot, href, scheme):
    reader = Reader(browser, site, scheme=scheme)
    page = reader.open(href)
    page.wait_for_load_state("networkidle")
    screenshot(page)
    assert not reader.faults()
    assert not reader.troubles
    reader.context.close()


@pytest.mark.parametrize("href", PAGES, ids=name)
def test_fits_a_phone(browser, site, screenshot, href):
    reader = Reader(browser, site, width=390, height=844)
    page = reader.open(href)
    page.wait_for_load_state("networkidle")
    screenshot(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    reader.context.close()


def test_every_link_leads_somewhere(site):
    """Files and fragments of all links within the site, but for those that scripts read."""
    ids = {}
    wrong = []
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        for address in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:", address):
                continue
            path, _, fragment = address.partition("#")
            target = (file.parent / path).resolve() if path else file
            if not target.is_file():
                wrong.append(f"{file.relative_to(site)}: {address}")
            elif fragment and target.suffix == ".html" and target.parent.name not in ("compare", "concepts"):
                known = ids.setdefault(target, set(re.findall(r'\bid="([^"]+)"', target.read_text(encoding="utf-8"))))
                if fragment not in known:
                    wrong.append(f"{file.relative_to(site)}: {address} (no such place)")
    assert not wrong


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
    page.goto(f"file://{site}/frameworks/{TASK}/flax.html")
    assert "nnx.value_and_grad" in page.locator("main").inner_text()
    context.close()
