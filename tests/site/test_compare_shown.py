"""The compare page on paper and before a class."""

import re

import pytest

from tests.site.browser import Reader
from tests.site.test_compare_page import PAGE, shown

LESSON = "#tensorflow1+pytorch+flax/model"  # the first lesson's link


@pytest.fixture
def projector(browser, site):
    reader = Reader(browser, site, width=1280, height=720)
    yield reader
    reader.context.close()
    assert not reader.troubles


def lines_in_view(page, column: int, height: int) -> int:
    lines = page.locator("#model article").nth(column).locator(".line")
    return sum(box["y"] > 0 and box["y"] + box["height"] <= height for box in boxes(lines))


def boxes(locator) -> list[dict]:
    return locator.evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(b => ({x: b.x, y: b.y, width: b.width, height: b.height}))"
    )


def test_paper_has_the_columns_side_by_side(browser, site, screenshot):
    """As wide as A4 landscape within its margins; the columns' boxes lose no character."""
    reader = Reader(browser, site, width=1046, height=718, scheme="dark")
    page = reader.open(PAGE + "#pytorch+flax+reference+lightning/model")
    shown(page)
    on_screen = page.locator(".line").all_text_contents()
    page.emulate_media(media="print")
    for role in ("model", "train"):
        found = boxes(page.locator(f"#{role} article"))
        assert len({round(box["y"]) for box in found}) == 1 and len({round(box["x"]) for box in found}) == 4
    lines = page.locator(".line")
    assert lines.all_text_contents() == on_screen
    overflowing = "all => all.filter(one => one.scrollWidth > one.clientWidth || !one.getClientRects().length).length"
    assert lines.evaluate_all(overflowing) == 0
    assert page.locator("pre.code").evaluate_all("all => all.every(one => one.scrollHeight <= one.clientHeight + 1)")
    assert not page.locator("#bar:visible, .copy:visible").count()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    screenshot(page)
    pdf = page.pdf(prefer_css_page_size=True)
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert sizes and all(float(width) > float(height) for width, height in sizes)
    reader.context.close()


def test_lesson_shows_code_on_a_projector(projector, screenshot):
    page = projector.open(PAGE + LESSON)
    assert shown(page) == ["TensorFlow 1", "PyTorch", "Flax"]
    assert all(lines_in_view(page, column, 720) >= 5 for column in range(3))
    screenshot(page)


def test_presenter_fills_the_screen_with_one_step(projector, screenshot):
    page = projector.open(PAGE + LESSON)
    shown(page)
    page.get_by_role("button", name="Present").click()
    page.wait_for_function("location.hash.endsWith('/model/present')")
    page.locator("#bar").wait_for(state="hidden")  # the page changes after its address
    assert [one.get_attribute("id") for one in page.locator("section.step:visible").all()] == ["model"]
    assert not page.locator(".note:visible, .about:visible, #bar:visible, header:visible").count()
    for column in range(3):
        lines = page.locator("#model article").nth(column).locator(".line").count()
        assert lines_in_view(page, column, 720) >= lines - 1, "all of the step is on the screen"
    assert page.evaluate("document.documentElement.scrollHeight") <= 720
    screenshot(page)
    size = "parseFloat(getComputedStyle(document.querySelector('.presented .code')).fontSize)"
    small = page.evaluate(size)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash.endsWith('/optimizer/present')")
    page.locator("#optimizer").wait_for()
    assert page.locator("#optimizer").is_visible() and not page.locator("#model").is_visible()
    assert page.evaluate(size) > small + 4, "little code is shown large"
    screenshot(page, "optimizer")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("location.hash.endsWith('/weights/present')")
    page.keyboard.press("Escape")
    page.wait_for_function("location.hash === '#tensorflow1+pytorch+flax/weights'")
    page.locator("#bar").wait_for()
    assert page.locator("#bar").is_visible() and page.locator("section.step:visible").count() == 9


def test_presenter_opens_from_its_address(projector):
    page = projector.open(PAGE + LESSON + "/present")
    shown(page)
    assert page.locator("section.step:visible").count() == 1
    assert not projector.faults()
