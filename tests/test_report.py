"""results.md as a function of records."""

from datetime import UTC, datetime

import pytest

from rosetta import catalog, records, report
from rosetta.errors import RosettaError
from rosetta.records import Dataset, Machine, Metrics, Notebook, Record

HERE = Machine(name="here", cpu="CPU", cores=2, memory=2**34, os="Linux")


def make(name="pytorch", variant=None, preset="quick", status="ok", synthetic=False, **more) -> Record:
    metrics = Metrics(
        accuracy=0.25,
        train_s=12.3,
        epoch_s=[7.0, 5.3],
        first_epoch_s=7.0,
        steady_epoch_s=5.3,
        images_per_s=943.4,
        peak_rss=2**30,
    )
    return Record(
        **{
            "task": "cifar10_cnn",
            "framework": name,
            "variant": variant,
            "title": name,
            "environment": "torch",
            "preset": preset,
            "status": status,
            "started": datetime(2026, 11, 21, tzinfo=UTC),
            "notebook": Notebook(path="x.ipynb", sha256="0", executed="pytorch.ipynb"),
            "machine": HERE,
            "device": "cpu",
            "dataset": Dataset(name="CIFAR-10", synthetic=synthetic, n_train=5000, n_test=10000),
            "versions": {"python": "3.11.7", "torch": "2.13.0"},
            "params": {"EPOCHS": 2, "BATCHSIZE": 64},
            "metrics": metrics,
        }
        | more
    )


@pytest.fixture
def page(tmp_path):
    """Writes records, returns the page made from them."""

    def write(*given: Record) -> str:
        for record in given:
            records.write(record, tmp_path)
        return report.write(catalog.load(), tmp_path).read_text()

    return write


def line_of(page: str, start: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(f"| [{start}]")]


def test_overview_and_details(page):
    overview, details = line_of(page(make()), "PyTorch")
    assert "25.00 % | 12.3 s" in overview
    assert "torch 2.13.0, Python 3.11.7 | cpu | 25.00 % | 12.3 s | 7.0 s | 5.3 s | 943 |" in details
    assert "here/cifar10_cnn/quick/pytorch.ipynb" in details


def test_every_row_is_listed_and_links_its_notebook(page):
    text = page(make())
    for row in catalog.load().rows("cifar10_cnn"):
        assert f"notebooks/cifar10_cnn/{row.framework}.ipynb" in line_of(text, row.title)[0]


def test_published_figures_have_their_source(page):
    text = page(make())
    assert line_of(text, "Chainer")[0].endswith("| 162 s | 69.0 s |")
    assert "https://github.com/ilkarman/DeepLearningFrameworks" in text and "CUDA 8, cuDNN 6" in text


def test_presets_and_machines_are_columns_of_their_own(page):
    other = HERE.model_copy(update={"name": "there"})
    text = page(make(), make(preset="full"), make(machine=other), make(synthetic=True))
    titles = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    assert titles == ["here, full", "here, quick", "there, quick", "here, quick, SYNTHETIC data"]


def test_reasons_of_unfinished_rows_are_text_not_markup(page):
    text = page(
        make(status="failed", error="<script>alert(1)</script> | [x](y)"),
        make("chainer", status="skipped", error="needs g++"),
    )
    assert "<script>" not in text and "&lt;script&gt;" in text and "&#124;" in text
    assert "| skipped | needs g++ |" in text


def test_no_records_is_a_page_too(tmp_path):
    assert "No finished run yet." in report.write(catalog.load(), tmp_path).read_text()


def test_published_file_that_is_not_valid(tmp_path):
    (tmp_path / "x.toml").write_text("task = 'cifar10_cnn'")
    with pytest.raises(RosettaError, match="x.toml is not valid"):
        report.published("cifar10_cnn", tmp_path)
