"""The compare page, used as a reader uses it: columns, addresses, what differs, on paper and before a class."""

import re

import nbformat
import pytest

from rosetta.paths import checkout
from tests.test_report import CATALOG, TASK

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
    notebook = nbformat.read(checkout.notebooks / TASK / f"{framework}.ipynb", as_version=4)
    return next(one.source for one in notebook.cells if one.metadata.get("tags") == [role])


def below_bar(page, selector: str) -> float:
    """How far below the sticky bar something begins."""
    return page.evaluate(
        "s => document.querySelector(s).getBoundingClientRect().top"
        " - document.querySelector('#bar').getBoundingClientRect().bottom",
        selector,
    )


def boxes(locator) -> list[dict]:
    """Read after two frames: a column of another width is drawn anew, and what it replaces has a box of zeros."""
    locator.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return locator.evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(b => ({x: b.x, y: b.y, width: b.width, height: b.height}))"
    )


def view(page, label: str, on: bool) -> None:
    page.locator("#view summary").click()
    page.get_by_label(label).set_checked(on)
    page.locator("#view summary").click()


@pytest.fixture
def compare(reader, window, site):
    """Opens the compare page in the reader's window, or in another of this size, and waits for its columns."""

    def opened(fragment: str = "", **size):
        page = (window(site, **size) if size else reader).open(PAGE + fragment)
        shown(page)
        return page

    return opened


# ---- Columns


def test_opened_at_its_top_with_two_frameworks(reader, screenshot):
    page = reader.open(PAGE)
    assert shown(page) == ["PyTorch", "Flax"]
    assert page.evaluate("location.hash") == "#pytorch+flax/parameters"
    assert page.evaluate("scrollY") == 0
    offered = page.locator("#heads select").first.locator("option").evaluate_all("all => all.map(one => one.value)")
    assert offered == [row.name for row in CATALOG.rows(TASK)] + ["reference"], "in the catalog's order"
    screenshot(page)


def test_two_to_four_frameworks_are_chosen(compare, screenshot):
    page = compare("#pytorch+flax/model")
    page.get_by_label("Add a framework").select_option("pytorch[compiled]")
    page.wait_for_function("location.hash.endsWith('compiled%5D/model')")
    page.get_by_label("Column 3").select_option("reference")
    page.wait_for_function("location.hash === '#pytorch+flax+reference/model'")
    page.get_by_label("Add a framework").select_option("caffe2")
    page.wait_for_function("location.hash.endsWith('caffe2/model')")
    assert shown(page) == ["PyTorch", "Flax", "Reference in NumPy", "Caffe2"]
    assert page.get_by_label("Add a framework").is_disabled()
    screenshot(page)
    page.get_by_role("button", name="Remove PyTorch").click()
    page.wait_for_function("location.hash.startsWith('#flax')")
    assert shown(page) == ["Flax", "Reference in NumPy", "Caffe2"]


def test_concept_and_task_are_chosen_in_the_bar(compare):
    page = compare("#pytorch%5Bcompiled%5D+flax/model")
    page.get_by_label("Mark a concept").select_option("dropout")
    page.wait_for_function("location.hash.endsWith('/dropout')")
    assert page.locator(".shows").count() >= 4 and page.get_by_label("Mark a concept").input_value() == "dropout"
    page.get_by_label("Mark a concept").select_option("Concept")
    page.wait_for_function("!document.querySelector('.shows')")
    page.get_by_label("Task").select_option("IMDB GRU")
    page.wait_for_url("**/compare/imdb_gru.html#pytorch+flax/**")
    assert shown(page) == ["PyTorch", "Flax"]


def test_four_columns_stand_two_by_two_where_the_window_is_narrow(compare, screenshot):
    page = compare("#pytorch+flax+cntk+mlx/model", width=1024, height=768)
    for part in (".title", ".code"):
        left, right, below, last = boxes(page.locator(f"#model {part}"))
        assert left["y"] == right["y"] < below["y"] == last["y"] and left["x"] == below["x"] < right["x"] == last["x"]
        assert left["width"] > 400
    screenshot(page)


def test_cells_are_the_notebooks_own(compare):
    page = compare("#pytorch+flax", width=2200)
    for role in ("setup", "model", "optimizer", "train", "record"):
        assert [code(page, role, 0), code(page, role, 1)] == [cell("pytorch", role), cell("flax", role)]


def test_titles_notes_and_code_begin_at_one_height_and_the_reference_has_its_own_steps(compare):
    page = compare("#pytorch+flax+reference")
    assert "def forward(" in code(page, "model", 2) and "def initial_weights(" in code(page, "weights", 2)
    whole = page.locator("main").inner_text()
    assert all(f"def {name}(" in whole for name in ("conv", "conv_gradient", "_windows", "momentum_step"))
    assert page.locator("#data article").nth(2).inner_text().endswith("No counterpart.")
    for role in ("parameters", "model", "train"):
        for part in (".title", ".note", ".code"):
            tops = [box["y"] for box in boxes(page.locator(f"#{role} {part}"))]
            assert len(tops) == 3 and max(tops) - min(tops) < 1, (role, part)


def test_notes_are_folded_and_stay_so(compare):
    page = compare()
    assert page.locator("#model .note").first.is_visible()
    view(page, "Notes", False)
    assert not page.locator(".note:visible, .about:visible").count()
    page = compare()
    assert not page.locator("#model .note").first.is_visible()


def test_outputs_of_the_executed_copy_are_shown(compare, screenshot):
    page = compare("#pytorch+flax+reference/train")
    assert not page.locator(".output:visible").count()
    view(page, "Outputs of the executed copy", True)
    outputs = page.locator("#train .output")
    outputs.first.locator("pre").wait_for()
    printed = [outputs.nth(column).locator("pre").inner_text().strip() for column in (0, 1)]
    assert all(re.search(r"epoch 1/\d+  loss \d", one) for one in printed)
    first, second = boxes(outputs)[:2]
    assert first["y"] == second["y"]
    assert "There is no executed copy of Reference in NumPy." in page.locator("#status").inner_text()
    screenshot(page)
    outputs.first.locator("a").click()
    page.wait_for_url(f"**/records/*/{TASK}/*/pytorch.html")
    assert printed[0] in [one.strip() for one in page.locator("main pre").all_inner_texts()]


def test_heads_and_choosers_stay_on_top(compare, screenshot):
    for width, height in ((1440, 900), (390, 844)):
        page = compare("#pytorch+flax/model", width=width, height=height)
        page.mouse.wheel(0, 700)
        page.wait_for_timeout(200)
        for name in ("Column 1", "Column 2", "Add a framework"):
            box = page.get_by_label(name).or_(page.get_by_role("button", name=name)).bounding_box()
            assert 0 <= box["y"] < 150 and box["x"] + box["width"] <= width, name
        screenshot(page, str(width))
        if width < 400:  # one below the other, each under its own name
            title = page.locator("#model .title").first
            assert abs(below_bar(page, "#model .title")) < 2 and title.inner_text().startswith("PyTorch")
            first, second = boxes(page.locator("#train article"))
            assert first["x"] == second["x"] and second["y"] > first["y"] + first["height"] - 1


# ---- What differs


def test_difference_between_variants_is_marked(compare, screenshot):
    page = compare("#keras%5Bjax%5D+keras%5Btorch%5D/parameters")
    assert page.locator(".differs").count() == 0
    view(page, "Mark what differs", True)
    marked = ["# Keras on JAX:", "BACKEND = 'jax'", "# Keras on PyTorch:", "BACKEND = 'torch'"]
    assert page.locator(".differs").all_text_contents() == marked
    assert page.locator("#status").inner_text() == "4 lines differ."
    screenshot(page)


def test_calls_of_the_same_name_are_compared_between_frameworks(compare, screenshot):
    page = compare("#pytorch+flax/model")
    view(page, "Mark what differs", True)
    marked = page.locator(".differs").all_text_contents()
    assert "    nn.Dropout(DROPOUT_CONV)," in marked  # Flax's takes rngs
    assert "    nn.Linear(512, 10)," in marked
    assert "    return (predict().argmax(dim=1) == y_test.cpu()).double().mean().item()" in marked  # Flax: axis=1
    assert "log = EpochLog(EPOCHS)" not in marked  # the same in both
    assert not any("nn.Conv2d" in line for line in marked)  # Flax's has another name
    screenshot(page)


# ---- Other uses


def test_constants_lead_to_their_definition(compare):
    page = compare("#pytorch")
    page.locator("#optimizer .code a", has_text="MOMENTUM").first.click()
    page.wait_for_url(f"**/network/{TASK}.html#MOMENTUM")
    assert page.locator("tr#MOMENTUM td").first.inner_text() == "0.9"


def test_keyboard_alone_is_enough(compare):
    page = compare("#pytorch+flax")
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


def test_loads_only_what_it_shows_and_is_quick(reader):
    session = reader.context.new_cdp_session(reader.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # processor seconds: others may be at work
    took = []
    for _ in range(3):
        shown(reader.open(PAGE + "#pytorch+flax+keras%5Bjax%5D+reference"))
        metrics = session.send("Performance.getMetrics")["metrics"]
        took += [one["value"] for one in metrics if one["name"] == "TaskDuration"]
    names = {file.name for file in reader.sizes if file.parent.name == TASK}
    assert names == {"pytorch.js", "flax.js", "keras.js", "reference.js"}
    assert sum(reader.sizes.values()) <= 400_000, {file.name: size for file, size in reader.sizes.items()}
    assert 0 < min(took) <= 0.75


# ---- Addresses


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


def test_choice_is_remembered_and_named_in_the_title(compare, reader):
    page = compare("#pytorch+flax/train")
    assert page.title().startswith("PyTorch, Flax: Training · Compare")
    page.get_by_label("Column 2").select_option("cntk")
    page.wait_for_function("document.title.startsWith('PyTorch, CNTK: Training')")
    assert shown(reader.open(PAGE)) == ["PyTorch", "CNTK"]


@pytest.mark.parametrize(
    ("address", "canonical", "said"),
    [
        ("#PyTorch+FLAX/Train", "#pytorch+flax/train", ""),
        ("#flax", "#flax/parameters", ""),
        ("#/train", "#pytorch+flax/train", ""),
        ("#keras+pytorch+pytorch", "#keras%5Btensorflow%5D+pytorch/parameters", ""),
        ("#main", "#pytorch+flax/parameters", "This task has no framework “main”."),
        ("#nobody+%3Cscript%3E/nowhere", "#pytorch+flax/parameters", "no step or concept “nowhere”"),
        ("#flax+nobody/train", "#flax/train", "This task has no framework “nobody”."),
        ("#%E0%A4%A", "#pytorch+flax/parameters", "The address cannot be read."),
        (
            "#flax+pytorch+cntk+mlx+caffe2",
            "#flax+pytorch+cntk+mlx/parameters",
            "Caffe2 is left out: there are at most 4",
        ),
    ],
)
def test_addresses_are_forgiving_and_say_what_is_unknown(compare, address, canonical, said):
    page = compare(address)
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


def test_concept_in_the_address_marks_its_lines(compare, screenshot):
    page = compare("#pytorch+flax/dropout")
    marked = page.locator("#model .shows").all_text_contents()
    assert "    nn.Dropout(DROPOUT_CONV)," in marked
    assert "        self.drop3 = nnx.Dropout(DROPOUT_FC, rngs=rngs)" in marked
    assert page.locator("#model .shows").first.bounding_box()["y"] < 900
    assert "lines are marked" in page.locator("#status").inner_text()
    assert page.locator("#status a").get_attribute("href") == "../c/dropout.html"
    screenshot(page)


def test_pointing_at_a_line_lights_its_counterparts(compare):
    page = compare("#pytorch+flax/train")
    page.locator("#train .line", has_text="loss.backward()").first.hover()
    lit = page.locator(".lit").all_text_contents()
    assert any("loss.backward()" in line for line in lit)
    assert any("nnx.value_and_grad(loss_fn)" in line for line in lit), lit
    page.locator("h1").hover()
    assert page.locator(".lit").count() == 0


def test_step_in_view_is_marked_and_clicking_it_scrolls_again(compare):
    page = compare("#pytorch+flax/model")
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


# ---- On paper and before a class


LESSON = "#tensorflow1+pytorch+flax/model"  # the first lesson's link


def lines_in_view(page, column: int, height: int) -> int:
    lines = page.locator("#model article").nth(column).locator(".line")
    return sum(box["y"] > 0 and box["y"] + box["height"] <= height for box in boxes(lines))


def characters(text: str) -> list[str]:
    """In order of the alphabet, all but what formatting adds or removes: spaces, brackets around an expression, last commas."""
    return sorted(re.sub(r"[\s(),]", "", text))


def lines_unbroken(page, selector: str) -> bool:
    """Whether each line of code is as high as an empty one."""
    return page.evaluate(
        """selector => Array.from(document.querySelectorAll(selector + " .line")).every(
            (line) => !line.textContent || line.getBoundingClientRect().height < 1.6 * parseFloat(getComputedStyle(line).fontSize))""",
        selector,
    )


CLIPPED = """
[...document.querySelectorAll('.columns .line')].filter((line) => {
  const box = line.closest('.code').getBoundingClientRect();
  return [...line.querySelectorAll('*'), line].some((part) => [...part.getClientRects()].some((r) => r.right > box.right + .5))
    || line.scrollWidth > line.clientWidth;
}).map((line) => line.textContent)
"""


@pytest.mark.parametrize(
    "names, width", [("pytorch+flax", 1440), ("pytorch+flax+cntk", 1440), ("pytorch+flax+cntk+mlx", 1600)]
)
def test_code_is_set_for_the_width_of_its_column(compare, screenshot, names, width):
    page = compare(f"#{names}/model", width=width, height=900)
    assert lines_unbroken(page, "#model") and page.evaluate(CLIPPED) == []
    code_shown = code(page, "model", 0)
    page.get_by_role("button", name="Copy model of PyTorch").click()
    page.get_by_text("Copied", exact=True).wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == cell("pytorch", "model") + "\n"
    assert (code_shown == cell("pytorch", "model")) == (names.count("+") == 1)
    page.get_by_label("Mark a concept").select_option("dropout")
    page.wait_for_function("location.hash.endsWith('/dropout')")
    assert "Dropout(" in page.locator("#model article").first.locator(".shows").first.inner_text()
    screenshot(page, str(names.count("+") + 1))


def test_paper_has_the_columns_side_by_side(compare, screenshot):
    """As wide as A4 landscape within its margins; the columns' boxes lose no character."""
    page = compare("#pytorch+flax+reference+lightning/model", width=1046, height=718, scheme="dark")
    page.emulate_media(media="print")
    for role in ("model", "train"):
        found = boxes(page.locator(f"#{role} article"))
        assert len({round(box["y"]) for box in found}) == 1 and len({round(box["x"]) for box in found}) == 4
    lines = page.locator(".line")
    for role in ("model", "train"):
        for column, framework in ((0, "pytorch"), (1, "flax"), (3, "lightning")):
            assert characters(code(page, role, column)) == characters(cell(framework, role))
    overflowing = "all => all.filter(one => one.scrollWidth > one.clientWidth || !one.getClientRects().length).length"
    assert lines.evaluate_all(overflowing) == 0
    assert page.locator("pre.code").evaluate_all("all => all.every(one => one.scrollHeight <= one.clientHeight + 1)")
    assert not page.locator("#bar:visible, .copy:visible").count()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    screenshot(page)
    pdf = page.pdf(prefer_css_page_size=True)
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert sizes and all(float(width) > float(height) for width, height in sizes)


def test_presenter_fills_the_screen_with_one_step(window, site, screenshot):
    """On a projector, where the lesson's page shows code at once."""
    reader = window(site, width=1280, height=720)
    page = reader.open(PAGE + LESSON)
    assert shown(page) == ["TensorFlow 1", "PyTorch", "Flax"]
    assert all(lines_in_view(page, column, 720) >= 5 for column in range(3))
    screenshot(page, "lesson")
    page.get_by_role("button", name="Present").click()
    page.wait_for_function("location.hash.endsWith('/model/present')")
    page.locator("#bar").wait_for(state="hidden")  # the page changes after its address
    assert [one.get_attribute("id") for one in page.locator("section.step:visible").all()] == ["model"]
    assert not page.locator(".note:visible, .about:visible, #bar:visible, header:visible").count()
    assert lines_unbroken(page, "#model"), "a formatter has broken them all"
    screenshot(page)
    size = "parseFloat(getComputedStyle(document.querySelector('.presented .code')).fontSize)"
    small = page.evaluate(size)
    assert small > 14
    page.keyboard.press("PageDown")
    page.wait_for_function("scrollY > 100")
    assert page.locator("#model").is_visible(), "the rest of the step comes first"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash.endsWith('/optimizer/present')")
    page.locator("#optimizer").wait_for()
    assert page.locator("#optimizer").is_visible() and not page.locator("#model").is_visible()
    screenshot(page, "optimizer")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("location.hash.endsWith('/weights/present')")
    page.keyboard.press("Escape")
    page.wait_for_function("location.hash === '#tensorflow1+pytorch+flax/weights'")
    page.locator("#bar").wait_for()
    assert page.locator("#bar").is_visible() and page.locator("section.step:visible").count() == 9
    page = reader.open(PAGE + "#tensorflow1+pytorch/model/present")
    shown(page)
    assert page.evaluate(size) >= 20, "two columns, on a projector"
    page = reader.open(PAGE + LESSON.replace("/model", "/record/present"))
    shown(page)
    assert page.evaluate(size) > small + 4, "little code is shown large"
    page = reader.open(PAGE + LESSON + "/present")
    shown(page)
    assert page.locator("section.step:visible").count() == 1
    assert not reader.faults()
