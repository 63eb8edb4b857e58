"""The concept table: the reader's frameworks, and what a row's address opens."""

import pytest

from tests.test_report import CATALOG, TASK

PAGE = f"concepts/{TASK}.html"


def shown(page) -> list[str]:
    return page.locator("thead th:visible").all_inner_texts()[1:]


def test_the_readers_own_frameworks_come_first(reader, screenshot):
    page = reader.open(PAGE)
    assert shown(page) == ["PyTorch", "Flax"] and page.url.endswith("#pytorch+flax")
    screenshot(page)
    page.evaluate(f"localStorage.setItem('rosetta.compare.{TASK}', 'pytorch[compiled]+flax+chainer+cntk')")
    assert shown(reader.open(PAGE)) == ["PyTorch", "Flax", "Chainer"], "those of the compare page, three at most"
    page.get_by_role("checkbox", name="PyTorch").uncheck()
    page.wait_for_url("**#flax+chainer")
    assert shown(reader.open(PAGE)) == ["Flax", "Chainer"], "then those that were chosen here"


def test_chosen_frameworks_are_in_the_address(reader):
    page = reader.open(f"{PAGE}#pytorch+flax")
    page.get_by_role("checkbox", name="Caffe2").check()
    page.wait_for_url("**#pytorch+flax+caffe2")
    assert shown(page) == ["PyTorch", "Flax", "Caffe2"]
    page.go_back()
    page.wait_for_url("**#pytorch+flax")
    assert shown(page) == ["PyTorch", "Flax"]
    page.get_by_role("button", name="None").click()
    page.wait_for_url("**#none")
    assert shown(page) == []
    page.get_by_role("button", name="All").click()
    page.wait_for_url("**#all")
    assert len(shown(page)) == len({row.framework for row in CATALOG.rows(TASK)})


@pytest.mark.parametrize("width, height", [(1440, 900), (390, 844)])
@pytest.mark.parametrize("fragment", ["pytorch+flax", "all"])
def test_header_stays_in_sight(window, site, screenshot, width, height, fragment):
    reader = window(site, width=width, height=height)
    page = reader.open(f"{PAGE}#{fragment}/save-load")
    page.wait_for_timeout(100)
    row, heading = page.locator("tr#save-load"), page.locator("thead th[data-framework=pytorch]")
    assert page.locator("body").evaluate("() => scrollY") > 0
    top = heading.bounding_box()["y"]
    assert 0 <= top < height / 2 and top < row.bounding_box()["y"] < height
    x, y = heading.bounding_box()["x"] + 20, top + 12
    assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('thead') !== null", [x, y])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    screenshot(page)


def test_every_row_has_an_address(reader):
    page = reader.open(f"{PAGE}#pytorch+flax")
    links = page.locator("tbody a.row")
    hrefs = links.evaluate_all("links => links.map(link => link.hash)")
    assert len(set(hrefs)) == page.locator("tbody tr").count() and "#pytorch+flax/sgd-momentum" in hrefs
    page.get_by_role("link", name="SGD with momentum", exact=True).click()
    page.wait_for_url("**#pytorch+flax/sgd-momentum")
    assert page.locator("tr.here").get_attribute("id") == "sgd-momentum"
    at = "document.querySelector('tr.here').getBoundingClientRect().top"
    assert 0 <= page.evaluate(at) < 150
    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("link", name="SGD with momentum", exact=True).click()
    assert 0 <= page.evaluate(at) < 150, "the same link scrolls again"
    page = reader.open(f"{PAGE}#dropout")
    assert page.url.endswith("#pytorch+flax/dropout") and page.locator("tr.here").get_attribute("id") == "dropout"


def test_in_place_opens_both_frameworks_at_the_concept(reader):
    page = reader.open(f"{PAGE}#pytorch+keras")
    link = page.get_by_role("link", name="Dropout: the rate dropped, or the rate kept in place")
    assert link.get_attribute("href").endswith(f"compare/{TASK}.html#pytorch+keras%5Btensorflow%5D/dropout")
    link.click()
    page.wait_for_selector("#model article:nth-child(2)")
    chosen = page.locator("select").evaluate_all("all => all.map(one => one.value)")
    assert chosen[:2] == ["pytorch", "keras[tensorflow]"]


@pytest.mark.parametrize(
    "fragment, columns, said",
    [
        ("PyTorch+FLAX/Dropout", ["PyTorch", "Flax"], ""),
        ("nonesuch", ["PyTorch", "Flax"], "“nonesuch”"),
        ("chainer+nonesuch", ["Chainer"], "“nonesuch”"),
        ("chainer/nonesuch", ["Chainer"], "“nonesuch”"),
        ("%E0%A4%A", ["PyTorch", "Flax"], "“%e0%a4%a”"),
        ("main", ["PyTorch", "Flax"], "“main”"),
    ],
)
def test_any_address_shows_something_and_says_what_it_does_not_know(reader, fragment, columns, said):
    page = reader.open(f"{PAGE}#{fragment}")
    assert shown(page) == columns and said in page.locator("#status").inner_text()
    assert bool(said) == bool(page.locator("#status").inner_text())
