"""A batch goes on after anything: what is finished and unchanged is not run again, and nothing is lost or doubled."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rosetta import records

KILLS, FEW = 20, 4  # with --all, and without


def resume(standin, *more: str) -> subprocess.CompletedProcess:
    return standin.call("resume", *more, "--out", str(standin.out), own_python=False)


def ran(done: subprocess.CompletedProcess) -> set[str]:
    """The rows that were run, by the plain lines."""
    return set(re.findall(r"^\[\d+/\d+\] (\S+): starting", done.stdout, re.MULTILINE))


def edit(standin, name: str, before: str, after: str) -> None:
    notebook = standin.path(name)
    text = notebook.read_text()
    assert before in text
    notebook.write_text(text.replace(before, after))


def test_what_failed_and_what_has_changed_is_run_again(inside):
    assert inside.run("good", "raises").returncode == 1
    first = inside.record("good")
    edit(inside, "raises", "raise RuntimeError", "log = None; record = len; RuntimeError")
    done = resume(inside)
    assert ran(done) == {"raises"} and "1 of 2 runs are finished" in done.stdout
    assert inside.record("good") == first and inside.record("raises.failed")["batch"] == first["batch"]
    edit(inside, "raises", "record = len", "import sys; sys.exit")
    edit(inside, "good", "2.0 - epoch", "1.9 - epoch")
    assert ran(resume(inside)) == {"good", "raises"}
    (inside.root / "common" / "extra.py").write_text("")  # no notebook imports it
    assert ran(resume(inside)) == {"raises"}
    with (inside.root / "common" / "record.py").open("a") as file:
        file.write("# changed\n")
    assert ran(resume(inside)) == {"good", "raises"}
    (order,) = inside.out.glob(".batches/*/order.json")
    python = Path(sys.executable)
    another = python.parent / ".." / python.parent.name / python.name
    order.write_text(json.dumps(json.loads(order.read_text()) | {"python": [f"all={another}"]}))
    assert ran(resume(inside)) == {"good", "raises"}
    assert ran(resume(inside)) == {"raises"}


def test_a_runner_killed_after_its_last_record_is_cleared_up_after(inside):
    assert inside.run("good").returncode == 0
    (batch,) = inside.out.glob(".batches/*")
    (batch / "rosetta-abcd").mkdir()  # the folder of the last run, which its runner could not remove
    status = json.loads((batch / "status.json").read_text())
    status["lines"][0] |= {"state": "running", "ended": None}
    (batch / "status.json").write_text(json.dumps(status | {"ended": None}))
    (inside.out / "results.md").unlink()
    assert "all 1 runs are finished" in resume(inside).stdout
    assert not (batch / "rosetta-abcd").exists()
    status = json.loads((batch / "status.json").read_text())
    assert status["ended"] and status["lines"][0]["state"] == "ok"
    assert "good" in (inside.out / "results.md").read_text()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_at_any_moment_every_row_ends_with_one_record(standin, request):
    """SIGKILL at random moments, resumed each time: only the run in flight is lost."""
    kills = KILLS if request.config.getoption("--all") else FEW
    chance, others = random.Random(4), ("other", "third", "fourth")
    rows = ["good", *(f"good[{name}]" for name in others)]
    variants = (f"[frameworks.good.variants.{name}]\nparameters = {{ SECONDS = 0.4 }}\n" for name in others)
    standin.catalog(standin.entry("good") + "".join(variants))
    start = standin.command("run", "--synthetic", "--preset", "smoke", "--out", str(standin.out))
    again = standin.command("resume", "--out", str(standin.out), own_python=False)
    finished: dict[str, dict] = {}
    met = 0  # kills of a runner at work
    for _ in range(kills):
        command = again if any(standin.out.glob(".batches/*/order.json")) else start
        runner = subprocess.Popen(command, cwd=standin.root, env=standin.variables(), stdout=subprocess.DEVNULL)
        try:
            runner.wait(chance.uniform(0.3, 5.0))
        except subprocess.TimeoutExpired:
            runner.kill()
            met += runner.wait() != 0
        for _, record in records.read_all(standin.out):  # whatever is there is whole
            kept = finished.setdefault(record.name, record.model_dump())
            assert kept == record.model_dump(), "a finished run was run again"
        if len(finished) == len(rows):  # begin anew, so that all kills hit a batch at work
            done = resume(standin)
            assert done.returncode == 0 and "all 4 runs are finished" in done.stdout
            check_one_record_each(standin, rows)
            finished.clear()
            subprocess.run(["rm", "-r", str(standin.out)], check=True)
    assert met, "every batch had ended before its kill"
    begun = any(standin.out.glob(".batches/*/order.json"))
    assert (resume(standin) if begun else standin.run(*rows)).returncode == 0
    check_one_record_each(standin, rows)


def check_one_record_each(standin, rows: list[str]) -> None:
    found = [record for _, record in records.read_all(standin.out)]
    assert sorted(record.name for record in found) == sorted(rows)
    assert {record.status for record in found} == {"ok"} and len({record.batch for record in found}) == 1
    assert not list(standin.out.rglob("rosetta-*")) and not list(standin.out.rglob("*.tmp"))
