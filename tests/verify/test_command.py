"""``run_all.py verify`` and ``crossload`` on a toy task of each kind: what is right passes, a planted mistake fails its level, and what
is found is kept, shown and told."""

import json
import random
import re
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

from rosetta.kinds import KINDS
from rosetta.verify import command as commands
from rosetta.verify.conformance import PROOFS
from tests import toys
from tests.inside import Inside
from tests.standin import StandIn, one_line

# task, level that must fail, a text of the notebook's code, the mistake in its place, how the reason begins
MISTAKES = [
    ("toy_train", 1, '{"fc.weight": weight', '{"weight": weight', "there is no tensor weight in this network"),
    ("toy_train", 2, "uniform(-0.5, 0.5", "uniform(-0.9, 0.9", "fc.weight is not uniform within its bound, "),
    ("toy_train", 3, "probabilities(x_test)", "probabilities(x_test[:, ::-1])", "test probabilities differ: "),
    ("toy_train", 4, "sum(losses) / len(x_train)", "sum(losses)", "the losses differ: "),
    ("toy_train", 4, "LR * (d.T @ x)", "LR * (d.T @ x + 0.05 * weight)", "the losses differ: "),
    (
        "toy_train",
        5,
        "BATCHSIZE, SEED, epoch",
        "BATCHSIZE",
        "all 5 epochs take the examples in the order that they are stored in",
    ),
    ("toy_train", 5, "* step(x, y)", "* (step(x, y) if len(y) == 3 or N_TRAIN != 5 else 0)", "no order of 5 examples "),
    ("toy_infer", 1, "weight, bias = load_weights", "load_weights", "fc.weight is not what INITIAL_WEIGHTS holds: "),
    ("toy_infer", 3, "@ weight.T + bias", "@ weight.T - bias", "the outputs differ: "),
    (
        "toy_speed",
        1,
        "weights, multiply_adds",
        "weights, 2 * multiply_adds",
        "narrow: 96 multiply-adds instead of 48: ",
    ),
    ("toy_speed", 3, "maximum(x @ weight.T, 0)", "maximum(x @ weight.T, 0.1)", "narrow: the outputs differ: "),
    ("toy_speed", 4, "np.float32(LR) * grad", "np.float32(LR) * 2 * grad", "narrow: the last losses differ: "),
    ("toy_entries", 1, "x.argmax(axis=1)", "largest = x.argmax(axis=1)", "no answer for largest: 1, allowed 0"),
    ("toy_entries", 2, "x.mean(axis=1)", "x.mean(axis=0)[:2]", "mean-of-rows differs by "),
    ("toy_entries", 2, "x.dtype.name", '"float32"', "name is float32 instead of float64"),
]
# What becomes of toy_train otherwise: a text of its code, what is put there, and why each level fails
RAISED = "the notebook's run: failed: RuntimeError: no kernel image is available (in the cell train)"
FAULTS = {
    "throws": (
        "log = EpochLog(",
        "raise RuntimeError('no kernel image is available\\nfor this device')\nlog = EpochLog(",
        dict.fromkeys((1, 2, 3, 4, 5), RAISED),
    ),
    "explodes": (
        *("LR * (d.T @ x)", "LR * (d.T @ x) * float('nan')"),
        dict.fromkeys((1, 3, 4, 5), "the notebook's run: diverged: ") | {2: "fc.weight is not uniform within"},
    ),
    "forgets": (
        *("def export_weights", "import os; os.environ.pop('ROSETTA_SAVE_TO')\ndef export_weights"),
        dict.fromkeys((1, 2, 3, 4, 5), "the notebook has not saved what is compared: "),
    ),
    "boasts": (*("record(log, evaluate()", "record(log, evaluate() + 0.05"), {3: "the accuracy is not that of"}),
}


def wrong(place: int) -> str:
    return f"wrong{place}"


def call(standin, *arguments: str, command: str = "verify") -> subprocess.CompletedProcess:
    return standin.call(command, *arguments, "--synthetic", "--out", str(standin.out))


def rows(standin, task: str = "toy_train") -> dict[str, dict]:
    report = json.loads((standin.out / "conformance" / f"{task}.json").read_text())
    return {row["framework"]: row for row in report["rows"]}


def page(standin, task: str = "toy_train") -> str:
    return (standin.out / "conformance" / f"{task}.md").read_text()


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    """One call for all kinds: (what it printed, the checkout)."""
    with pytest.MonkeyPatch.context() as patch:
        standin = Inside(tmp_path_factory.mktemp("toys") / "checkout", patch)
        standin.catalog("".join(standin.entry(wrong(place)) for place in range(len(MISTAKES))))
        toys.write(standin.root)
        for place, (task, _, old, new, _) in enumerate(MISTAKES):
            toys.notebook(standin.root, task, old, new, framework=wrong(place))
        done = call(standin)
        assert done.returncode == 1, done.stderr
        yield done, standin


def findings(standin, task: str, name: str = "numpy") -> dict[int, dict]:
    """What was found of a row, by level."""
    return {finding["level"]: finding for finding in rows(standin, task)[name]["findings"]}


@pytest.fixture
def checkout(inside):
    """Toys of each kind, and one of ``FAULTS`` each as another framework's notebook of toy_train."""
    inside.catalog("".join(map(inside.entry, FAULTS)))
    toys.write(inside.root)
    for fault, (old, new, _) in FAULTS.items():
        toys.notebook(inside.root, "toy_train", old, new, framework=fault)
    return inside


@pytest.mark.parametrize("task", toys.TOYS)
def test_notebook_that_is_right_passes(verified, task):
    done, standin = verified
    found, levels = findings(standin, task), PROOFS[task.removeprefix("toy_")].LEVELS
    assert found.keys() == levels.keys() and all(finding["passed"] for finding in found.values()), found
    count = 1 + sum(name == task for name, *_ in MISTAKES)
    assert f"**1 of {count} rows pass all {len(levels)} levels**" in page(standin, task)
    assert f"{task}/numpy: ok" in done.stdout and "| NumPy (SYNTHETIC data) |" in page(standin, task)
    row = rows(standin, task)["numpy"]
    assert row["synthetic"] and row["machine"]["name"] == "test-machine" and row["versions"]["numpy"]


@pytest.mark.parametrize("place", range(len(MISTAKES)), ids=lambda place: f"{MISTAKES[place][0]}-{MISTAKES[place][1]}")
def test_mistake_fails_its_level(verified, place):
    task, level, *_, expected = MISTAKES[place]
    found = findings(verified[1], task, wrong(place))
    assert not found[level]["passed"] and found[level]["reason"].startswith(expected)
    if (task, level) == ("toy_train", 4):
        assert found[5]["reason"] == "the order of the examples is not judged where level 4 fails"


def test_what_any_classifier_can_get_wrong_is_named_without_a_list(verified):
    (place,) = (place for place, mistake in enumerate(MISTAKES) if mistake[3] == "sum(losses)")
    (said,) = rows(verified[1], "toy_train")[wrong(place)]["diagnosis"].values()
    assert "this is what happens with a mean loss, told as the sum (" in said


def test_every_kind_has_a_proof():
    assert PROOFS.keys() == KINDS.keys()
    for proof in PROOFS.values():
        assert proof.LEVELS.keys() == proof.COLUMNS.keys()
        assert all(quantity in proof.TOLERANCES for shown in proof.COLUMNS.values() for quantity in shown)


def test_rows_that_fail_are_named_and_the_others_kept(checkout):
    assert call(checkout, "toy_train/numpy").returncode == 0
    done = call(checkout, *FAULTS)
    assert done.returncode == 1
    assert all(finding["passed"] for finding in findings(checkout, "toy_train").values())
    for fault, (*_, reasons) in FAULTS.items():
        found = findings(checkout, "toy_train", fault).items()
        failed = {level: finding["reason"] for level, finding in found if not finding["passed"]}
        assert failed.keys() == reasons.keys(), failed
        assert all(failed[level].startswith(reason) for level, reason in reasons.items()), failed
    assert "## Failed, skipped or stale" in page(checkout) and "**1 of 5 rows" in page(checkout)

    # A cause of several levels is told once, with its log; that goes once the row passes
    log = checkout.out / "conformance" / "toy_train.throws.log"
    assert f"throws: FAILED levels 1, 2, 3, 4, 5: {RAISED}\n    log: {log}\n" in done.stdout
    assert log.read_text().count("RuntimeError: no kernel image is available") == 3, "one run after the other"
    assert page(checkout).count(RAISED) == 1
    toys.notebook(checkout.root, "toy_train", framework="throws")
    assert call(checkout, "throws").returncode == 0 and not log.exists()


def test_looser_tolerance_is_used_and_shown(checkout):
    file = checkout.root / "notebooks" / "toy_train" / "task.toml"
    looser = 'boasts = { looser.probability = { tolerance = 0.9, reason = "sees the world on its side" } }\n'
    file.write_text(file.read_text() + looser)
    call(checkout, "boasts")
    assert findings(checkout, "toy_train", "boasts")[3]["tolerances"][
        "probability"
    ] == 0.9 and "sees the world on its side" in page(checkout)
    file.write_text(file.read_text().replace("looser.probability", "looser.probabilty"))
    done = call(checkout, "boasts")
    assert done.returncode == 2 and "probabilty; did you mean probability?" in one_line(done.stderr)
    file.write_text(
        file.read_text().replace("looser.probabilty = { tolerance = 0.9", "looser.probability = { tolerance = 1e-9")
    )
    done = call(checkout, "boasts")
    assert done.returncode == 2 and "looser.probability of boasts is 1e-09, all have" in one_line(done.stderr)


def test_rows_that_this_machine_cannot_hold_are_skipped(standin):
    standin.catalog(standin.entry("good").replace('imports = ["numpy"]', 'imports = ["no_such_framework"]'))
    everything = call(standin)
    assert everything.returncode == 0 and "skipped: the given interpreter cannot import" in everything.stdout
    assert call(standin, "good").returncode == 1  # asked for by name


def test_rows_that_have_not_changed_are_not_verified_again(inside):
    inside.catalog(inside.entry("wrong"))
    toys.write(inside.root)
    toys.notebook(inside.root, "toy_entries", "x.mean(axis=1)", "x.mean(axis=0)", framework="wrong")

    def verify(*arguments: str) -> str:
        return call(inside, *arguments).stdout

    first = verify("toy_entries/numpy", "toy_infer/numpy")
    assert "2 of 2 rows pass all levels;" in first, "neither task has data that could be synthetic"
    again = verify()
    assert re.search(r"4 of 5 rows pass all levels \(2 unchanged since \d{4}-\d\d-\d\d, 3 verified now\)", again), again
    assert "wrong: FAILED" in again and "toy_infer/numpy" not in again
    assert "[1/1] wrong: FAILED" in verify(), "a row that fails is verified again"
    assert "[1/1] wrong" in verify("--task", "toy_entries")

    drawn = verify("--task", "toy_infer", "--drawn", "1")
    assert re.search(r"drawn with seed \d+: toy_infer/numpy", drawn) and "1 of 1 rows pass all levels;" in drawn
    assert "(1 unchanged since" in verify("--task", "toy_infer")
    toys.notebook(inside.root, "toy_infer", "bias, 0)", "bias, 0.0)")
    assert "[1/1] toy_infer/numpy: ok" in verify("--task", "toy_infer")
    assert "[1/1]" in verify("--task", "toy_infer", "--all") and "[1/1]" in verify("toy_infer/numpy")

    # What is committed counts, unless the user names a folder
    inside.out.rename(inside.root / "results")
    assert "(1 unchanged since" in inside.call("verify", "--synthetic", "--task", "toy_infer").stdout
    assert not (inside.root / "runs" / "conformance").exists()


def test_rows_are_drawn_while_their_proofs_are_short():
    proven = {name: SimpleNamespace(seconds=seconds) for name, seconds in {"a": 900, "b": 300, "c": 200}.items()}
    drawn = [commands.some(proven, 3, random.Random(seed)) for seed in range(20)]
    assert {tuple(sorted(names)) for names in drawn} == {("a",), ("b",), ("c",), ("b", "c")}
    assert commands.some(proven, 0, random.Random(0)) == []


def test_crossload_tells_rows_that_disagree(checkout):
    sizes = ("--train-size", "64", "--test-size", "100")
    done = call(checkout, "toy_train/numpy", "boasts", *sizes, command="crossload")
    assert done.returncode == 1 and "NOT all agree; " in done.stdout


@pytest.mark.parametrize(
    "arguments, command, message",
    [
        (["nosuch"], "verify", "unknown framework nosuch"),
        (["--task", "toy_speed"], "crossload", "toy_speed is of kind speed"),
        (["numpy"], "crossload", "rows of one task"),
        ([], "crossload", "rows of one task"),
        (["toy_train/numpy"], "crossload", "crossload needs two rows or more"),
        (
            ["--task", "toy_infer", "--set", f"INITIAL_WEIGHTS={__file__}"],
            "crossload",
            "crossload sets INITIAL_WEIGHTS itself",
        ),
        (["toy_train/numpy", "toy_train/wrong0", "--set", "LR=1.0"], "crossload", "crossload sets LR itself"),
        (
            ["toy_train/numpy", "toy_train/wrong0", "--test-size", "20000"],
            "crossload",
            "N_TEST is 20000, but there are",
        ),
    ],
)
def test_bad_input_is_one_line(verified, arguments, command, message):
    done = call(verified[1], *arguments, command=command)
    assert done.returncode == 2 and message in one_line(done.stderr)


@pytest.mark.parametrize("by", ["ROSETTA_DATA", "--data-dir"])
def test_missing_data_is_one_line(inside, tmp_path, by):
    nowhere = str(tmp_path / "nowhere")
    options, variables = ([by, nowhere], {}) if by.startswith("-") else ([], {by: nowhere})
    done = inside.call("verify", "good", *options, "--out", str(inside.out), **variables)
    assert done.returncode == 2 and "nowhere" in one_line(done.stderr) and by in done.stderr


def test_damaged_file_is_one_line(checkout):
    (checkout.out / "conformance").mkdir(parents=True)
    (checkout.out / "conformance" / "toy_train.json").write_text('{"rows": 1')
    done = call(checkout, "boasts")
    assert done.returncode == 2 and "toy_train.json" in one_line(done.stderr) and "mend or delete" in done.stderr


@pytest.mark.long
def test_interrupt_keeps_what_is_finished_and_leaves_no_process(standin: StandIn):
    standin.catalog(standin.entry("hangs"))
    toys.write(standin.root)
    hang = "import subprocess, time; subprocess.Popen(['sleep', '986'], start_new_session=True); time.sleep(986)\n"
    toys.notebook(standin.root, "toy_train", "log = EpochLog(", f"{hang}log = EpochLog(", framework="hangs")
    arguments = ("toy_train/numpy", "toy_train/hangs", "--synthetic", "--jobs", "2", "--out", str(standin.out))
    command = standin.command("verify", *arguments)
    running = subprocess.Popen(command, cwd=standin.root, env=standin.variables(), stdout=subprocess.DEVNULL)
    file, deadline = standin.out / "conformance" / "toy_train.json", time.monotonic() + 120
    while not (file.exists() and sleeping()) and time.monotonic() < deadline:
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert list(rows(standin)) == ["numpy"] and not sleeping()


def sleeping() -> bool:
    return subprocess.run(["pgrep", "-f", "sleep 986"], capture_output=True).returncode == 0


# ---- Networks of a framework's own zoo: what task.toml says of them is proven, whichever way it is

SAID = 'zoo = { narrow = "", wide = "twice the outputs" }'
SAME = "narrow of the zoo: it is the task's network, and task.toml says that it is another one"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (SAID, None),
        ('zoo = { wide = "" }', "wide of the zoo: the outputs differ: 1, allowed 0.0001"),
        ('zoo = { narrow = "another" }', SAME),
    ],
)
def test_zoo(inside, said, reason):
    inside.catalog(inside.entry("idle"))
    toys.write(inside.root)
    file = inside.root / "notebooks" / "toy_speed" / "task.toml"
    assert SAID in file.read_text()
    file.write_text(file.read_text().replace(SAID, said))
    done = call(inside, "toy_speed/numpy")
    third = findings(inside, "toy_speed")[3]
    assert (done.returncode, third["reason"]) == (int(reason is not None), reason)
    if reason is None:
        assert third["measured"]["output of narrow of the zoo"] < 1e-6
        text = page(inside, "toy_speed")
        assert "| framework | `narrow` | `wide` |" in text and "| NumPy | `narrow` | yes | " in text
        assert "| NumPy | `wide` | another one: twice the outputs |  |" in text
