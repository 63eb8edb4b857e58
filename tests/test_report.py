"""results.md as a function of records."""

from datetime import UTC, datetime

import pytest

from rosetta import catalog, records
from rosetta.errors import RosettaError
from rosetta.records import Dataset, Gpu, Machine, Metrics, Notebook, Record
from rosetta.report import samples, tables
from rosetta.report.published import published

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


def seeds(*values: float, name="pytorch", metric="accuracy", **more) -> list[Record]:
    """Runs that differ in the seed and in one metric."""
    made = []
    for number, value in enumerate(values):
        record = make(name, seed=number or None, params={"EPOCHS": 2, "BATCHSIZE": 64, "SEED": number}, **more)
        setattr(record.metrics, metric, value)
        made.append(record)
    return made


@pytest.fixture
def page(tmp_path):
    """Writes records, returns the page made from them."""

    def write(*given: Record) -> str:
        for record in given:
            records.write(record, tmp_path)
        return tables.write(catalog.load(), tmp_path).read_text()

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


def test_seeds_are_median_and_range(page):
    overview, details = line_of(page(*seeds(0.7747, 0.769, 0.781)), "PyTorch")
    assert "| 77.47 % (76.90 - 78.10, n = 3) | 12.3 s (12.3 - 12.3, n = 3) |" in overview
    assert "| 77.47 % (76.90 - 78.10, n = 3) |" in details and "| 943 |" in details


@pytest.mark.parametrize(
    "change",
    [
        {"notebook": Notebook(path="x.ipynb", sha256="1")},
        {"versions": {"python": "3.11.7", "torch": "2.14.0"}},
        {"params": {"EPOCHS": 2, "BATCHSIZE": 32, "SEED": 0}},
        {"threads": 1},
    ],
)
def test_only_the_newest_experiment_counts(page, change):
    older = seeds(0.1, 0.2, 0.3)
    newest = older[0].model_copy(update={"started": datetime(2026, 11, 22, tzinfo=UTC)} | change)
    assert samples.current([*older[1:], newest]) == [newest]
    assert "10.00 % | 12.3 s" in line_of(page(*older[1:], newest), "PyTorch")[0]


def test_machine_preset_and_kind_of_data_are_never_mixed(page):
    other = HERE.model_copy(update={"name": "there"})
    text = page(*seeds(0.1, 0.2), *seeds(0.3, machine=other), *seeds(0.4, preset="full"), *seeds(0.5, synthetic=True))
    assert line_of(text, "PyTorch")[0].count("n = 2") == 2, "accuracy and time of one column"


def test_a_cpu_on_a_gpu_machine_is_marked_where_its_time_stands(page):
    assert "on cpu" not in page(make(machine=HERE.model_copy(update={"name": "no-gpu"}))), "it goes without saying"
    gpu = HERE.model_copy(update={"gpus": [Gpu(name="H200", memory=2**37, driver="1", cuda="13")]})
    devices = {"pytorch": "cuda", "tensorflow": "/device:CPU:0", "chainer": "@numpy", "mxnet_gluon": "gpu(0)"}
    text = page(*(make(name, machine=gpu, device=device) for name, device in devices.items()))
    marked = [all("12.3 s, on cpu" in line for line in line_of(text, title)) for title in ("TensorFlow", "Chainer")]
    assert marked == [True, True] and text.count("on cpu") == 4


def test_time_to_the_target_where_epochs_were_tested(page):
    assert "to 75 %" not in page(make())
    reached = seeds(60.0, 70.0, None, metric="target_s", preset="full")
    for record in reached:
        record.metrics.epoch_accuracy, record.params["TARGET_ACCURACY"] = [0.5, 0.8], 0.75
    never = make("chainer", preset="full", params=reached[0].params)
    never.metrics.epoch_accuracy = [0.1, 0.2]
    text = page(*reached, never, make("flax", preset="full"))
    full = text[text.index("### here, full") : text.index("### here, quick")]
    assert "| train | to 75 % | first epoch |" in full
    assert "| 65.0 s (60.0 - 70.0, n = 2 of 3) |" in line_of(full, "PyTorch")[0]
    assert "| not reached |" in line_of(full, "Chainer")[0]
    assert "| 12.3 s |  | 7.0 s |" in line_of(full, "Flax")[0]


def test_energy_where_there_is_any(page):
    assert "energy" not in page(make()) and "images/J" not in page(make())
    some = make()
    some.metrics.energy_j, some.metrics.images_per_j = 123456.0, 12.34
    text = page(some, make("flax"))
    assert "| energy | images/J |" in text
    assert line_of(text, "PyTorch")[1].endswith("| 123 kJ | 12.3 |")
    assert line_of(text, "Flax")[1].endswith("|  |  |")


def test_accuracy_across_seeds_and_frameworks(page):
    section = "#### Accuracy across seeds and frameworks"
    assert section not in page(make(), make("flax"))
    text = page(
        *seeds(0.5, 0.6, 0.55), *seeds(0.58, name="flax"), *seeds(0.7, 0.3, name="chainer"), *seeds(0.9, name="mlx")
    )
    table = text[text.index(section) :]
    assert "| PyTorch | 3 | 55.00 % | 50.00 % | 60.00 % | inside |" in table
    assert "| Flax | 1 | 58.00 % | 58.00 % | 58.00 % | inside |" in table
    assert "| MLX | 1 | 90.00 % | 90.00 % | 90.00 % | **outside: above all of them** |" in table
    assert "no other row" in page(*seeds(0.5, 0.6, machine=HERE.model_copy(update={"name": "alone"})))


def test_no_records_is_a_page_too(tmp_path):
    assert "No finished run yet." in tables.write(catalog.load(), tmp_path).read_text()


def test_published_file_that_is_not_valid(tmp_path):
    (tmp_path / "x.toml").write_text("task = 'cifar10_cnn'")
    with pytest.raises(RosettaError, match="x.toml is not valid"):
        published("cifar10_cnn", tmp_path)
