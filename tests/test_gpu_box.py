"""What a user sees on a box with NVIDIA's cards, whose management library is played back."""

import re

import pytest

from tests.standin import ROOT, cells

NEW, OLD = "580.95.05", "535.183.01"  # drivers


@pytest.fixture
def box(standin, tmp_path):
    """Calls ``run_all.py`` on a box with these cards: (driver, cards, arguments) -> what was done."""
    standin.catalog(standin.entry("good"))
    folder = standin.environment("test", "3.11", "", "", without_gpu={"other": "nobody"})
    (folder / "environment.toml").write_text(
        'python = "3.11"\n[builds.cuda13]\ncuda = "13.0"\ndriver = "580.65"\ndisk_gb = 5.2\ndownload_gb = 2.8\n'
        'code = { numpy = ["7.5", "9.0"] }\n'
    )
    for suffix in (".in", ".txt"):
        (folder / f"cuda13{suffix}").write_text("")

    def call(driver, names, *arguments, own_python=False):
        (tmp_path / "sitecustomize.py").write_text(
            f"import sys; sys.path.append({str(ROOT)!r})\n"
            f"from tests.fake_nvml import play; play(*{names!r}, driver={driver!r})\n"
        )
        variables = {"PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(len(names))))}
        return standin.call(*arguments, own_python=own_python, ROSETTA_MACHINE="", **variables)

    return call


def test_doctor_and_list_on_a_box(box):
    new = box(NEW, ["H200"], "doctor").stdout
    assert "0: NVIDIA H200, 141 GiB, compute capability 9.0, driver 580.95.05" in new
    assert re.search(r"environment test +build cuda13: can be made", new)
    assert re.search(r"good +test +build cuda13: can be made", box(NEW, ["H200"], "list").stdout)
    old = box(OLD, ["H200"], "doctor").stdout
    assert "no build for NVIDIA H200 (compute capability 9.0, driver 535.183.01)" in " ".join(old.split())
    assert "cuda13 needs driver 580.65 or newer" in " ".join(old.split())
    both = " ".join(box(NEW, ["H200", "V100"], "doctor").stdout.split())
    assert "NVIDIA H200: build cuda13: can be made; Tesla V100-SXM2-16GB: no build" in both


def test_run_on_a_box_without_a_build_for_its_card(box, standin):
    options = "--preset", "smoke", "--synthetic", "--out", str(standin.out)
    done = box(NEW, ["V100"], "run", *options)
    assert done.returncode == 0, "a row that the machine cannot hold is no failure, unless it was named"
    assert "skipped, for want of a build for this GPU (run_all.py doctor says why): good" in done.stdout
    assert "\n0 runs, about 0 s\n" in done.stdout
    said = "On the CPU: run_all.py run cifar10_cnn/good --gpus none. With another interpreter: --python test=PATH"
    assert said in done.stdout
    (record,) = standin.out.rglob("good.failed.json")
    assert record.parent.parent.parent.name == "tesla-v100-sxm2-16gb" and '"skipped"' in record.read_text()
    assert box(NEW, ["V100"], "run", "good", *options).returncode == 1


def test_run_on_a_box_with_a_build(box, standin):
    done = box(NEW, ["H200"], "run", "--preset", "smoke", "--synthetic", "--out", str(standin.out), own_python=False)
    assert "builds for the GPU: test (cuda13)" in done.stdout
    assert "to install the environment test (cuda13): 5.2 GB of disk, 2.8 GB to download" in done.stdout
    assert "  good " in done.stdout.partition("builds for the GPU")[0]


def test_a_run_that_did_not_use_its_gpu_has_failed(box, standin):
    standin.notebook("good", [(role, text.replace("else 'gpu'", "else 'cpu'")) for role, text in cells("good")])
    options = "--preset", "smoke", "--synthetic", "--out", str(standin.out)
    done = box(NEW, ["H200"], "run", *options, own_python=True)
    assert done.returncode == 1 and "good: failed: computed on the CPU: its device is cpu" in done.stdout


def test_on_two_models_of_cards_each_run_goes_where_a_build_is(box, standin):
    """What is run there cannot start, for the build is empty: its record tells where it was."""
    options = "--preset", "smoke", "--synthetic", "--seeds", "3", "--out", str(standin.out)
    done = box(NEW, ["V100", "H200"], "run", *options)
    assert "skipped" not in done.stdout, done.stdout
    assert {record.parts[-4] for record in standin.out.rglob("good*.failed.json")} == {"nvidia-h200"}
