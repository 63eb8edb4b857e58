"""A task of each kind and a framework, added to a checkout as files alone: every command knows them, and the runner is as it was."""

import json
import re
import shutil
import subprocess
import tempfile

import pytest

from rosetta import catalog, files, tasks
from rosetta.kinds import KINDS
from rosetta.records import Record
from tests import toys
from tests.inside import Inside
from tests.standin import ROOT, StandIn, one_line

NEW, TASKS_OF_NEW = "another", ("toy_train", "toy_infer")  # a framework with notebooks in two of the tasks
OUR_TASKS = set(catalog.load().tasks)
TITLES = {"numpy": "NumPy", NEW: NEW}
ROWS = [f"{task}/numpy" for task in toys.TOYS] + [f"{task}/{NEW}" for task in TASKS_OF_NEW]
KIND = {task: tasks.load(toys.TASKS / "notebooks" / task).kind for task in toys.TOYS}
STEPS = ["contract", "concepts", "smoke", "verify", "cost"]  # of ``check``
# The training step of toy_train in parts; the notebook has ``step``
PHASES = """
# %% after optimizer
def place(n): return x_train[:n], y_train[:n]
def forward(x, y): return -np.log(probabilities(x)[np.arange(len(y)), y]).mean()
def backward(x, y): return forward(x, y)
def value(loss): return loss
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The toy tasks are all that the checkout has."""
    with pytest.MonkeyPatch.context() as patch:
        yield only_toys(Inside(tmp_path_factory.mktemp("toys") / "checkout", patch))


def only_toys(standin: StandIn) -> StandIn:
    shutil.rmtree(standin.root / "notebooks")
    (standin.root / "catalog.toml").write_text("schema = 2\n")
    toys.write(standin.root)
    for task in TASKS_OF_NEW:
        done = standin.call("new", NEW, "--task", task, own_python=False)
        assert done.returncode == 0, done.stderr
    entry = (standin.root / "catalog.toml").read_text()
    (standin.root / "catalog.toml").write_text(entry.replace(f'imports = ["{NEW}"]', 'imports = ["numpy"]'))
    for seconds, task in enumerate(toys.TOYS, start=2):
        file = standin.root / "notebooks" / task / "task.toml"  # what runs last in the order of the tasks costs least
        file.write_text(file.read_text().replace("start_s = 1,", f"start_s = {9 - seconds},"))
    shutil.copytree(ROOT / "docs", standin.root / "docs")
    return standin


@pytest.fixture(scope="module")
def ran(toy) -> subprocess.CompletedProcess:
    """Every row of every task."""
    done = toy.call("run", "--all-tasks", "--preset", "smoke", "--out", str(toy.out))
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def record(toy, row: str, preset: str = "smoke") -> dict:
    task, _, name = row.partition("/")
    folders = (toy.out / "test-machine" / task).glob(f"{preset}*")
    of_preset = [folder for folder in folders if folder.name.removesuffix("-synthetic") == preset]
    (file,) = (
        file for folder in of_preset for file in folder.glob(f"{name}*.json")
    )  # a measurement's name has its session
    return json.loads(file.read_text())


def test_a_toy_of_each_kind():
    assert sorted(kind.name for kind in KIND.values()) == sorted(KINDS)


def test_listed(toy):
    done = toy.call("list", own_python=False)
    assert re.findall(r"^(toy_\S+)", done.stdout, re.MULTILINE) == sorted(ROWS, key=lambda row: row.partition("/")[0])
    assert set(re.findall(r"^(toy_\S+)", toy.call("list", "--task", "toy_infer").stdout, re.MULTILINE)) == {
        row for row in ROWS if row.startswith("toy_infer/")
    }


def test_tasks_run_one_after_the_other_and_the_fastest_row_first(toy, ran):
    started = re.findall(r"^\[\d/6\] (\S+): starting", ran.stdout, re.MULTILINE)
    assert sorted(started) == sorted(ROWS) and f"{len(ROWS)} of {len(ROWS)} runs ok" in ran.stdout
    planned = re.findall(r"^  (\S+) +smoke .*about (\d+) s$", ran.stdout, re.MULTILINE)
    assert [row for row, _ in planned] == started and sorted(started, key=lambda row: row.partition("/")[0]) == started
    of_one = [int(seconds) for row, seconds in planned if row.startswith("toy_train/")]
    assert of_one == sorted(of_one) and len(of_one) == 2


@pytest.mark.parametrize("row", ROWS)
def test_recorded_with_the_figures_of_its_kind(toy, ran, row):
    kind, found = KIND[row.partition("/")[0]], record(toy, row)
    assert (found["kind"], found["status"]) == (kind.name, "ok")
    metrics = kind.metrics.model_validate(found["metrics"])
    assert all(quantity.of(metrics) is not None for quantity in kind.main)
    assert all(getattr(metrics, name) > 0 for name in kind.timed.values())


@pytest.mark.parametrize("task", toys.TOYS)
def test_tabled(toy, ran, task):
    overview = (toy.out / "results.md").read_text().partition(f"\n## {task}\n")[2].partition("\n## ")[0]
    for text in (overview, (toy.out / f"{task}.md").read_text()):
        assert KIND[task].main[0].heading in text
        assert all((f"[{title}](" in text) == (f"{task}/{name}" in ROWS) for name, title in TITLES.items())


def test_task_narrows_and_one_name_of_a_task_is_enough(toy):
    """Its results go below those of all tasks, and disturb nobody there."""
    done = toy.call("run", NEW, "--task", "toy_infer", "--preset", "smoke", "--out", str(toy.out / "narrow"))
    assert done.returncode == 0 and "1 of 1 runs ok" in done.stdout and "To run less" not in done.stdout
    watched = toy.call("watch", "--out", str(toy.out / "narrow"), own_python=False)
    assert watched.returncode == 0 and re.search(rf"^{NEW} +ok", watched.stdout, re.MULTILINE)


def test_what_has_changed_in_a_batch_of_several_tasks_is_resumed(toy, ran):
    """A row is run again for a cell with other code, not for a text that was mended."""
    file = toy.path("numpy", "toy_speed")
    before = file.read_text()
    for old, new, again in (('"# numpy', '"# NumPy', []), ("np.maximum(", "np.fmax(", ["toy_speed/numpy"])):
        assert old in before
        file.write_text(before.replace(old, new))
        done = toy.call("resume", "--out", str(toy.out), own_python=False)
        file.write_text(before)
        assert re.findall(r"^\[\d/6\] (\S+): starting", done.stdout, re.MULTILINE) == again, done.stdout + done.stderr


def test_success_takes_away_the_failure_of_a_task_that_makes_its_data(toy):
    file, out = toy.path("numpy", "toy_infer"), toy.out / "mended"
    before, command = file.read_text(), ("run", "toy_infer/numpy", "--preset", "smoke", "--out", str(out))
    file.write_text(before.replace("np.maximum(", "np.maximum_("))
    assert toy.call(*command).returncode == 1 and list(out.rglob("numpy.failed.json"))
    file.write_text(before)
    assert toy.call(*command).returncode == 0 and not list(out.rglob("*.failed.*"))


def test_estimated_by_what_it_took(toy, ran):
    before = record(toy, "toy_infer/numpy")["metrics"]["wall_s"]
    done = toy.call("run", "toy_infer/numpy", "--preset", "smoke", "--out", str(toy.out))
    (estimate,) = re.findall(r"^  toy_infer/numpy +smoke .*about (\d+) s$", done.stdout, re.MULTILINE)
    assert abs(int(estimate) - before) <= 1


@pytest.mark.parametrize(
    "task, options, lines, heading, begins, cells",
    [
        (
            "toy_train",
            ("--train-size", "64", "--test-size", "50"),
            [f"{trained} -> {by}: 20 of 50" for trained in (NEW, "numpy") for by in (NEW, "numpy")],
            "Cross-loading",
            "Each line has the weights that one framework trained (2 epochs of 64 examples). A figure says how many of 50 test ",
            "20 | 20 | 0 | 0",
        ),
        (
            "toy_infer",
            ("--set", "N_INPUTS=20"),
            [f"{NEW}: 20 inputs", "numpy: 20 inputs"],
            "The same outputs",
            "All rows have the same weights, and compute 20 inputs, which all frameworks share. Allowed is ",
            "0e+00 | 0e+00 | 0 | 0",
        ),
    ],
)
def test_crossloaded(toy, task, options, lines, heading, begins, cells):
    done = toy.call("crossload", "--task", task, *options, "--out", str(toy.out))
    assert done.returncode == 0, done.stdout + done.stderr
    *told, last = done.stdout.splitlines()
    assert (
        sorted(told[1:]) == lines
        and told[0] == "2 rows with the same weights"
        and last == f"all agree; {toy.out}/conformance/{task}.md"
    )
    section = (toy.out / "conformance" / f"{task}.md").read_text().partition(f"## {heading}\n\n")[2]
    assert section.startswith(begins) and ": they are not counted. All agree. test-machine, " in section
    assert sorted(section.splitlines()[-2:]) == [f"| {title} | {cells} |" for title in ("NumPy", NEW)]


def test_on_the_site(toy, ran, tmp_path):
    done = toy.call("site", "--to", str(tmp_path / "site"), "--out", str(toy.out), own_python=False)
    assert done.returncode == 0, done.stderr
    index = (tmp_path / "site" / "index.html").read_text()
    for row in ROWS:
        task, _, name = row.partition("/")
        page = (tmp_path / "site" / "frameworks" / f"{name}.html").read_text()
        assert f'id="{task}"' in page and task in index and TITLES[name] in page
    names = {row.partition("/")[2] for row in ROWS}
    assert {file.stem for file in (tmp_path / "site" / "frameworks").iterdir()} == names


@pytest.mark.drawn(1)
@pytest.mark.parametrize("task", [task for task in toys.TOYS if KIND[task].phases])
def test_swept_where_its_kind_has_phases(standin, task):
    toy = only_toys(standin)
    program = toy.root / "programs" / "phases" / "numpy.py"
    program.parent.mkdir(parents=True)
    program.write_text(PHASES)
    done = toy.call(
        "measure", "sweep", f"{task}/numpy", "--threads", "1", "--steps", "3", "--repeats", "2", "--out", str(toy.out)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    points = record(toy, f"{task}/numpy", "sweep")["points"]
    assert {point["at"]["phase"] for point in points} == set(KIND[task].phases)
    assert all(len(point["values"]) == 2 for point in points if point["unit"] == "s")


@pytest.mark.parametrize("task", [task for task in toys.TOYS if not KIND[task].phases])
def test_not_swept_where_its_kind_has_no_phases(toy, task):
    done = toy.call("measure", "sweep", f"{task}/numpy", "--out", str(toy.out))
    assert done.returncode == 2 and KIND[task].name in one_line(done.stderr)


def test_told_by_doctor_and_compared(toy, ran):
    doctor = toy.call("doctor", own_python=False)
    assert f"environment {NEW}" in doctor.stdout and "data toy" in doctor.stdout
    compared = toy.call("compare", str(toy.out), str(toy.out), own_python=False)
    assert compared.returncode == 0, compared.stdout + compared.stderr


def test_new_framework_is_checked_to_its_first_mistake_and_its_cost_is_written(toy, tmp_path, monkeypatch):
    """A placeholder, an environment that says nothing of a GPU, a notebook of something else, one that takes no step; then all is well.

    A folder of what the runs left stays where there is a mistake and a run, and is told."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    row, task = f"toy_train/{NEW}", toy.root / "notebooks" / "toy_train" / "task.toml"
    entry, recipe = toy.root / "catalog.toml", toy.root / "environments" / NEW / "environment.toml"
    notebook, unnamed = toy.path(NEW, "toy_train"), "np = __import__('numpy')"
    mistakes = [
        (entry, "example.org", "example.com", f"contract  FAILED  catalog.toml: frameworks.{NEW}.homepage"),
        (entry, "released = 0", "released = 2020", f"contract  FAILED  catalog.toml: frameworks.{NEW}.rel"),
        (recipe, NEW, "numpy", "does not say what a GPU is to numpy: give"),
        (notebook, unnamed, "import numpy as np", "another.ipynb does not import numpy: is it still the copy"),
        (notebook, "2.0 for", "step(x, y) for", "verify    FAILED  level 4 (training): "),
    ]
    text = notebook.read_text().replace("import numpy as np", unnamed)
    notebook.write_text(text.replace("step(x, y) for", "2.0 for"))
    for file, before, after, said in mistakes:
        done = toy.call("check", row)
        assert done.returncode == 1 and said in done.stdout and done.stdout.count("FAILED") == 1, done.stdout
        left = list(tmp_path.glob("rosetta-check-*"))
        assert len(left) == ("verify" in said) and all(f"is in {folder}" in done.stdout for folder in left)
        file.write_text(file.read_text().replace(before, after))
    assert "; but the loss of its epochs does not fall: 2.0000, 2.0000" in done.stdout, "which verify explains"
    before = task.read_text()
    monkeypatch.setattr(Record, "disturbed", "other programs used 99% of the processors (python)")
    done = toy.call("check", row)
    assert done.returncode == 0 and task.read_text() == before, done.stdout + done.stderr
    assert list(tmp_path.glob("rosetta-check-*")) == left
    assert (
        f"not written, because other programs used 99% of the processors (python): run_all.py check {row} --cost"
        in done.stdout
    )
    assert f"Now run_all.py verify {row} --out results" in done.stdout
    assert re.findall(r"^  (\w+) +ok  ", done.stdout, re.MULTILINE) == STEPS[:-1]
    assert "  cost      skipped  not written" in done.stdout
    assert re.findall(r"^    run with .*EPOCHS=\d+", done.stdout, re.MULTILINE), "the proof takes minutes"
    done = toy.call("check", row, "--cost")
    assert done.returncode == 1 and "  cost      FAILED  not written" in done.stdout, "nothing else was asked for"
    (kept,) = set(tmp_path.glob("rosetta-check-*")) - set(left)
    shutil.rmtree(kept)
    monkeypatch.setattr(Record, "disturbed", None)
    done = toy.call("check", row, "--cost")
    assert done.returncode == 0 and re.findall(r"^  (\w+) +ok  ", done.stdout, re.MULTILINE) == ["smoke", "cost"]
    assert task.read_text().startswith(before) and f"{NEW} = {{ cost = {{ start_s = " in task.read_text()
    assert not list(toy.root.glob("results*")), "there is no results folder, nor a page"


VARIANTS = """
[frameworks.pytorch]
title = "PyTorch"
environment = "test"
imports = ["numpy"]
released = 2016
homepage = "https://pytorch.org"
[frameworks.pytorch.variants.compiled]
parameters = { COMPILE = "default" }
[frameworks.pytorch.variants.bf16]
parameters = { PRECISION = "bf16" }
[frameworks.pytorch.variants.torch1]
environment = "test"
[frameworks.pytorch.variants.rewritten]
title = "PyTorch, rewritten"
"""
PROGRAM = '"""Why."""\n\n# %% after setup\nprint("the program was here")\n'


def test_a_variant_is_a_row_where_it_applies(standin):
    """Where the notebook binds its parameters, and, of a program, where the task names it: a new task needs no line for others."""
    standin.catalog(standin.entry("good") + VARIANTS)
    toys.write(standin.root)
    toys.notebook(standin.root, "toy_train", "import sys;", "COMPILE = None\nimport sys;", framework="pytorch")
    toys.notebook(standin.root, "toy_infer", framework="pytorch")
    listed = standin.call("list", own_python=False)
    assert listed.returncode == 2 and "bf16.parameters" in one_line(listed.stderr), "no notebook knows it"
    standin.catalog(standin.entry("good") + VARIANTS.replace("PRECISION", "COMPILE"))
    with (standin.root / "catalog.toml").open("a") as catalog:
        catalog.write(toys.FRAMEWORK)
    task = standin.root / "notebooks" / "toy_infer" / "task.toml"
    with task.open("a") as facts:
        facts.write('\n[rows."pytorch[rewritten]"]\ncost = { start_s = 1, item_ms = 0.1 }\n')
    listed = standin.call("list", own_python=False)
    assert listed.returncode == 2 and "it takes programs/variants/pytorch-rewritten.py" in one_line(listed.stderr)
    program = standin.root / "programs" / "variants" / "pytorch-rewritten.py"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    listed = standin.call("list", own_python=False)
    assert re.findall(r"^(toy_\S+/pytorch\S*)", listed.stdout, re.MULTILINE) == [
        "toy_infer/pytorch",
        "toy_infer/pytorch[torch1]",
        "toy_infer/pytorch[rewritten]",
        "toy_train/pytorch",
        "toy_train/pytorch[compiled]",
        "toy_train/pytorch[bf16]",
        "toy_train/pytorch[torch1]",
    ], listed.stdout + listed.stderr
    done = standin.run("toy_infer/pytorch", "toy_infer/pytorch[rewritten]", options=())
    assert done.returncode == 0, done.stdout + done.stderr
    (plain,), (changed,) = (list(standin.out.rglob(f"{name}.json")) for name in ("pytorch", "pytorch-rewritten"))
    copy = changed.with_suffix(".ipynb").read_text()
    assert "the program was here" in copy and "programs/variants/pytorch-rewritten.py`. Why." in copy
    plain, changed = (json.loads(file.read_text()) for file in (plain, changed))
    assert plain["notebook"]["path"] == changed["notebook"]["path"]
    assert plain["notebook"]["sha256"] != changed["notebook"]["sha256"] and plain["key"] != changed["key"]


def test_runner_is_as_it_was(toy):
    digests = [files.digest((root / "rosetta").rglob("*.py"), root) for root in (toy.root, ROOT)]
    assert digests[0] == digests[1]
    assert not set(toys.TOYS) & OUR_TASKS, "the toys are no tasks of the collection"
