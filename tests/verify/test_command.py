"""``run_all.py verify`` and ``crossload`` on a stand-in checkout whose "framework" is NumPy."""

import json
import random
import shutil
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

from rosetta.verify import command as commands
from tests.standin import TASK, TASK_FILE, StandIn, one_line
from tests.verify.numpy_notebook import FAULTS, cells

SMALLER = {
    "\nSTEPS, BATCH = 3, 64": "\nSTEPS, BATCH = 3, 8",
    "DROP_BATCH = 8": "DROP_BATCH = 2",
    "REFERENCE_STEPS = 200": "REFERENCE_STEPS = 60",
    "n_test=1510, drop_steps=100, n_drop_test=100": "n_test=20, drop_steps=30, n_drop_test=10",
}


@pytest.fixture
def standin(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "tests.standin.TASK_FILE", "without_chance = { DROPOUT_CONV = 0.0, DROPOUT_FC = 0.0 }\n" + TASK_FILE
    )
    made = StandIn(tmp_path / "checkout")
    proof = made.root / "rosetta" / "verify" / "train.py"
    source = proof.read_text()
    for usual, small in SMALLER.items():  # NumPy needs a minute for the usual sizes
        assert usual in source
        source = source.replace(usual, small)
    proof.write_text(source)
    for fault in FAULTS:
        made.notebook(fault, cells(fault))
    made.catalog("".join(made.entry(fault) for fault in FAULTS))
    return made


def verify(standin, *arguments, command="verify", synthetic=True, **variables):
    options = ["--out", str(standin.out), *(["--synthetic"] if synthetic else [])]
    return standin.call(command, *arguments, *options, **variables)


def report(standin) -> dict:
    return json.loads((standin.out / "conformance" / f"{TASK}.json").read_text())


def found(standin) -> dict[str, dict]:
    return {row["framework"]: row for row in report(standin)["rows"]}


def page(standin) -> str:
    return (standin.out / "conformance" / f"{TASK}.md").read_text()


def test_row_that_is_the_reference_passes(standin):
    done = verify(standin, "same")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 rows pass all levels on SYNTHETIC data" in done.stdout
    row = found(standin)["same"]
    assert [finding["level"] for finding in row["findings"]] == [1, 2, 3, 4, 5]
    assert row["synthetic"] and row["machine"]["name"] == "test-machine" and row["versions"]["numpy"]
    assert f"**1 of {len(FAULTS)} rows pass all 5 levels**, on SYNTHETIC data" in page(standin)

    # What is committed counts, unless the user names a folder
    shutil.move(standin.out, standin.root / "results")
    standin.catalog(standin.entry("same"))
    done = standin.call("verify", "--synthetic")
    assert "1 of 1 rows pass all levels (1 unchanged since" in done.stdout, done.stdout + done.stderr
    assert not (standin.root / "runs" / "conformance").exists()


@pytest.mark.long
def test_rows_that_fail_are_named_and_the_others_kept(standin):
    assert verify(standin, "same").returncode == 0
    done = verify(standin, "raises", "segfault", "forgets", "diverges", "swapped")
    assert done.returncode == 1
    rows = found(standin)
    assert all(finding["passed"] for finding in rows["same"]["findings"])
    reasons = {
        name: {finding["level"]: finding["reason"] for finding in row["findings"] if not finding["passed"]}
        for name, row in rows.items()
    }
    assert (
        reasons["raises"][4]
        == "the notebook's run: failed: RuntimeError: no kernel image is available (in the cell train, line 1)"
    )
    assert "crashed" in reasons["segfault"][1] and "not saved" in reasons["forgets"][1]
    assert "diverged" in reasons["diverges"][4]
    assert set(reasons["swapped"]) == {3, 5} and reasons["swapped"][3].startswith("test probabilities differ")
    assert "## Failed, skipped or stale" in page(standin) and "**1 of" in page(standin)
    named = "this is what happens with height and width swapped"
    assert named in rows["swapped"]["diagnosis"]["3"] and named in done.stdout and named in page(standin)


def test_log_of_a_row_that_failed_is_named_and_stays(inside):
    inside.catalog(inside.entry("raises"))
    done = inside.call("verify", "raises", "--synthetic", "--out", str(inside.out))
    log = inside.out / "conformance" / f"{TASK}.raises.log"
    assert done.returncode == 1 and f"    log: {log}\n" in done.stdout and log.is_file()


def test_cause_of_several_levels_is_told_once_with_its_log(standin):
    done = verify(standin, "raises")
    told = "RuntimeError: no kernel image is available (in the cell train, line 1)"
    assert f"raises: FAILED levels 1, 2, 3, 4, 5: the notebook's run: failed: {told}\n" in done.stdout
    log = standin.out / "conformance" / f"{TASK}.raises.log"
    assert f"    log: {log}\n" in done.stdout
    assert log.read_text().count("no kernel image is available\nfor this device") == 2, "of both runs"
    assert page(standin).count(told) == 1
    standin.notebook("raises", cells("same"))
    assert verify(standin, "raises").returncode == 0
    assert not log.exists()


@pytest.mark.long
def test_looser_tolerance_is_used_and_shown(standin):
    standin.rows({"swapped": 'looser.probability = { tolerance = 0.9, reason = "sees the world on its side" }'})
    verify(standin, "swapped")
    finding = found(standin)["swapped"]["findings"][2]
    assert finding["tolerances"]["probability"] == 0.9
    assert "sees the world on its side" in page(standin)


def test_unknown_tolerance_is_one_line(standin):
    standin.rows({"swapped": 'looser.probabilty = { tolerance = 0.9, reason = "" }'})
    done = verify(standin, "swapped")
    assert done.returncode == 2 and "probabilty; did you mean probability?" in one_line(done.stderr)


def test_rows_that_this_machine_cannot_hold_are_skipped(standin):
    entry = standin.entry("same").replace('imports = ["numpy"]', 'imports = ["no_such_framework"]')
    standin.catalog(entry)
    everything = verify(standin)
    assert everything.returncode == 0 and "skipped: the given interpreter cannot import" in everything.stdout
    assert verify(standin, "same").returncode == 1  # asked for by name


def test_rows_are_drawn_while_their_proofs_are_short():
    proven = {name: SimpleNamespace(seconds=seconds) for name, seconds in {"a": 900, "b": 300, "c": 200}.items()}
    drawn = [commands.some(proven, 3, random.Random(seed)) for seed in range(20)]
    assert {tuple(sorted(names)) for names in drawn} == {("a",), ("b",), ("c",), ("b", "c")}
    assert commands.some(proven, 0, random.Random(0)) == []


@pytest.mark.long
def test_crossload(standin):
    standin.notebook("raises", cells("same"))
    done = verify(
        standin,
        "same",
        "raises",
        "--train-size",
        "64",
        "--test-size",
        "50",
        command="crossload",
        ROSETTA_MACHINE="test machine",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    matrix = report(standin)["matrix"]
    assert matrix["rows"] == ["same", "raises"] and matrix["n_test"] == 50
    assert all(len(set(hits)) == 1 for hits in matrix["hits"]) and matrix["others"] == [[0, 0], [0, 0]]
    assert "## Cross-loading" in page(standin)


@pytest.mark.long
def test_crossload_tells_rows_that_disagree(standin):
    done = verify(standin, "same", "boasts", "--train-size", "64", "--test-size", "100", command="crossload")
    assert done.returncode == 1 and "NOT all agree; " in done.stdout


@pytest.mark.parametrize(
    "arguments, command, message",
    [
        (["nosuch"], "verify", "unknown framework nosuch"),
        (["same"], "crossload", "crossload needs two rows or more"),
        (["same", "swapped", "--test-size", "20000"], "crossload", "N_TEST is 20000, but there are only 10000"),
    ],
)
def test_bad_input_is_one_line(standin, arguments, command, message):
    done = verify(standin, *arguments, command=command)
    assert done.returncode == 2 and message in one_line(done.stderr)


@pytest.mark.parametrize("by", ["ROSETTA_DATA", "--data-dir"])
def test_missing_data_is_one_line(standin, tmp_path, by):
    nowhere = str(tmp_path / "nowhere")
    options, variables = ([by, nowhere], {}) if by.startswith("-") else ([], {by: nowhere})
    done = verify(standin, "same", *options, synthetic=False, **variables)
    assert done.returncode == 2 and "nowhere" in one_line(done.stderr)
    assert by in done.stderr


def test_damaged_file_is_one_line(standin):
    (standin.out / "conformance").mkdir(parents=True)
    (standin.out / "conformance" / f"{TASK}.json").write_text('{"rows": 1')
    done = verify(standin, "same")
    assert done.returncode == 2 and f"{TASK}.json" in one_line(done.stderr) and "mend or delete" in done.stderr


@pytest.mark.long
def test_interrupt_keeps_what_is_finished_and_leaves_no_process(standin):
    command = standin.command("verify", "same", "hangs", "--synthetic", "--jobs", "2", "--out", str(standin.out))
    running = subprocess.Popen(command, cwd=standin.root, env=standin.variables(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not ((standin.out / "conformance" / f"{TASK}.json").exists() and sleeping()) and time.monotonic() < deadline:
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert list(found(standin)) == ["same"]
    assert not sleeping()


def sleeping() -> bool:
    return subprocess.run(["pgrep", "-f", "sleep 986"], capture_output=True).returncode == 0
