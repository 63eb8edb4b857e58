"""What a user sees on a box with NVIDIA's cards, whose management library is played back."""

import re

import pytest

from tests.fake_nvml import FakeNvml, cards
from tests.standin import cells

NEW, OLD = "580.95.05", "535.183.01"  # drivers
BUILD = """
[builds.cuda13]
cuda = "13.0"
driver = "580.65"
disk_gb = 5.2
download_gb = 2.8
code = { numpy = ["7.5", "9.0"] }
"""


@pytest.fixture
def box(inside, monkeypatch):
    """Calls ``run_all.py`` on a box with these cards: (driver, cards, arguments) -> what was done."""
    inside.catalog(inside.entry("good"))
    folder = inside.environment("test", "3.11", "", "")
    with (folder / "environment.toml").open("a") as recipe:
        recipe.write(BUILD)
    for suffix in (".in", ".txt"):
        (folder / f"cuda13{suffix}").write_text("")

    def call(driver, names, command, *options, own_python=False):
        FakeNvml(monkeypatch, cards(*names), driver)
        if command == "run":
            options = "--preset", "smoke", "--synthetic", "--out", str(inside.out), *options
        visible = ",".join(map(str, range(len(names))))
        variables = {"ROSETTA_MACHINE": "", "CUDA_VISIBLE_DEVICES": visible}
        return inside.call(command, *options, own_python=own_python, **variables)

    return call


def test_doctor_and_list_on_a_box(box):
    new = box(NEW, ["H200"], "doctor").stdout
    assert "0: NVIDIA H200, 141 GiB, compute capability 9.0, driver 580.95.05" in new
    assert re.search(r"environment test +build cuda13: can be made", new)
    assert re.search(r"good +test +build cuda13: can be made", box(NEW, ["H200"], "list").stdout)
    old = " ".join(box(OLD, ["H200"], "doctor").stdout.split())
    assert "no build for NVIDIA H200 (compute capability 9.0, driver 535.183.01)" in old
    assert "cuda13 needs driver 580.65 or newer" in old
    both = " ".join(box(NEW, ["H200", "V100"], "doctor").stdout.split())
    assert "NVIDIA H200: build cuda13: can be made; Tesla V100-SXM2-16GB: no build" in both


def test_run_on_a_box_without_a_build_for_its_card(box, inside):
    done = box(NEW, ["V100"], "run")
    assert done.returncode == 0, "a row that the machine cannot hold is no failure, unless it was named"
    assert "skipped, for want of a build for this GPU (run_all.py doctor says why): good" in done.stdout
    assert "\n0 runs, about 0 s\n" in done.stdout
    said = "On the CPU: run_all.py run cifar10_cnn/good --gpus none. With another interpreter: --python test=PATH"
    assert said in done.stdout
    (record,) = inside.out.rglob("good.failed.json")
    assert record.parent.parent.parent.name == "tesla-v100-sxm2-16gb" and '"skipped"' in record.read_text()
    assert box(NEW, ["V100"], "run", "good").returncode == 1


def test_run_on_a_box_with_a_build(box):
    done = box(NEW, ["H200"], "run", "--plan")
    assert "builds for the GPU: test (cuda13)" in done.stdout
    assert "to install the environment test (cuda13): 5.2 GB of disk, 2.8 GB to download" in done.stdout
    assert "  good " in done.stdout.partition("builds for the GPU")[0]


def test_a_run_that_did_not_use_its_gpu_has_failed(box, inside):
    inside.notebook("good", [(role, text.replace("else 'gpu'", "else 'cpu'")) for role, text in cells("good")])
    done = box(NEW, ["H200"], "run", own_python=True)
    assert done.returncode == 1 and "good: failed: computed on the CPU: its device is cpu" in done.stdout


def test_on_two_models_of_cards_each_run_goes_where_a_build_is(box, inside):
    """Its build is empty, and the notebooks run in this process."""
    done = box(NEW, ["V100", "H200"], "run", "--seeds", "3")
    assert "3 of 3 runs ok" in done.stdout, done.stdout
    assert {record.parts[-4] for record in inside.out.rglob("good*.json")} == {"nvidia-h200"}
