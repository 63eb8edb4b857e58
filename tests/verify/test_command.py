"""``run_all.py verify`` and ``crossload`` on a stand-in checkout whose "framework" is NumPy."""

import json
import signal
import subprocess
import time

import pytest

from tests.standin import StandIn, one_line
from tests.verify.numpy_notebook import FAULTS, cells

SMALLER = {
    "\nSTEPS, BATCH = 3, 64": "\nSTEPS, BATCH = 3, 8",
    "DROP_STEPS, DROP_BATCH, DROP_N_TEST = 100, 8, 100": "DROP_STEPS, DROP_BATCH, DROP_N_TEST = 30, 2, 10",
    "REFERENCE_STEPS = 200": "REFERENCE_STEPS = 60",
    "\nN_TEST = 510": "\nN_TEST = 20",
}


@pytest.fixture
def standin(tmp_path):
    made = StandIn(tmp_path / "checkout")
    probes = made.root / "rosetta" / "verify" / "probes.py"
    source = probes.read_text()
    for usual, small in SMALLER.items():  # NumPy needs a minute for the usual sizes
        assert usual in source
        source = source.replace(usual, small)
    probes.write_text(source)
    for fault in FAULTS:
        made.notebook(fault, cells(fault))
    made.catalog("".join(made.entry(fault) for fault in FAULTS))
    return made


def verify(standin, *arguments, command="verify", synthetic=True, **variables):
    options = ["--out", str(standin.out), *(["--synthetic"] if synthetic else [])]
    return standin.call(command, *arguments, *options, **variables)


def found(standin) -> dict[str, dict]:
    rows = json.loads((standin.out / "conformance.json").read_text())["rows"]
    return {row["framework"]: row for row in rows}


def test_row_that_is_the_reference_passes(standin):
    done = verify(standin, "same")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 rows pass all levels on SYNTHETIC images" in done.stdout
    row = found(standin)["same"]
    assert [finding["level"] for finding in row["findings"]] == [1, 2, 3, 4, 5]
    assert row["synthetic"] and row["machine"]["name"] == "test-machine" and row["versions"]["numpy"]
    page = (standin.out / "conformance.md").read_text()
    assert f"**1 of {len(FAULTS)} rows pass all 5 levels**, on SYNTHETIC images" in page


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
        == "the notebook's run: failed: RuntimeError: no kernel image is available (in the cell train)"
    )
    assert "crashed" in reasons["segfault"][1] and "not saved" in reasons["forgets"][1]
    assert "diverged" in reasons["diverges"][4]
    assert set(reasons["swapped"]) == {3, 5} and reasons["swapped"][3].startswith("test probabilities differ")
    page = (standin.out / "conformance.md").read_text()
    assert "### Failed or skipped" in page and "**1 of" in page


def test_looser_tolerance_is_used_and_shown(standin):
    looser = '[frameworks.swapped.looser]\nprobability = { tolerance = 0.9, reason = "sees the world on its side" }\n'
    standin.catalog(standin.entry("swapped") + looser)
    verify(standin, "swapped")
    finding = found(standin)["swapped"]["findings"][2]
    assert finding["tolerances"]["probability"] == 0.9
    assert "sees the world on its side" in (standin.out / "conformance.md").read_text()


def test_rows_that_this_machine_cannot_hold_are_skipped(standin):
    entry = standin.entry("same").replace('imports = ["numpy"]', 'imports = ["no_such_framework"]')
    standin.catalog(entry)
    everything = verify(standin)
    assert everything.returncode == 0 and "skipped: the given interpreter cannot import" in everything.stdout
    assert verify(standin, "same").returncode == 1  # asked for by name


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
    (matrix,) = json.loads((standin.out / "crossload.json").read_text())["matrices"]
    assert matrix["rows"] == ["same", "raises"] and matrix["n_test"] == 50
    assert all(len(set(hits)) == 1 for hits in matrix["hits"])
    assert "### Cross-loading" in (standin.out / "conformance.md").read_text()


def test_crossload_tells_rows_that_disagree(standin):
    done = verify(standin, "same", "boasts", "--train-size", "64", "--test-size", "100", command="crossload")
    assert done.returncode == 1 and "NOT all agree within 2 images" in done.stdout


@pytest.mark.parametrize(
    "arguments, command, message",
    [
        (["nosuch"], "verify", "unknown framework nosuch"),
        (["same"], "crossload", "crossload needs two rows or more"),
        (["same", "swapped", "--test-size", "20000"], "crossload", "there are only 10000 images"),
    ],
)
def test_bad_input_is_one_line(standin, arguments, command, message):
    done = verify(standin, *arguments, command=command)
    assert done.returncode == 2 and message in one_line(done.stderr)


def test_missing_data_is_one_line(standin, tmp_path):
    done = verify(standin, "same", synthetic=False, ROSETTA_DATA=str(tmp_path / "nowhere"))
    assert done.returncode == 2 and "nowhere" in one_line(done.stderr)


@pytest.mark.parametrize("file", ["conformance.json", "crossload.json"])
def test_damaged_file_is_one_line(standin, file):
    standin.out.mkdir()
    (standin.out / file).write_text('{"rows": 1')
    done = verify(standin, "same")
    assert done.returncode == 2 and file in one_line(done.stderr) and "mend or delete" in done.stderr


def test_interrupt_keeps_what_is_finished_and_leaves_no_process(standin):
    command = standin.command("verify", "same", "hangs", "--synthetic", "--jobs", "2", "--out", str(standin.out))
    running = subprocess.Popen(command, cwd=standin.root, env=standin.variables(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not ((standin.out / "conformance.json").exists() and sleeping()) and time.monotonic() < deadline:
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert list(found(standin)) == ["same"]
    assert not sleeping()


def sleeping() -> bool:
    return subprocess.run(["pgrep", "-f", "sleep 986"], capture_output=True).returncode == 0
