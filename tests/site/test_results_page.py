"""What the results page shows of several seeds, of tests between epochs and of a GPU's energy: from records made for it."""

import copy

import pytest

from rosetta import records
from rosetta.report import charts, pages, pictures, tables
from rosetta.report.columns import TaskResults
from rosetta.site import build
from tests.test_report import CATALOG, TASK, make


@pytest.fixture
def found() -> list:
    """Two rows of three seeds each, one of them far better, and one that failed."""
    made = []
    for name, base in (("pytorch", 0.76), ("flax", 0.70)):
        for seed in range(3):
            record = copy.deepcopy(make(name, preset="full", title=name))
            record.seed = seed or None
            record.params = record.params | {"SEED": seed, "TARGET_ACCURACY": 0.75}
            metrics = record.metrics
            metrics.accuracy, metrics.examples_per_j, metrics.steady_epoch_s = (
                base + seed / 100,
                40.0 + seed,
                5.0 + seed,
            )
            metrics.loss, metrics.epoch_s = [2.0, 1.5, 1.2], [7.0, 5.0, 5.0]
            metrics.epoch_accuracy = [0.4, 0.6, metrics.accuracy]
            metrics.target_s = 17.0 if metrics.accuracy >= 0.75 else None
            made.append(record)
    return [*made, make("chainer", preset="full", status="timeout", error="stopped after 9 s")]


def test_several_seeds_show_median_range_and_scatter(found):
    results = TaskResults.of(CATALOG, TASK, found)
    (column,) = results.columns
    (first, second) = tables.details(results, column).rows
    assert first[3].text == "77.00 % (76.00 - 78.00, n = 3)" and first[3].value == pytest.approx(0.77)
    assert first[5].text == "17.0 s (17.0 - 17.0, n = 3)" and second[5].text == "not reached"
    assert [(row[0].text, row[-1].text, row[-1].badge) for row in tables.across_seeds(results, column).rows] == [
        ("PyTorch", "outside: above all of them", "bad"),
        ("Flax", "outside: below all of them", "bad"),
    ]


def test_what_is_not_finished_is_told(found):
    (row,) = tables.unfinished(TaskResults.of(CATALOG, TASK, found)).rows
    assert [cell.text for cell in row] == ["Chainer", "here, full", "timeout", "stopped after 9 s"]


def test_pictures_of_what_the_records_have(found):
    results = TaskResults.of(CATALOG, TASK, found)
    (column,) = results.columns
    draw = lambda: {picture.chart.name: picture for picture in charts.draw(results.rows, column)}  # noqa: E731
    drawn = draw()
    assert set(drawn) == {"epochs", "curves", "joules"}
    assert "test accuracy" in drawn["curves"].svg and "PyTorch 41" in drawn["joules"].alt
    assert draw()["epochs"].svg == drawn["epochs"].svg, "the same picture from the same records"
    for record in found:
        record.metrics.examples_per_j, record.metrics.epoch_accuracy = None, []
    drawn = draw()
    assert set(drawn) == {"epochs", "curves"} and "test accuracy" not in drawn["curves"].svg


def test_report_draws_pictures_and_names_them(found, tmp_path):
    for record in found:
        record.notebook.executed = None
        records.write(record, tmp_path)
    written = pictures.draw(CATALOG, tmp_path)
    pages.write(CATALOG, tmp_path)
    page = (tmp_path / f"{TASK}.md").read_text()
    assert [file.name.rpartition("-")[2] for file in written] == ["epochs.svg", "curves.svg", "joules.svg"]
    assert all(f"(pictures/{file.name})" in page for file in written)


def test_site_of_such_records(found, tmp_path):
    for record in found:
        record.notebook.executed = None
        records.write(record, tmp_path / "results")
    build.write(tmp_path / "site", tmp_path / "results", None)
    page = (tmp_path / "site" / "results" / f"{TASK}.html").read_text()
    assert "Accuracy across seeds and frameworks" in page and "Not finished" in page
    assert len(list((tmp_path / "site" / "pictures").glob("*.svg"))) == 3
