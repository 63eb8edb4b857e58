"""The compare page, used as a reader uses it."""

import time

import nbformat
import pytest

from rosetta.paths import NOTEBOOKS
from tests.site.browser import Reader
from tests.test_report import TASK

PAGE = f"compare/{TASK}.html"


def shown(page) -> list[str]:
    """The titles of the columns, of which each step has the same."""
    page.wait_for_selector("#record .columns article")
    every = page.eval_on_selector_all(
        "section.step .columns", "all => all.map(one => Array.from(one.querySelectorAll('h3 a'), a => a.textContent))"
    )
    assert all(titles == every[0] for titles in every) and len(every) == 9
    return every[0]


def code(page, role: str, column: int) -> str:
    lines = page.locator(f"#{role} article").nth(column).locator(".line").all_text_contents()
    return "\n".join(lines)


def cell(framework: str, role: str) -> str:
    notebook = nbformat.read(NOTEBOOKS / TASK / f"{framework}.ipynb", as_version=4)
    return next(one.source for one in notebook.cells if one.metadata.get("tags") == [role])


def test_two_to_four_frameworks_are_chosen(reader, screenshot):
    page = reader.open(PAGE)
    assert shown(page) == ["PyTorch", "Lightning"]
    page.get_by_label("Column 2").select_option("flax")
    page.wait_for_function("location.hash === '#pytorch+flax'")
    assert shown(page) == ["PyTorch", "Flax"]
    page.get_by_role("button", name="Add a framework").click()
    page.get_by_label("Column 3").select_option("reference")
    page.get_by_role("button", name="Add a framework").click()
    page.get_by_label("Column 4").select_option("caffe2")
    page.wait_for_function("location.hash.endsWith('caffe2')")
    assert shown(page) == ["PyTorch", "Flax", "Reference in NumPy", "Caffe2"]
    assert page.get_by_role("button", name="Add a framework").is_disabled()
    screenshot(page)
    page.get_by_role("button", name="Remove PyTorch").click()
    page.wait_for_function("location.hash.startsWith('#flax')")
    assert shown(page) == ["Flax", "Reference in NumPy", "Caffe2"]


def test_cells_are_the_notebooks_own_and_aligned_by_role(reader):
    page = reader.open(PAGE + "#lasagne+tensorflow1")
    shown(page)
    for role in ("setup", "model", "optimizer", "train", "record"):
        assert [code(page, role, 0), code(page, role, 1)] == [cell("lasagne", role), cell("tensorflow1", role)]


def test_reference_shows_its_own_steps(reader):
    page = reader.open(PAGE + "#reference")
    shown(page)
    assert "def forward(" in code(page, "model", 0) and "def initial_weights(" in code(page, "weights", 0)
    whole = page.locator("main").inner_text()
    assert all(f"def {name}(" in whole for name in ("conv", "conv_gradient", "_windows", "momentum_step"))
    assert page.locator("#data article").inner_text().endswith("No counterpart.")


def test_deep_link_shows_the_same_and_back_returns(reader):
    page = reader.open(PAGE + "#mlx+keras%5Bjax%5D/optimizer")
    assert shown(page) == ["MLX", "Keras on JAX"]
    top = "document.querySelector('#optimizer').getBoundingClientRect().top"
    page.wait_for_function(f"{top} < 200 && {top} > -50")
    page.get_by_role("link", name="Training").click()
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
    page.wait_for_function("location.hash.endsWith('cntk')")
    assert shown(reader.open(PAGE)) == ["PyTorch", "CNTK"]


def test_strange_addresses_fall_back(reader):
    assert shown(reader.open(PAGE + "#nobody+%3Cscript%3E/nowhere")) == ["PyTorch", "Lightning"]


def test_difference_between_variants_is_marked(reader, screenshot):
    page = reader.open(PAGE + "#keras%5Bjax%5D+keras%5Btorch%5D")
    shown(page)
    assert page.locator(".differs").count() == 0
    page.get_by_label("Mark what differs").check()
    assert page.locator(".differs").all_text_contents() == [
        "# Keras on JAX:",
        "BACKEND = 'jax'",
        "# Keras on PyTorch:",
        "BACKEND = 'torch'",
    ]
    screenshot(page)


def test_nothing_to_mark_between_frameworks(reader):
    page = reader.open(PAGE + "#pytorch+flax")
    shown(page)
    assert page.get_by_label("Mark what differs").is_disabled()


def test_copy_takes_the_cell(reader):
    page = reader.open(PAGE + "#pytorch+flax")
    shown(page)
    page.get_by_role("button", name="Copy train of Flax").click()
    page.get_by_text("Copied", exact=True).wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == cell("flax", "train") + "\n"


def test_constants_lead_to_their_definition(reader):
    page = reader.open(PAGE + "#pytorch")
    shown(page)
    page.locator("#optimizer .code a", has_text="MOMENTUM").first.click()
    page.wait_for_url(f"**/network/{TASK}.html#MOMENTUM")
    assert page.locator("tr#MOMENTUM td").first.inner_text() == "0.9"


def test_keyboard_alone_is_enough(reader):
    page = reader.open(PAGE + "#pytorch+flax")
    shown(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(document.activeElement.ariaLabel || document.activeElement.textContent).trim()"))
    assert {"Column 1", "Add a framework", "Training", "Copy parameters of PyTorch", "PyTorch: parameters"} <= reached
    page.get_by_label("Column 1").focus()
    page.keyboard.type("Chainer")
    page.wait_for_function("location.hash.startsWith('#chainer')")
    assert shown(page) == ["Chainer", "Flax"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_width_stacks_the_columns(browser, site, screenshot, scheme):
    reader = Reader(browser, site, width=390, height=844, scheme=scheme)
    page = reader.open(PAGE + "#pytorch+flax/train")
    shown(page)
    boxes = [page.locator("#train article").nth(number).bounding_box() for number in (0, 1)]
    assert boxes[0]["x"] == boxes[1]["x"] and boxes[1]["y"] > boxes[0]["y"] + boxes[0]["height"] - 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    screenshot(page)
    assert not reader.troubles


def test_loads_only_what_it_shows_and_is_quick(reader):
    started = time.perf_counter()
    page = reader.open(PAGE + "#pytorch+flax+keras%5Bjax%5D+reference")
    shown(page)
    took = time.perf_counter() - started
    names = {file.name for file in reader.sizes if file.parent.name == TASK}
    assert names == {"pytorch.js", "flax.js", "keras.js", "reference.js"}
    assert sum(reader.sizes.values()) <= 400_000, {file.name: size for file, size in reader.sizes.items()}
    assert took <= 1.0
