"""Runs of well and badly behaved notebooks: what is recorded, what is kept, what is left behind."""

import errno
import os
import re
import shutil
import sys
import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import jupyter_client
import nbformat
import papermill.engines
import psutil
import pytest
from papermill.engines import NotebookExecutionManager

from rosetta import batch, files, records
from rosetta.errors import RosettaError
from rosetta.kinds import KINDS
from rosetta.records import Record
from rosetta.run import child
from rosetta.run.execute import ExecutedNotebook, Run, new_folder
from tests.standin import ROOT, TASK, cells, one_line


def test_good_run_leaves_record_notebook_and_table_and_nothing_else(standin):
    """Kernels need no port: of two that start together, both could be given the same. A file of theirs in the system's folder
    would stay where the run's process is killed."""
    kernel = "from ipykernel.kernelapp import IPKernelApp; kernel = IPKernelApp.instance()\n"
    kernel += "print('sockets', kernel.transport, kernel.ip, '\\nfile', kernel.abs_connection_file)\n"
    standin.notebook("good", [(role, kernel + code if role == "train" else code) for role, code in cells("good")])
    done = standin.run("good")
    assert done.returncode == 0, done.stdout + done.stderr
    size = "1 epoch of 640, batch 64, tested on 100, synthetic data"
    assert f"  good                 smoke  {size}, about 1 s\n" in done.stdout
    record = standin.record("good")
    assert (record["status"], record["error"], record["preset"]) == ("ok", None, "smoke")
    assert record["dataset"] == {
        "name": "CIFAR-10",
        "synthetic": True,
        "sizes": {"train": 640, "test": 100},
    }
    metrics = record["metrics"]
    assert metrics["accuracy"] == 0.5 and metrics["parameters"] == 3441592
    assert metrics["loss"] == [2.0] and len(metrics["epoch_s"]) == 1
    assert metrics["train_s"] == pytest.approx(sum(metrics["epoch_s"]))
    assert metrics["wall_s"] > metrics["train_s"] and metrics["data_s"] > 0
    assert metrics["peak_rss"] > 10 * 2**20 and metrics["peak_gpu_memory"] is None
    executed = nbformat.read(standin.column() / record["notebook"]["executed"], as_version=4)
    assert "injected-parameters" in executed.cells[3].metadata.tags
    assert "SYNTHETIC data" in standin.table() and "50.00 %" in standin.table()
    log = (standin.column() / "good.log").read_text()
    assert "epoch 1/1" in log and "Fatal" not in log and "Traceback" not in log
    sockets, file = (Path(path) for path in re.search(r"^sockets ipc (.+) \nfile (.+)$", log, re.MULTILINE).groups())
    assert file.is_relative_to(standin.out) and not file.parent.exists() and not sockets.parent.exists()


def test_failure_does_not_replace_a_finished_record(inside):
    assert inside.run("good").returncode == 0
    before = inside.record("good")
    broken = inside.path("good")
    broken.write_text(broken.read_text().replace("log = EpochLog", "raise SystemError('today') ; log = EpochLog"))
    assert inside.run("good").returncode == 1
    assert inside.record("good") == before
    assert inside.record("good.failed")["status"] == "failed"
    assert "50.00 %" in inside.table() and "SystemError: today" in inside.table()


def test_success_takes_an_earlier_failure_away(record, tmp_path):
    records.write(record.model_copy(update={"status": "failed", "error": "a reason"}), tmp_path)
    records.path(record.model_copy(update={"status": "failed"}), tmp_path, ".log").touch()
    file = records.write(record, tmp_path)
    assert [*file.parent.iterdir()] == [file]


def test_disk_full_while_a_record_is_written(record, tmp_path, monkeypatch):
    file = records.write(record, tmp_path)
    before = file.read_text()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RosettaError) as caught:
        records.write(record.model_copy(update={"device": "another"}), tmp_path)
    assert one_line(str(caught.value)) == (
        f"cannot write {file.name}: No space left on device; what was finished before is kept"
    )
    assert file.read_text() == before
    assert list(file.parent.iterdir()) == [file]


def test_no_file_of_another_run_stands_beside_a_record(record, tmp_path):
    """Of a run that left neither notebook nor log, or whose record alone could be kept."""
    notebook = record.notebook.model_copy(update={"executed": None, "log": None})
    failed = record.model_copy(update={"status": "failed", "error": "a reason", "notebook": notebook})
    for suffix in (".ipynb", ".log"):
        files.write_atomically(records.path(failed, tmp_path, suffix), "of an earlier run")
    batch.save(Run(failed, new_folder(tmp_path)), tmp_path)
    assert [file.suffix for file in records.path(failed, tmp_path).parent.iterdir()] == [".json"]


def test_what_a_run_changes_is_in_its_path_and_a_seed_in_its_name(inside):
    """Two runs that differ never share a file."""
    assert inside.run("good").returncode == 0
    first = inside.record("good")
    for options in ("--batch-size 32", "--batch-size 128 --seed 5", "--epochs 3 --threads 1"):
        assert inside.run("good", options=("--synthetic", *options.split())).returncode == 0
    assert inside.record("good", "smoke,batchsize=32-synthetic")["params"]["BATCHSIZE"] == 32
    seeded = inside.record("good.seed-5", "smoke,batchsize=128-synthetic")
    assert seeded["params"]["SEED"] == 5 and seeded["preset"] == "smoke" and seeded["changed"] == {"BATCHSIZE": 128}
    longer = inside.record("good", "smoke,epochs=3,threads=1-synthetic")
    assert len(longer["metrics"]["loss"]) == 3 and longer["metrics"]["steady_epoch_s"] is not None
    assert inside.record("good") == first
    assert len(records.read_all(inside.out)) == 4


def test_a_run_writes_below_runs_and_says_so_unless_results_are_named(inside):
    done = inside.call("run", "good", "--preset", "smoke", "--synthetic")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("1 of 1 runs ok")]
    assert line == (
        "1 of 1 runs ok; table: ./runs/results.md (git ignores runs/; --out results renews what is committed)"
    )
    assert (inside.root / "runs" / "test-machine" / TASK / "smoke-synthetic" / "good.json").is_file()
    assert not (inside.root / "results").exists() and not (inside.root / "results.md").exists()
    assert "all 1 runs are finished" in inside.call("resume", own_python=False).stdout

    shutil.rmtree(inside.root / "runs")
    done = inside.call("run", "good", "--preset", "smoke", "--synthetic", "--out", "results")
    assert done.stdout.splitlines()[-1] == "1 of 1 runs ok; table: ./results.md", done.stdout
    assert done.stdout.startswith("results: ./results.md, from"), done.stdout
    assert not (inside.root / "runs").exists()
    assert "/runs/" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize(
    "changed, synthetic, name",
    [
        ({}, False, "quick"),
        ({}, True, "quick-synthetic"),
        ({"threads": 2, "BATCHSIZE": 32}, False, "quick,batchsize=32,threads=2"),
        ({"LR": 0.1, "NETWORK": "a/b"}, True, "quick,lr=0.1,network=b-c14cdd-synthetic"),
    ],
)
def test_column(changed, synthetic, name):
    assert records.column("quick", changed, synthetic) == name


def test_threads_limit_the_kernel(standin):
    code = (
        "record(log, len(os.sched_getaffinity(0)) / 100, 3441592, [numpy], os.environ['OMP_NUM_THREADS'], dict, list)"
    )
    path = standin.path("good")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[-1].source = code
    nbformat.write(notebook, path)
    assert standin.run("good", options=("--synthetic", "--threads", "1")).returncode == 0
    record = standin.record("good", "smoke,threads=1-synthetic")
    assert record["metrics"]["accuracy"] == 0.01 and record["device"] == "1" and record["threads"] == 1
    assert record["thread_pools"]["processors"] == 1, "read back from the run"


def test_every_field_of_a_record_is_documented():
    page = (ROOT / "docs" / "records.md").read_text()
    models = (Record, records.Gpu, records.Point, records.Telemetry, *(kind.metrics for kind in KINDS.values()))
    fields = {field.alias or name for model in models for name, field in model.model_fields.items()}
    assert not [name for name in sorted(fields) if not re.search(rf"[`.]{name}\b", page)]


def processes_below(standin) -> list[psutil.Process]:
    """Processes that this checkout's runs have started and that still live."""
    processes = []
    for process in psutil.process_iter(["environ", "cwd", "cmdline", "status"]):
        facts = process.info
        place = (facts["cwd"] or "") + " ".join(facts["cmdline"] or ())
        lives = facts["status"] != psutil.STATUS_ZOMBIE
        if lives and str(standin.root) in place and "ROSETTA_RUN" in (facts["environ"] or ()):
            processes.append(process)
    return processes


def test_a_run_without_a_folder_is_a_record_like_any_other(record, tmp_path):
    """On a disk too full for an empty folder, nothing is there to be read, copied or removed."""
    (tmp_path / "file").touch()
    run = Run(record, new_folder(tmp_path / "file"))
    batch.save(run, tmp_path / "results")
    run.close()
    assert len(records.read_all(tmp_path / "results")) == 1 and not run.folder.exists()


def test_clock_that_is_set_ends_no_start_and_changes_no_second_of_a_cell(tmp_path, standin, monkeypatch):
    class Stepped(datetime):
        looks = count()

        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(hours=next(cls.looks))

    monkeypatch.setattr(papermill.engines, "datetime", SimpleNamespace(datetime=Stepped, timezone=timezone))
    monkeypatch.setattr(NotebookExecutionManager, "now", NotebookExecutionManager.now)  # as it was, afterwards
    hours = count(step=3600)
    monkeypatch.setattr(
        jupyter_client.client, "time", SimpleNamespace(time=lambda: next(hours), monotonic=time.monotonic)
    )
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 1.5\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    roles = [("parameters", "EPOCHS = 1"), ("data", "import time; time.sleep(0.2)"), ("train", "pass")]
    notebook, folder = standin.notebook("good", roles), new_folder(tmp_path)
    child.sockets(folder).mkdir()
    try:
        launched = datetime.now(UTC)
        job = child.Job(str(notebook), str(notebook.parent), {}, str(slow), clock=time.time() - time.monotonic())
        assert child.execute(job, folder / "executed.ipynb").status == "ok"
    finally:
        shutil.rmtree(child.sockets(folder))
    executed = ExecutedNotebook(folder / "executed.ipynb")
    assert 0.2 <= executed.seconds({"data": "data_s"})["data_s"] < 30
    assert 0 <= (executed.began() - launched).total_seconds() < 60
