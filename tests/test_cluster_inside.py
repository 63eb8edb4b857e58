"""Batches on a Dask cluster whose scheduler and workers are threads of this process: tests/test_cluster.py has real ones."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from rosetta import records
from rosetta.batch import journal
from rosetta.cluster.member import Unfit
from tests.standin import one_line

pytestmark = pytest.mark.timeout(60)
HOST = socket.gethostname()


@pytest.fixture
def run(inside, monkeypatch):
    """Runs rows of the stand-in on a cluster of so many workers."""
    from distributed import LocalCluster, utils

    # Not that of an earlier test: its thread may be in the process that this one is a fork of
    monkeypatch.setattr(utils, "_offload_executor", ThreadPoolExecutor(1))

    def call(workers, *names, options=("--synthetic",)):
        threads = {"processes": False, "protocol": "tcp", "dashboard_address": ":0", "threads_per_worker": 1}
        with LocalCluster(n_workers=workers, **threads) as cluster:
            done = inside.run(*names, options=(*options, "--cluster", cluster.scheduler_address))
        return done, {record.name: record for _, record in records.read_all(inside.out)}

    return call


@pytest.fixture
def on_worker(monkeypatch):
    """Puts a function before what a worker does with a run; it has the worker and the framework."""
    from rosetta.cluster import worker

    ordinary = worker.run

    def put(function):
        async def run(self, key, topic, contents, planned, *job):
            await function(self, planned["row"]["framework"])
            return await ordinary(self, key, topic, contents, planned, *job)

        monkeypatch.setattr(worker, "run", run)

    return put


def test_a_batch_on_two_workers(run, inside):
    done, found = run(2, "good", "raises")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[1] == "2 runs, 2 at a time, about 1 s"
    assert any(line.startswith(f"[1/2] good on {HOST}: ok  50.00 %") for line in lines)
    assert lines[-1].startswith("1 of 2 runs ok; table:")
    good, raises = found["good"], found["raises"]
    assert (good.status, raises.status) == ("ok", "failed") and "no kernel image is available" in raises.error
    assert {(record.machine.name, record.attempts, record.beside) for record in (good, raises)} == {
        ("test-machine", 1, 1)
    }
    assert (inside.column() / good.notebook.executed).is_file()
    batch = journal.find(inside.out, "last")
    assert [(line.where, line.state) for line in journal.read_status(batch).lines] == [(HOST, "ok"), (HOST, "failed")]
    assert sorted(path.name for path in batch.iterdir()) == ["lock", "order.json", "status.json"]


def test_what_a_worker_lacks_is_one_line_in_the_record(run):
    done, found = run(1, "good", options=("--data-dir", "/nonexistent"))
    (failed,) = found.values()
    assert (done.returncode, failed.status) == (1, "failed") and "/nonexistent" in one_line(failed.error)


def test_a_run_whose_worker_is_lost_starts_again_once(run, on_worker):
    """``raises`` takes down its first worker, ``diverges`` each."""
    lost = []

    async def lose(worker, framework):
        if framework == "diverges" or framework == "raises" and "raises" not in lost:
            lost.append(framework)
            closing = asyncio.create_task(worker.close(nanny=False))
            await asyncio.sleep(60)  # until that cancels it
            await closing

    on_worker(lose)
    done, found = run(4, "good", "raises", "diverges")
    assert {name: (record.status, record.attempts) for name, record in found.items()} == {
        "good": ("ok", 1),
        "raises": ("failed", 2),
        "diverges": ("crashed", 2),
    }
    assert sorted(lost) == ["diverges", "diverges", "raises"] and done.returncode == 1
    assert "its worker was lost, and so was that of the second attempt" in one_line(found["diverges"].error)
    assert done.stdout.count("is lost; the run starts again on another") == 2


def test_an_unfit_worker_gets_no_more_runs_and_an_error_there_is_the_record_of_its_run(run, on_worker):
    unfit = []

    async def refuse(worker, framework):
        if not unfit:
            unfit.append(worker.address)
            raise Unfit("its checkout has another common/ than this one")
        assert worker.address not in unfit, "it is used again"
        if framework == "raises":
            raise ValueError("what a worker says\nin two lines")

    on_worker(refuse)
    done, found = run(2, "good", "raises")
    assert f"worker {unfit[0]} ({HOST}): its checkout has another common/ than this one" in done.stdout
    assert {name: (record.status, record.attempts) for name, record in found.items()} == {
        "good": ("ok", 1),
        "raises": ("failed", 1),
    }
    assert found["raises"].error == "the worker could not run it: ValueError: what a worker says"


def test_what_comes_back_is_laid_out_in_the_batchs_own_folder(record, tmp_path):
    """Not in the temporary one, whose disk may be a small one."""
    from rosetta.cluster import executor

    run = executor._received(record.model_dump_json(by_alias=True), b"notebook", None, tmp_path)
    assert run.record == record and run.folder.parent == tmp_path
    assert run.executed.read_bytes() == b"notebook" and not run.log.exists()
