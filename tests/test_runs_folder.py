"""Where commands write: below ``runs``, which git ignores; what is committed changes only where it is named."""

from pathlib import Path

from rosetta.paths import RESULTS, ROOT, RUNS
from rosetta.where import about, results_folder, shown_folder
from tests.standin import TASK


def test_what_is_committed_is_shown_and_not_written():
    assert (results_folder(None), shown_folder(None)) == (RUNS, RESULTS)
    assert results_folder(Path("there")) == shown_folder(Path("there")) == Path.cwd() / "there"
    assert "/runs/" in (ROOT / ".gitignore").read_text().splitlines()
    assert "--out results" in about(RUNS) and not about(RESULTS)


def test_a_run_writes_below_runs_and_says_so(standin):
    done = standin.call("run", "good", "--preset", "smoke", "--synthetic")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("1 of 1 runs ok")]
    assert line == (
        "1 of 1 runs ok; table: ./runs/results.md (git ignores runs/; --out results renews what is committed)"
    )
    assert (standin.root / "runs" / "test-machine" / TASK / "smoke-synthetic" / "good.json").is_file()
    assert not (standin.root / "results").exists() and not (standin.root / "results.md").exists()

    done = standin.call("resume", own_python=False)
    assert "all 1 runs are finished" in done.stdout


def test_results_that_are_named_are_renewed(standin):
    done = standin.call("run", "good", "--preset", "smoke", "--synthetic", "--out", "results")
    assert done.stdout.splitlines()[-1] == "1 of 1 runs ok; table: ./results.md", done.stdout
    assert not (standin.root / "runs").exists()
