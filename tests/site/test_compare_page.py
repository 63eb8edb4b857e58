"""The compare page, used as a reader uses it: choosing columns, and what stands in them."""

import time

import nbformat
import pytest

from rosetta import catalog
from rosetta.paths import NOTEBOOKS
from tests.site.browser import Reader
from tests.test_report import TASK

PAGE = f"compare/{TASK}.html"


def shown(page) -> list[str]:
    """The titles of the columns, of which each step has the same."""
    page.wait_for_selector("#record .columns article", state="attached")
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


def below_bar(page, selector: str) -> float:
    """How far below the sticky bar something begins."""
    return page.evaluate(
        "s => document.querySelector(s).getBoundingClientRect().top"
        " - document.querySelector('#bar').getBoundingClientRect().bottom",
        selector,
    )


def view(page, label: str, on: bool) -> None:
    page.locator("#view summary").click()
    page.get_by_label(label).set_checked(on)
    page.locator("#view summary").click()


# ---- Columns


def test_opened_at_the_model_of_two_frameworks(reader, screenshot):
    page = reader.open(PAGE)
    assert shown(page) == ["PyTorch", "Flax"]
    assert page.evaluate("location.hash") == "#pytorch+flax/model"
    assert 0 <= below_bar(page, "#model h2") < 40
    screenshot(page)


def test_two_to_four_frameworks_are_chosen(reader, screenshot):
    page = reader.open(PAGE)
    shown(page)
    page.get_by_role("button", name="Add a framework").click()
    page.wait_for_function("location.hash.endsWith('compiled%5D/model')")
    page.get_by_label("Column 3").select_option("reference")
    page.wait_for_function("location.hash === '#pytorch+flax+reference/model'")
    page.get_by_role("button", name="Add a framework").click()
    page.get_by_label("Column 4").select_option("caffe2")
    page.wait_for_function("location.hash.endsWith('caffe2/model')")
    assert shown(page) == ["PyTorch", "Flax", "Reference in NumPy", "Caffe2"]
    assert page.get_by_role("button", name="Add a framework").is_disabled()
    screenshot(page)
    page.get_by_role("button", name="Remove PyTorch").click()
    page.wait_for_function("location.hash.startsWith('#flax')")
    assert shown(page) == ["Flax", "Reference in NumPy", "Caffe2"]


def test_frameworks_are_offered_in_the_catalogs_order(reader):
    page = reader.open(PAGE)
    shown(page)
    offered = page.locator("#heads select").first.locator("option").evaluate_all("all => all.map(one => one.value)")
    assert offered == [row.name for row in catalog.load().rows(TASK)] + ["reference"]


def test_cells_are_the_notebooks_own(reader):
    page = reader.open(PAGE + "#pytorch+flax")
    shown(page)
    for role in ("setup", "model", "optimizer", "train", "record"):
        assert [code(page, role, 0), code(page, role, 1)] == [cell("pytorch", role), cell("flax", role)]


def test_titles_notes_and_code_begin_at_one_height(reader):
    page = reader.open(PAGE + "#pytorch+flax+reference")
    shown(page)
    for role in ("parameters", "model", "train"):
        for part in (".title", ".note", ".code"):
            tops = page.locator(f"#{role} {part}").evaluate_all(
                "all => all.map(one => one.getBoundingClientRect().top)"
            )
            assert len(tops) == 3 and max(tops) - min(tops) < 1, (role, part)


def test_reference_shows_its_own_steps(reader):
    page = reader.open(PAGE + "#reference")
    shown(page)
    assert "def forward(" in code(page, "model", 0) and "def initial_weights(" in code(page, "weights", 0)
    whole = page.locator("main").inner_text()
    assert all(f"def {name}(" in whole for name in ("conv", "conv_gradient", "_windows", "momentum_step"))
    assert page.locator("#data article").inner_text().endswith("No counterpart.")


CLIPPED = """
[...document.querySelectorAll('.columns .line')].filter((line) => {
  const box = line.closest('.code').getBoundingClientRect();
  return [...line.querySelectorAll('*'), line].some((part) => [...part.getClientRects()].some((r) => r.right > box.right + .5))
    || line.scrollWidth > line.clientWidth;
}).map((line) => line.textContent)
"""


@pytest.mark.parametrize("columns", ["pytorch+flax", "pytorch+flax+reference", "pytorch+flax+reference+lightning"])
def test_no_line_is_clipped(browser, site, screenshot, columns):
    reader = Reader(browser, site, width=1440)
    page = reader.open(f"{PAGE}#{columns}/train")
    assert len(shown(page)) == columns.count("+") + 1
    assert page.evaluate(CLIPPED) == []
    screenshot(page)
    view(page, "Wrap long lines", False)
    if columns.count("+") > 1:  # two columns hold the longest line
        assert page.evaluate(CLIPPED), "a toggle: such lines scroll in their box"
    reader.context.close()
    assert not reader.troubles


def test_notes_are_folded_and_stay_so(reader):
    page = reader.open(PAGE)
    shown(page)
    assert page.locator("#model .note").first.is_visible()
    view(page, "Notes", False)
    assert not page.locator(".note:visible, .about:visible").count()
    page = reader.open(PAGE)
    shown(page)
    assert not page.locator("#model .note").first.is_visible()


def test_outputs_of_the_executed_copy_are_shown(reader, screenshot):
    page = reader.open(PAGE + "#pytorch+flax+reference/train")
    shown(page)
    assert not page.locator(".output:visible").count()
    view(page, "Outputs of the executed copy", True)
    outputs = page.locator("#train .output")
    outputs.first.locator("pre").wait_for()
    assert all("epoch 10/10  loss" in outputs.nth(column).inner_text() for column in (0, 1))
    tops = [outputs.nth(column).bounding_box()["y"] for column in (0, 1)]
    assert tops[0] == tops[1]
    assert "There is no executed copy of Reference in NumPy." in page.locator("#status").inner_text()
    screenshot(page)
    outputs.first.locator("a").click()
    page.wait_for_url("**/full/pytorch.html")


def test_heads_and_choosers_stay_on_top(browser, site, screenshot):
    for width, height in ((1440, 900), (390, 844)):
        reader = Reader(browser, site, width=width, height=height)
        page = reader.open(PAGE + "#pytorch+flax/model")
        shown(page)
        page.mouse.wheel(0, 700)
        page.wait_for_timeout(200)
        for name in ("Column 1", "Column 2", "Add a framework"):
            box = page.get_by_label(name).or_(page.get_by_role("button", name=name)).bounding_box()
            assert 0 <= box["y"] < 150 and box["x"] + box["width"] <= width, name
        screenshot(page, str(width))
        if width < 400:  # one below the other, each under its own name
            title = page.locator("#model .title").first
            assert abs(below_bar(page, "#model .title")) < 2 and title.inner_text().startswith("PyTorch")
        reader.context.close()
        assert not reader.troubles


# ---- What differs


def test_difference_between_variants_is_marked(reader, screenshot):
    page = reader.open(PAGE + "#keras%5Bjax%5D+keras%5Btorch%5D/parameters")
    shown(page)
    assert page.locator(".differs").count() == 0
    view(page, "Mark what differs", True)
    assert page.locator(".differs").all_text_contents() == [
        "# Keras on JAX:",
        "BACKEND = 'jax'",
        "# Keras on PyTorch:",
        "BACKEND = 'torch'",
    ]
    assert page.locator("#status").inner_text() == "4 lines differ."
    screenshot(page)


def test_calls_of_the_same_name_are_compared_between_frameworks(reader, screenshot):
    page = reader.open(PAGE + "#pytorch+flax/model")
    shown(page)
    view(page, "Mark what differs", True)
    marked = page.locator(".differs").all_text_contents()
    assert "    nn.Dropout(DROPOUT_CONV)," in marked  # Flax's takes rngs
    assert "    nn.Linear(512, 10)," in marked
    assert "    return (predict().argmax(dim=1) == y_test.cpu()).double().mean().item()" in marked  # Flax: axis=1
    assert "log = EpochLog(EPOCHS)" not in marked  # the same in both
    assert not any("nn.Conv2d" in line for line in marked)  # Flax's has another name
    screenshot(page)


# ---- Other uses


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
    page.locator(".skip").focus()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(document.activeElement.ariaLabel || document.activeElement.textContent).trim()"))
    wanted = {"Column 1", "Add a framework", "Training", "View", "Present", "Copy parameters of PyTorch"}
    assert wanted | {"PyTorch: Parameters"} <= reached
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
    took = []
    for _ in range(3):  # others may be at work
        started = time.perf_counter()
        shown(reader.open(PAGE + "#pytorch+flax+keras%5Bjax%5D+reference"))
        took.append(time.perf_counter() - started)
    names = {file.name for file in reader.sizes if file.parent.name == TASK}
    assert names == {"pytorch.js", "flax.js", "keras.js", "reference.js"}
    assert sum(reader.sizes.values()) <= 400_000, {file.name: size for file, size in reader.sizes.items()}
    assert min(took) <= 1.0
