"""What an address of the compare page shows, and how the page says where it is."""

import re
from urllib.parse import unquote

import pytest

from rosetta import catalog
from tests.site.test_compare_page import PAGE, below_bar, shown
from tests.test_report import TASK


def test_deep_link_shows_the_same_and_back_returns(reader):
    page = reader.open(PAGE + "#mlx+keras%5Bjax%5D/optimizer")
    assert shown(page) == ["MLX", "Keras on JAX"]
    assert 0 <= below_bar(page, "#optimizer h2") < 40
    page.get_by_role("link", name="Training", exact=True).click()
    page.wait_for_function("location.hash.endsWith('/train')")
    page.get_by_label("Column 1").select_option("chainer")
    page.wait_for_function("location.hash.startsWith('#chainer')")
    assert shown(page) == ["Chainer", "Keras on JAX"]
    assert page.evaluate("location.hash") == "#chainer+keras%5Bjax%5D/train"
    page.go_back()
    page.go_back()
    page.wait_for_function("location.hash.endsWith('/optimizer')")
    assert shown(page) == ["MLX", "Keras on JAX"]


def test_choice_is_remembered(reader):
    page = reader.open(PAGE + "#pytorch+flax")
    shown(page)
    page.get_by_label("Column 2").select_option("cntk")
    page.wait_for_function("location.hash.includes('cntk')")
    assert shown(reader.open(PAGE)) == ["PyTorch", "CNTK"]


@pytest.mark.parametrize(
    ("address", "canonical", "said"),
    [
        ("#PyTorch+FLAX/Train", "#pytorch+flax/train", ""),
        ("#flax", "#flax/model", ""),
        ("#/train", "#pytorch+flax/train", ""),
        ("#keras+pytorch+pytorch", "#keras%5Btensorflow%5D+pytorch/model", ""),
        ("#main", "#pytorch+flax/model", "This task has no framework “main”."),
        ("#nobody+%3Cscript%3E/nowhere", "#pytorch+flax/model", "no step or concept “nowhere”"),
        ("#flax+nobody/train", "#flax/train", "This task has no framework “nobody”."),
        ("#%E0%A4%A", "#pytorch+flax/model", "The address cannot be read."),
        ("#flax+pytorch+cntk+mlx+caffe2", "#flax+pytorch+cntk+mlx/model", "Caffe2 is left out: there are at most 4"),
    ],
)
def test_addresses_are_forgiving_and_say_what_is_unknown(reader, address, canonical, said):
    page = reader.open(PAGE + address)
    shown(page)
    assert page.evaluate("location.hash") == canonical
    told = page.locator("#status").inner_text()
    assert said in told and bool(said) == bool(told)
    page.get_by_role("link", name="Data", exact=True).click()
    page.wait_for_function("location.hash.endsWith('/data')")
    page.wait_for_function("document.querySelector('#status').textContent === ''")


@pytest.mark.parametrize("href", [PAGE + "#pytorch+flax/train", f"concepts/{TASK}.html#pytorch+flax"])
def test_skip_link_keeps_what_is_shown(reader, href):
    page = reader.open(href)
    page.wait_for_load_state("networkidle")
    before = page.evaluate("location.hash"), page.locator("main").inner_text()
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert (page.evaluate("location.hash"), page.locator("main").inner_text()) == before


def test_concept_in_the_address_marks_its_lines(reader, screenshot):
    page = reader.open(PAGE + "#pytorch+flax/dropout")
    shown(page)
    marked = page.locator("#model .shows").all_text_contents()
    assert "    nn.Dropout(DROPOUT_CONV)," in marked
    assert "        self.drop3 = nnx.Dropout(DROPOUT_FC, rngs=rngs)" in marked
    assert page.locator("#model .shows").first.bounding_box()["y"] < 900
    assert "lines are marked" in page.locator("#status").inner_text()
    screenshot(page)


def test_step_in_view_is_marked_and_clicking_it_scrolls_again(reader):
    page = reader.open(PAGE)
    shown(page)
    current = page.locator(".steps a[aria-current]")
    page.mouse.wheel(0, 500)
    page.wait_for_timeout(200)
    assert below_bar(page, "#model h2") < -300 and current.inner_text() == "Model"
    page.get_by_role("link", name="Model", exact=True).click()
    assert 0 <= below_bar(page, "#model h2") < 40
    page.locator("#train h2").evaluate("one => one.scrollIntoView()")
    page.wait_for_function("document.querySelector('.steps a[aria-current]').textContent === 'Training'")
    for step in ("Evaluation", "Result"):
        page.get_by_role("link", name=step, exact=True).click()
        page.wait_for_function("s => document.querySelector('.steps a[aria-current]').textContent === s", arg=step)
    assert 0 <= below_bar(page, "#record h2") < 40, "the last step, too, comes to the top"


def test_title_names_the_selection(reader):
    page = reader.open(PAGE + "#pytorch+cntk/train")
    shown(page)
    assert page.title().startswith("PyTorch, CNTK: Training · Compare")
    page.get_by_label("Column 2").select_option("flax")
    page.wait_for_function("document.title.startsWith('PyTorch, Flax: Training')")


def test_links_name_columns_and_places_that_are_there(site):
    names = {row.name for row in catalog.load().rows(TASK)} | {"reference"}
    text = (site / PAGE).read_text()
    places = set(re.findall(r'<section class="step" id="(\w+)"', text)) | {""}
    links = [
        unquote(fragment)
        for file in site.rglob("*.html")
        for fragment in re.findall(rf'href="[^"]*compare/{TASK}\.html#([^"]+)"', file.read_text(encoding="utf-8"))
    ]
    assert links
    for link in links:
        columns, _, place = link.partition("/")
        assert set(columns.split("+")) <= names and (place in places or f'"{place}":' in text), link
