"""The results: what is shown of several seeds, of tests between epochs and of a GPU's energy; the tables in a browser."""

import copy
import csv
import io
import json

import pytest

from rosetta import records
from rosetta.paths import checkout
from rosetta.report import charts, pages
from rosetta.report.results import TaskResults
from rosetta.site.pages import Pages, TaskContent, write_results
from tests.test_report import CATALOG, TASK, make

MAIN = f"#main-{TASK}"


@pytest.fixture
def runs() -> list:
    """Two rows of three seeds each, one of them far better, and one that failed."""
    made = []
    for name, base in (("pytorch", 0.76), ("flax", 0.70)):
        for seed in range(3):
            record = copy.deepcopy(make(name, preset="full", title=name))
            record.seed = seed or None
            record.params = record.params | {"SEED": seed, "TARGET_ACCURACY": 0.75}
            metrics = record.metrics
            metrics.accuracy, metrics.examples_per_j = base + seed / 100, 40.0 + seed
            metrics.steady_epoch_s = 5.0 + seed
            metrics.loss, metrics.epoch_s = [2.0, 1.5, 1.2], [7.0, 5.0, 5.0]
            metrics.epoch_accuracy = [0.4, 0.6, metrics.accuracy]
            metrics.target_s = 17.0 if metrics.accuracy >= 0.75 else None
            record.notebook.executed = None
            made.append(record)
    return [*made, make("chainer", preset="full", status="timeout", error="stopped after 9 s")]


def test_pictures_are_of_what_the_records_have(runs):
    for record in runs:
        record.metrics.examples_per_j, record.metrics.epoch_accuracy = None, []
    results = TaskResults.of(CATALOG, TASK, runs)
    drawn = {picture.chart.name: picture.svg for picture in charts.draw(results.rows, results.columns[0])}
    assert set(drawn) == {"epochs", "curves"} and "test accuracy" not in drawn["curves"]


def test_report_and_site_draw_pictures_and_name_them(runs, tmp_path):
    for record in runs:
        records.write(record, tmp_path)
    written = charts.write(CATALOG, tmp_path)
    pages.write(CATALOG, tmp_path)
    page = (tmp_path / f"{TASK}.md").read_text()
    assert [file.name.rpartition("-")[2] for file in written] == ["epochs.svg", "curves.svg", "joules.svg"]
    assert all(f"(pictures/{file.name})" in page for file in written)
    assert "test accuracy" in written[1].read_text()
    site = tmp_path / "site"
    write_results(Pages(site, tmp_path, CATALOG, [TaskContent(CATALOG, TASK, runs, tmp_path)]))
    page = (site / "results" / f"{TASK}.html").read_text()
    assert all(text in page for text in ("Accuracy across seeds and frameworks", "Not finished", "PyTorch 41"))
    assert {file.name for file in (site / "pictures").iterdir()} == {file.name for file in written}


# ---- In a browser


def names(page) -> list[str]:
    return page.locator(f"{MAIN} tbody tr:visible th").all_inner_texts()


def cells(page, column: int):
    return page.locator(f"{MAIN} tbody tr:visible > :nth-child({column + 1})")


def values(page, column: int) -> list[float | None]:
    read = "cells => cells.map(cell => cell.dataset.value ? Number(cell.dataset.value) : null)"
    return cells(page, column).evaluate_all(read)


def texts(page, column: int) -> list[str]:
    return cells(page, column).all_inner_texts()


@pytest.mark.parametrize("href", ["results.html", f"results/{TASK}.html"])
def test_table_stands_before_what_it_means(reader, screenshot, href):
    page = reader.open(href)
    top = lambda selector: page.locator(selector).bounding_box()["y"]  # noqa: E731
    assert top(f"{MAIN} tbody") < 500, "within the upper half of the first screen"
    assert top(MAIN) < top("#meaning") < page.locator("body").bounding_box()["height"]
    screenshot(page)


def test_headings_look_as_if_they_sort_and_do(reader):
    page = reader.open("results.html")
    heading = page.locator(f"{MAIN} thead th").nth(5)
    mark = "button => getComputedStyle(button, '::after').content"
    button, before = heading.get_by_role("button"), values(page, 5)
    assert "\u2195" in button.evaluate(mark)
    button.click()
    seconds = values(page, 5)
    there = [one for one in seconds if one is not None]
    assert there == sorted(there) and seconds[: len(there)] == there, "missing figures come last"
    assert "\u25b2" in button.evaluate(mark) and page.url.endswith(f"#sort=main-{TASK}.5.up")
    button.click()
    assert page.locator("th[aria-sort=descending]").count() == 1 and values(page, 5)[0] == there[-1]
    page.reload()
    assert values(page, 5)[0] == there[-1], "the address keeps it"
    page.go_back()
    page.go_back()
    assert values(page, 5) == before


def test_rows_are_filtered_by_words(reader, screenshot):
    page = reader.open("results.html")
    box, said = page.get_by_label("Filter rows"), page.locator("#status")
    every = len(names(page))
    box.type(box.get_attribute("placeholder"))
    assert 1 <= len(names(page)) < every, "the placeholder is an example that works"
    box.fill("keras jax")
    assert names(page) == ["Keras on JAX"] and page.url.endswith("#filter=keras%20jax")
    box.fill("nonesuch")
    assert names(page) == [] and said.inner_text() == "No row has “nonesuch”."
    screenshot(page)
    box.fill("")
    assert len(names(page)) == every and said.inner_text() == ""


def test_frameworks_are_chosen_by_boxes(reader):
    page = reader.open("results.html#frameworks=pytorch+flax")
    assert {name.partition(",")[0] for name in names(page)} == {"PyTorch", "PyTorch 1", "Flax"}
    page.get_by_role("checkbox", name="Flax").uncheck()
    page.wait_for_url("**/results.html#frameworks=pytorch")
    assert not any("Flax" in name for name in names(page))
    page.get_by_role("button", name="All").click()
    assert page.url.endswith("results.html") and len(names(page)) == len(CATALOG.shown(TASK))


def test_factor_to_the_best_of_the_rows_shown(reader, screenshot):
    page = reader.open(f"results/{TASK}.html#frameworks=pytorch+flax")
    figures, seconds, accuracies = texts(page, 3), values(page, 3), values(page, 2)
    page.get_by_role("radio", name="Factor").check()
    assert page.url.endswith("#frameworks=pytorch+flax&show=factor")
    best = min(filter(None, seconds))
    assert texts(page, 3) == ["not run" if one is None else f"{one / best:.2f}" for one in seconds]
    assert values(page, 2) == accuracies and all("%" in one for one in texts(page, 2) if one[0].isdigit()), "no race"
    colours = cells(page, 3).evaluate_all("cells => cells.map(cell => getComputedStyle(cell).backgroundColor)")
    by_factor = {float(factor): colour for factor, colour in zip(texts(page, 3), colours) if factor[0].isdigit()}
    assert by_factor[min(by_factor)] != by_factor[max(by_factor)]
    screenshot(page)
    page.get_by_role("radio", name="Figures").check()
    assert texts(page, 3) == figures


def test_one_machine_at_a_time_and_factors_to_a_row_of_ones_choice(reader):
    page = reader.open("results.html")
    heading = lambda: page.locator(f"{MAIN} thead th:visible").all_inner_texts()  # noqa: E731
    assert len(heading()) < 10 and page.locator(f"{MAIN} caption").inner_text() == "nvidia-h200, full"
    page.get_by_label("Machine and preset").select_option("amd-epyc-2-cores, quick")
    assert page.locator(f"{MAIN} caption").inner_text() == "amd-epyc-2-cores, quick"
    page.get_by_label("Compare with").select_option("Flax")
    row = page.locator(f"{MAIN} tbody tr", has=page.locator("th", has_text="Flax")).first
    assert "1.00" in row.locator("td:visible").all_inner_texts()
    assert "1.00 is Flax." in page.locator("#status").inner_text()
    assert not any(
        text == "" for text in page.locator(f"{MAIN} tbody tr").first.locator("td:visible").all_inner_texts()[:5]
    )


def test_a_view_of_start_and_memory(reader, screenshot):
    page = reader.open("results.html#at=amd-epyc-2-cores%2C%20quick")
    shown = lambda: page.locator(f"{MAIN} thead th:visible").all_inner_texts()  # noqa: E731
    assert shown()[2:4] == ["accuracy", "train"] and "import" not in shown()
    page.locator("#view").select_option("start and memory")
    assert shown() == ["framework", "conformance", "import", "data", "build", "memory"]
    row = page.locator(f"{MAIN} tbody tr", has=page.locator("th", has_text="Flax")).first
    *seconds, memory = row.locator("td:visible").all_inner_texts()[1:]
    assert all(one.endswith(" s") for one in seconds) and memory.endswith(" GiB")
    screenshot(page)
    page.reload()
    assert shown()[-1] == "memory", "the address keeps it"


WRONG = ["frameworks=nonesuch", "sort=x.99.up&show=nothing", "filter=%E0%A4%A", "main", "="]


@pytest.mark.parametrize("fragment", WRONG)
def test_wrong_address_is_no_error(reader, fragment):
    page = reader.open(f"results.html#{fragment}")
    assert names(page) or page.locator("#status").inner_text()


def test_figures_lead_to_the_executed_page_and_that_to_the_record(reader):
    page = reader.open("results.html#at=amd-epyc-2-cores%2C%20full")
    page.get_by_role("link", name="77.47 %").first.click()
    page.wait_for_url(f"**/records/amd-epyc-2-cores/{TASK}/full/pytorch.html")
    assert "epoch 10/10" in page.locator(".printed").last.inner_text() + page.locator("main").inner_text()
    assert page.get_by_role("link", name="Record", exact=True).get_attribute("href") == "pytorch.json"


def test_records_as_files(reader, site):
    page = reader.open("results.html")
    files = {}
    for kind in ("CSV", "JSON"):
        link = page.get_by_role("link", name=f"{kind} of all records").first
        assert link.get_attribute("download") is not None
        files[kind] = (site / link.get_attribute("href")).read_text(encoding="utf-8")
    lines, entries = list(csv.DictReader(io.StringIO(files["CSV"]))), json.loads(files["JSON"])
    shown = [record for record in (one for _, one in records.read_all(checkout.results)) if record.task == TASK]
    assert len(lines) == len(entries) <= len(shown)
    (entry,) = [one for one in entries if one["record"] == f"records/amd-epyc-2-cores/{TASK}/full/pytorch.json"]
    (line,) = [one for one in lines if one["record"] == entry["record"]]
    assert float(line["accuracy"]) == entry["accuracy"] and len(entry["loss"]) == 10
    assert (site / entry["record"]).is_file()


def test_every_chart_names_its_axes():
    files = [*(checkout.results / "pictures").glob("*.svg")]  # a test of the site sees that it has the same
    assert files
    for file in files:
        labels = {"framework", "epoch"} if file.stem.endswith("curves") else {"framework"}
        assert any(f">{label}</text>" in file.read_text() for label in labels), file.name
