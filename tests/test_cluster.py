"""Batches on a Dask cluster: first one whose scheduler and workers are threads of this process, then (``long``) real processes."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from rosetta import cluster, files, journal, records
from rosetta.cluster import Unfit
from rosetta.errors import RosettaError
from rosetta.run import devices
from tests.dask_cluster import DaskCluster
from tests.inside import ONE_AT_A_TIME
from tests.standin import ROOT, TASK, TRAIN, StandIn, cells, one_line, until
from tests.test_run import processes_below

pytestmark = pytest.mark.timeout(300)
HOST = socket.gethostname()
MARK = "open('../../marks', 'a').write(f'{time.time()}\\n')"


def found_in(checkout: StandIn) -> dict[str, records.Record]:
    return {record.name: record for _, record in records.read_all(checkout.out)}


def ends(found: dict[str, records.Record]) -> dict[str, tuple[str, int]]:
    return {name: (record.status, record.attempts) for name, record in found.items()}


def lines_of(checkout: StandIn) -> list[journal.Line]:
    return files.load(journal.Status, journal.find(checkout.out, "last") / "status.json").lines


@pytest.fixture
def run(inside, monkeypatch):
    """Runs rows of the stand-in on a cluster of so many workers."""
    from distributed import LocalCluster, utils

    # Not that of an earlier test: its thread may be in the process that this one is a fork of
    monkeypatch.setattr(utils, "_offload_executor", ThreadPoolExecutor(1))
    surroundings = cluster._surroundings

    @contextmanager
    def alone(data_dir):
        """Here workers are threads, with the variables of one process: another's run may not begin or end meanwhile."""
        with ONE_AT_A_TIME, surroundings(data_dir):
            yield

    monkeypatch.setattr(cluster, "_surroundings", alone)

    def call(workers, *names, options=("--synthetic",)):
        threads = {"processes": False, "protocol": "tcp", "dashboard_address": ":0", "threads_per_worker": 1}
        with LocalCluster(n_workers=workers, **threads) as dask:
            done = inside.run(*names, options=(*options, "--cluster", dask.scheduler_address))
        return done, found_in(inside)

    return call


@pytest.fixture
def on_worker(monkeypatch):
    """Puts a function before what a worker does with a run; it has the worker and the framework."""
    ordinary = cluster.run

    def put(function):
        async def run(worker, key, topic, planned, *job):
            await function(worker, planned["row"]["framework"])
            return await ordinary(worker, key, topic, planned, *job)

        monkeypatch.setattr(cluster, "run", run)

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
    assert {(one.machine.name, one.attempts, one.beside) for one in (good, raises)} == {("test-machine", 1, 1)}
    assert (inside.column() / good.notebook.executed).is_file()
    assert [(line.where, line.state) for line in lines_of(inside)] == [(HOST, "ok"), (HOST, "failed")]
    batch = journal.find(inside.out, "last")
    assert sorted(path.name for path in batch.iterdir()) == ["lock", "order.json", "status.json"]


def test_what_a_worker_lacks_is_one_line_in_the_record(run):
    done, found = run(1, "good", options=("--data-dir", "/nonexistent"))
    assert (done.returncode, ends(found)) == (1, {"good": ("failed", 1)})
    assert "/nonexistent" in one_line(found["good"].error)


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
    assert ends(found) == {"good": ("ok", 1), "raises": ("failed", 2), "diverges": ("crashed", 2)}
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
    assert ends(found) == {"good": ("ok", 1), "raises": ("failed", 1)}
    assert found["raises"].error == "the worker could not run it: ValueError: what a worker says"


def test_a_cluster_of_unfit_workers_is_one_line(run, inside, monkeypatch):
    def refuse(*_):
        raise Unfit("its checkout has another notebooks/ than this one")

    monkeypatch.setattr(cluster, "_check_same", refuse)
    done, found = run(2, "good")
    assert done.returncode == 2 and not found and not inside.out.exists()
    said = one_line(done.stderr)
    assert "no worker of the cluster can be used: worker tcp://" in said
    assert said.endswith("its checkout has another notebooks/ than this one (and 1 more such)")


def test_a_checkout_that_differs_is_refused(monkeypatch):
    same = cluster.contents()
    cluster._check_same(same)
    assert [*same] == ["notebooks", "common", "environments", "rosetta"]
    for part in same:
        message = f"its checkout has another {part}/ than this one: bring both to one commit and start the worker anew"
        with pytest.raises(Unfit, match=message):
            cluster._check_same(same | {part: "another"})
    monkeypatch.setattr(cluster, "_loaded", "before it was edited")
    with pytest.raises(Unfit, match="another rosetta/"):
        cluster._check_same(same)


@pytest.mark.parametrize(
    "where, message",
    [
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9 (Connection refused); docs"),
        ("nonsense://1", "--cluster takes tcp://HOST:PORT or a scheduler's file (.json), not nonsense://1"),
        ("nowhere.json", "--cluster: nowhere.json is no file that dask scheduler --scheduler-file has written"),
        ("list.json", "--cluster: list.json is no file that dask scheduler --scheduler-file has written"),
    ],
)
def test_no_scheduler_is_one_line_soon(where, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text("[]")
    begun = time.monotonic()
    with pytest.raises(RosettaError) as caught:
        cluster.connect(where)
    assert time.monotonic() - begun < 10
    assert message in one_line(str(caught.value))


def test_dask_not_installed_or_another_server_is_one_line(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as anybody:
        address = f"tcp://127.0.0.1:{anybody.getsockname()[1]}"
        with pytest.raises(RosettaError, match="no Dask scheduler answers .* [(]no answer[)]"):
            cluster.connect(address)
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(RosettaError, match=f"uv run --extra cluster run_all.py run --cluster {address}"):
            cluster.connect(address)


def test_workers_on_the_same_processors_share_them(monkeypatch):
    monkeypatch.setattr("rosetta.run.machine.processors", lambda: [0, 1, 2, 3, 4])
    monkeypatch.setattr("rosetta.run.machine.devices", list)
    assert [devices.first(part, 2).processors for part in range(2)] == [(0, 1), (2, 3)]
    assert devices.first().processors is None and devices.first(6, 7).processors is None


def test_dask_leaves_no_thread_limit_to_the_runs(monkeypatch):
    """Its nanny gives the worker a single thread for OpenMP and BLAS; what the user has set stays."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    with cluster._surroundings("/data"):
        assert "OMP_NUM_THREADS" not in os.environ
        assert os.environ["MKL_NUM_THREADS"] == "3" and os.environ["ROSETTA_DATA"] == "/data"
    assert os.environ["OMP_NUM_THREADS"] == "1" and os.environ.get("ROSETTA_DATA") != "/data"


# ---- Real processes


def gone(checkout: StandIn, seconds: float = 20) -> bool:
    """Whether no process of a run is left within that time."""
    deadline = time.monotonic() + seconds
    while processes_below(checkout) and time.monotonic() < deadline:
        time.sleep(0.3)
    return not processes_below(checkout)


@pytest.mark.long
def test_columns_for_each_machine_resume_and_an_end_of_the_runner(standin, tmp_path):
    """Two workers, the second with a nanny, as Dask has it."""
    with DaskCluster(tmp_path / "dask") as dask:
        dask.worker(standin.root, ROSETTA_MACHINE="box one")
        dask.worker(standin.root, nanny=True, ROSETTA_MACHINE="box two")
        options = ("--synthetic", "--epochs", "2", "--cluster", str(dask.wait().file))
        done = standin.run("good", "raises", options=options)
        assert done.returncode == 1 and "2 runs, 2 at a time" in done.stdout, done.stdout + done.stderr
        found = found_in(standin)
        assert {record.machine.name for record in found.values()} == {"box-one", "box-two"}
        good = found["good"]
        column = standin.out / good.machine.name / TASK / "smoke,epochs=2-synthetic"
        assert "injected-parameters" in (column / good.notebook.executed).read_text()
        assert "epoch 2/2" in (column / good.notebook.log).read_text()
        assert [(line.where, line.part) for line in lines_of(standin)] == [(HOST, "epoch 2/2"), (HOST, "")]
        assert not list(standin.out.rglob("rosetta-*")) and gone(standin)

        again = standin.call("resume", "--out", str(standin.out), own_python=False)
        assert "1 of 2 runs are finished" in again.stdout and "good on" not in again.stdout
        assert found_in(standin)["good"] == good

        for how in (signal.SIGINT, signal.SIGKILL):
            runner = standin.start("good[slow]", "--cluster", dask.address)
            time.sleep(1)
            assert processes_below(standin)
            runner.send_signal(how)
            _, errors = runner.communicate(timeout=30)
            assert runner.returncode == (-9 if how == signal.SIGKILL else 130)
            assert how == signal.SIGKILL or "interrupted" in one_line(errors)
            assert gone(standin) and not list(standin.out.rglob("good-slow*.json"))


@pytest.mark.long
def test_no_worker_left_is_told_and_a_new_one_goes_on(standin, tmp_path):
    standin.catalog(standin.entry("good") + "[frameworks.good.variants.slow]\nparameters = { SECONDS = 8 }\n")
    with DaskCluster(tmp_path / "dask") as dask:
        only = dask.worker(standin.root)
        runner = standin.start("good[slow]", "--cluster", str(dask.wait().file))
        only.kill()
        only.wait()
        assert "the run starts again on another" in until(runner, "no worker is left for 1 runs: waiting for one")
        assert gone(standin), "the kernel dies with its worker"
        dask.worker(standin.root)
        until(runner, "good[slow]: starting")
        dask.scheduler.kill()
        _, errors = runner.communicate(timeout=30)
        assert runner.returncode == 2
        assert "is gone; finished runs are kept, and run_all.py resume goes on once it is back" in one_line(errors)
        assert gone(standin)


@pytest.mark.long
def test_one_run_a_worker_at_a_time_whatever_its_threads(standin, tmp_path):
    """Also when two batches use it: the other one is a copy of the checkout."""
    code = f"{MARK}\nSECONDS = 2\n{TRAIN.strip()}\n{MARK}"
    standin.notebook("good", [*cells("good")[:3], ("train", code), cells("good")[4]])
    (tmp_path / "copy").mkdir()
    copy = StandIn(tmp_path / "copy" / "checkout")
    shutil.copytree(standin.root / "notebooks", copy.root / "notebooks", dirs_exist_ok=True)
    for checkout in (standin, copy):
        checkout.catalog(checkout.entry("good") + "[frameworks.good.variants.other]\nparameters = { SECONDS = 2 }\n")
    with DaskCluster(tmp_path / "dask") as dask:
        dask.worker(standin.root, "--nthreads", "2")
        where = ("--cluster", str(dask.wait().file))
        for runner in (standin.start("good[*]", *where), copy.start("good", *where)):
            out, errors = runner.communicate(timeout=120)
            assert runner.returncode == 0, out + errors
    marks = [float(mark) for mark in (standin.root / "marks").read_text().split()]
    assert len(marks) == 6 and marks == sorted(marks)
    assert all(end - begin > 2 for begin, end in zip(marks[::2], marks[1::2])), "begun and ended in turn"


@pytest.mark.long
def test_gpu_workers_alone_take_the_runs_and_unfit_ones_are_told(standin, tmp_path):
    """The GPU is a fake one, which the worker preloads."""
    fake = ("--resources", "GPU=1", "--preload", "tests.fake_gpu_preload")
    both = f"{standin.root}{os.pathsep}{ROOT}"
    with DaskCluster(tmp_path / "dask") as dask:
        dask.worker(both, *fake, FAKE_GPU="Tesla V0")
        dask.worker(both, *fake, FAKE_GPU="Tesla V0")
        dask.worker(standin.root)
        dask.worker(standin.root, "--resources", "GPU=1")
        dask.worker(None, "--resources", "GPU=1")
        done = standin.run("good", "diverges", options=("--synthetic", "--cluster", str(dask.wait().file)))
        assert done.returncode == 1 and "1 of 2 runs ok" in done.stdout, done.stdout + done.stderr
        found = found_in(standin).values()
        assert {record.machine.gpus[0].name for record in found} == {"Tesla V0"} and len(found) == 2
        for said in (
            "sees the same GPU as tcp://127.0.0.1:",
            "has the resource GPU but sees no GPU: mend its driver or start it without --resources",
            "it cannot import rosetta: start it with uv run --extra cluster and with PYTHONPATH set to a checkout of the same commit",
        ):
            assert done.stdout.count(said) == 1, done.stdout
