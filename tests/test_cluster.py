"""Batches on a real Dask cluster: a scheduler and worker processes on this machine, each with a machine name of its own."""

import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from rosetta import records
from rosetta.batch import journal
from rosetta.run import devices
from tests.dask_cluster import DaskCluster, kill
from tests.standin import ROOT, TASK, TRAIN, StandIn, cells, one_line
from tests.test_run import processes_below

pytestmark = pytest.mark.timeout(300)

pytestmark = pytest.mark.long
KILL_WORKER = "import psutil; psutil.Process().parent().parent().kill(); time.sleep(60)"  # kernel, child, worker
MARK = "open('../../marks', 'a').write(f'{time.time()}\\n')"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A checkout and a cluster with two workers, "box one" and "box two", the second with a nanny, as Dask has it."""
    folder = tmp_path_factory.mktemp("shared")
    checkout = StandIn(folder / "checkout")
    with DaskCluster(folder / "dask") as dask:
        dask.worker(checkout.root, ROSETTA_MACHINE="box one")
        dask.worker(checkout.root, nanny=True, ROSETTA_MACHINE="box two")
        dask.wait()
        yield checkout, dask


def run(checkout: StandIn, where, *names: str, options: tuple[str, ...] = ("--synthetic",), **variables):
    return checkout.run(*names, options=(*options, "--cluster", str(where)), **variables)


def start(checkout: StandIn, where, *names: str) -> subprocess.Popen:
    command = checkout.command("run", *names, "--synthetic", "--preset", "smoke", "--out", str(checkout.out))
    return subprocess.Popen(
        [*command, "--cluster", str(where)],
        cwd=checkout.root,
        env=checkout.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(runner: subprocess.Popen, text: str) -> str:
    """What the runner prints up to and with the line that has the text."""
    said = ""
    for line in runner.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(said + runner.stderr.read())


def all_records(checkout: StandIn) -> dict[str, records.Record]:
    return {record.name: record for _, record in records.read_all(checkout.out)}


def gone(checkout: StandIn, seconds: float = 20) -> bool:
    """Whether no process of a run is left within that time."""
    deadline = time.monotonic() + seconds
    while processes_below(checkout) and time.monotonic() < deadline:
        time.sleep(0.3)
    return not processes_below(checkout)


def test_results_land_in_a_column_for_each_machine_and_resume_goes_on(shared):
    checkout, dask = shared
    done = run(checkout, dask.file, "good", "raises", options=("--synthetic", "--epochs", "2"))
    assert done.returncode == 1 and "2 runs, 2 at a time" in done.stdout, done.stdout + done.stderr
    host = os.uname().nodename
    assert f"good on {host}: starting" in done.stdout
    found = all_records(checkout)
    assert {name: record.status for name, record in found.items()} == {"good": "ok", "raises": "failed"}
    assert {record.machine.name for record in found.values()} == {"box-one", "box-two"}
    assert {(record.attempts, record.beside) for record in found.values()} == {(1, 1)}
    good = found["good"]
    column = checkout.out / good.machine.name / TASK / "smoke,epochs=2-synthetic"
    assert good.notebook.executed == "good.ipynb" and "injected-parameters" in (column / "good.ipynb").read_text()
    assert "epoch 2/2" in (column / good.notebook.log).read_text()
    status = journal.read_status(journal.find(checkout.out, "last"))
    assert [(line.where, line.part) for line in status.lines] == [(host, "epoch 2/2"), (host, "")]
    assert not list(checkout.out.rglob("rosetta-*")) and gone(checkout)

    again = checkout.call("resume", "--out", str(checkout.out), own_python=False)
    assert "1 of 2 runs are finished" in again.stdout and "good on" not in again.stdout
    assert all_records(checkout)["good"] == good


@pytest.mark.parametrize(
    "options, error",
    [
        (("--data-dir", "/nonexistent"), "/nonexistent"),
        (("--synthetic", "--python", "test=/nonexistent/python"), "--python test: there is no /nonexistent/python"),
    ],
)
def test_what_a_worker_lacks_is_one_line_in_the_record(shared, options, error):
    checkout, dask = shared
    done = run(checkout, dask.address, "good", options=options)
    assert done.returncode == 1, done.stderr
    (failed,) = (record for _, record in records.read_all(checkout.out) if not record.changed)
    assert failed.status == "failed" and error in one_line(failed.error)
    subprocess.run(["rm", "-r", str(checkout.out)], check=True)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_end_of_the_runner_ends_the_runs_on_the_workers(shared, how):
    checkout, dask = shared
    runner = start(checkout, dask.file, "good[slow]")
    until(runner, "starting")
    time.sleep(1)
    assert processes_below(checkout)
    runner.send_signal(how)
    _, errors = runner.communicate(timeout=30)
    assert runner.returncode == (-9 if how == signal.SIGKILL else 130)
    assert how == signal.SIGKILL or "interrupted" in one_line(errors)
    assert gone(checkout)
    assert not list(checkout.out.rglob("good-slow*.json"))


def test_a_worker_that_is_lost_costs_its_run_a_second_attempt_and_no_more(standin, tmp_path):
    """``fragile`` takes its worker down once, ``deadly`` each time."""
    fragile = f"if not os.path.exists('../../marks'):\n    {MARK}; {KILL_WORKER}\n" + TRAIN.strip()
    for name, code in (("fragile", fragile), ("deadly", KILL_WORKER)):
        standin.notebook(name, [*cells("good")[:3], ("train", code), cells("good")[4]])
    standin.catalog("".join(standin.entry(name) for name in ("good", "fragile", "deadly")))
    with DaskCluster(tmp_path / "dask") as dask:
        for number in range(4):
            dask.worker(standin.root, ROSETTA_MACHINE=f"box {number}")
        done = run(standin, dask.wait().file)
        assert done.returncode == 1, done.stderr
        found = all_records(standin)
        assert (found["good"].status, found["good"].attempts) == ("ok", 1)
        assert (found["fragile"].status, found["fragile"].attempts) == ("ok", 2)
        assert (found["deadly"].status, found["deadly"].attempts) == ("crashed", 2)
        assert "its worker was lost, and so was that of the second attempt" in one_line(found["deadly"].error)
        assert done.stdout.count("is lost; the run starts again on another") == 2
        assert len(list(records.read_all(standin.out))) == 3
        assert sum(worker.poll() == -signal.SIGKILL for worker in dask.workers) == 3
        assert gone(standin), "the kernel dies with its worker"


def test_no_worker_left_is_told_and_a_new_one_goes_on(standin, tmp_path):
    standin.catalog(standin.entry("good") + "[frameworks.good.variants.slow]\nparameters = { SECONDS = 8 }\n")
    with DaskCluster(tmp_path / "dask") as dask:
        only = dask.worker(standin.root)
        runner = start(standin, dask.wait().file, "good[slow]")
        until(runner, "starting")
        kill(only)
        assert "the run starts again on another" in until(runner, "no worker is left for 1 runs: waiting for one")
        dask.worker(standin.root)
        until(runner, "good[slow]: starting")
        dask.scheduler.send_signal(signal.SIGKILL)
        _, errors = runner.communicate(timeout=30)
        assert runner.returncode == 2
        assert "is gone; finished runs are kept, and run_all.py resume goes on once it is back" in one_line(errors)
        assert gone(standin)


def test_a_checkout_that_changes_in_a_batch_gets_no_more_runs(standin, tmp_path):
    standin.catalog(standin.entry("good") + "[frameworks.good.variants.slow]\nparameters = { SECONDS = 5 }\n")
    with DaskCluster(tmp_path / "dask") as dask:
        dask.worker(standin.root)
        runner = start(standin, dask.wait().file, "good[*]")
        until(runner, "starting")
        with (standin.root / "common" / "record.py").open("a") as file:
            file.write("# edited\n")
        said = until(runner, "no worker is left for 1 runs: waiting for one")
        assert "its checkout has another common/ than this one: bring both to one commit" in said
        runner.send_signal(signal.SIGINT)
        runner.communicate(timeout=30)
        assert runner.returncode == 130 and len(all_records(standin)) == 1


def test_one_run_a_worker_at_a_time_whatever_its_threads(standin, tmp_path):
    """Also when two batches use it: the other one is a copy of the checkout."""
    code = f"{MARK}\nSECONDS = 2\n{TRAIN.strip()}\n{MARK}"
    standin.notebook("good", [*cells("good")[:3], ("train", code), cells("good")[4]])
    (tmp_path / "copy").mkdir()
    copy = StandIn(tmp_path / "copy" / "checkout")
    shutil.copytree(standin.root / "notebooks", copy.root / "notebooks", dirs_exist_ok=True)
    for checkout in (standin, copy):
        checkout.catalog(checkout.entry("good") + "[frameworks.good.variants.other]\n")
    with DaskCluster(tmp_path / "dask") as dask:
        dask.worker(standin.root, "--nthreads", "2")
        dask.wait()
        runners = [start(standin, dask.file, "good[*]"), start(copy, dask.file, "good")]
        for runner in runners:
            out, errors = runner.communicate(timeout=120)
            assert runner.returncode == 0, out + errors
    marks = [float(mark) for mark in (standin.root / "marks").read_text().split()]
    assert len(marks) == 6 and marks == sorted(marks)
    assert all(end - begin > 2 for begin, end in zip(marks[::2], marks[1::2])), "begun and ended in turn"


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
        done = run(standin, dask.wait().file, "good", "diverges")
        assert done.returncode == 1 and "1 of 2 runs ok" in done.stdout, done.stdout + done.stderr
        found = all_records(standin).values()
        assert {record.machine.name for record in found} == {"tesla-v0"} and len(found) == 2
        assert {record.machine.gpus[0].name for record in found} == {"Tesla V0"}
        for said in (
            "sees the same GPU as tcp://127.0.0.1:",
            "has the resource GPU but sees no GPU: mend its driver or start it without --resources",
            "it finds no checkout of this runner",
        ):
            assert done.stdout.count(said) == 1, done.stdout


def test_a_cluster_of_unfit_workers_is_one_line(standin, tmp_path):
    (tmp_path / "other").mkdir()
    other = StandIn(tmp_path / "other" / "checkout")
    notebook = other.root / "notebooks" / TASK / "good.ipynb"
    notebook.write_text(notebook.read_text().replace("2.0 - epoch", "1.0 - epoch"))
    with DaskCluster(tmp_path / "dask") as dask:
        dask.worker(other.root)
        done = run(standin, dask.wait().file, "good")
    assert done.returncode == 2
    assert "no worker of the cluster can be used" in one_line(done.stderr)
    assert "its checkout has another notebooks/ than this one" in done.stderr
    assert not standin.out.exists()


@pytest.mark.parametrize(
    "where, message",
    [
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9 (Connection refused); docs"),
        ("nonsense://1", "--cluster takes tcp://HOST:PORT or a scheduler's file (.json), not nonsense://1"),
        ("nowhere.json", "nowhere.json is not there; dask scheduler --scheduler-file writes one"),
        ("catalog.json", "catalog.json is not valid: Input should be an object"),
    ],
)
def test_no_scheduler_is_one_line_soon(standin, where, message):
    (standin.root / "catalog.json").write_text("[]")
    begun = time.monotonic()
    done = run(standin, where, "good")
    assert time.monotonic() - begun < 10
    assert done.returncode == 2 and message in one_line(done.stderr)


def test_dask_not_installed_or_another_server_is_one_line(standin, tmp_path):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "distributed.py").write_text("raise ModuleNotFoundError(name='distributed')")
    with socket.create_server(("127.0.0.1", 0)) as anybody:
        address = f"tcp://127.0.0.1:{anybody.getsockname()[1]}"
        done = run(standin, address, "good", PYTHONPATH=str(tmp_path / "without"))
        assert done.returncode == 2
        assert f"uv run --extra cluster run_all.py run --cluster {address}" in one_line(done.stderr)
        done = run(standin, address, "good")
        assert done.returncode == 2 and "does not answer as a Dask scheduler" in one_line(done.stderr)


@pytest.mark.parametrize("option", [("--gpus", "all"), ("--threads", "2"), ("--jobs", "2")], ids=" ".join)
def test_options_of_this_machine_make_no_sense(standin, option):
    done = run(standin, "tcp://127.0.0.1:9", "good", options=option)
    assert done.returncode == 2 and "--gpus, --threads and --jobs share out this machine" in one_line(done.stderr)


def test_workers_on_the_same_processors_share_them(monkeypatch):
    monkeypatch.setattr("rosetta.run.machine.processors", lambda: [0, 1, 2, 3, 4])
    monkeypatch.setattr("rosetta.run.machine.devices", list)
    assert [devices.first(part, 2).processors for part in range(2)] == [(0, 1), (2, 3)]
    assert devices.first().processors is None and devices.first(6, 7).processors is None


def test_dask_leaves_no_thread_limit_to_the_runs(monkeypatch):
    """Its nanny gives the worker a single thread for OpenMP and BLAS; what the user has set stays."""
    from rosetta.cluster import worker

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    with worker._surroundings("/data"):
        assert "OMP_NUM_THREADS" not in os.environ
        assert os.environ["MKL_NUM_THREADS"] == "3" and os.environ["ROSETTA_DATA"] == "/data"
    assert os.environ["OMP_NUM_THREADS"] == "1" and os.environ.get("ROSETTA_DATA") != "/data"


def test_workers_in_network_namespaces(standin, tmp_path, missing):
    """Two workers that reach the scheduler by virtual cables only, as boxes do; one cable is pulled in a run."""
    standin.catalog(
        standin.entry("good")
        + "".join(f"[frameworks.good.variants.{name}]\nparameters = {{ SECONDS = 8 }}\n" for name in ("slow", "other"))
    )
    spaces = [f"rosetta-{os.getpid()}-{number}" for number in range(2)]
    try:
        try:
            for number, space in enumerate(spaces):
                lay_cable(space, number)
        except (OSError, subprocess.CalledProcessError) as error:
            missing(f"network namespaces need root and iproute2: {getattr(error, 'stderr', None) or error}")
        soon = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s"}  # the least, until a cut connection is noticed
        with DaskCluster(tmp_path / "dask", host="0.0.0.0", **soon) as dask:
            port = dask.address.rpartition(":")[2]
            for number, space in enumerate(spaces):
                dask.worker(
                    standin.root,
                    "--host",
                    f"10.231.{number}.2",
                    address=f"tcp://10.231.{number}.1:{port}",
                    before=("ip", "netns", "exec", space),
                    ROSETTA_MACHINE=f"box {number}",
                    **soon,
                )
            dask.wait()
            runner = start(standin, f"tcp://127.0.0.1:{port}", "good[slow]", "good[other]")
            until(runner, "starting"), until(runner, "starting")
            ip("link", "set", "eth0", "down", space=spaces[0])
            out, errors = runner.communicate(timeout=120)
            assert runner.returncode == 0, out + errors
            assert "worker tcp://10.231.0.2:" in out and out.count("is lost") == 1
            found = all_records(standin).values()
            assert {record.machine.name for record in found} == {"box-1"}
            assert sorted(record.attempts for record in found) == [1, 2]
            assert gone(standin), "the worker that was cut off has ended its run"
    finally:
        for space in spaces:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)


def lay_cable(space: str, number: int) -> None:
    """A network namespace with the address 10.231.<number>.2, whose other end has .1 here."""
    here = f"ros{os.getpid()}-{number}"[-15:]  # the system's limit
    ip("netns", "add", space)
    ip("link", "add", here, "type", "veth", "peer", "name", "eth0", "netns", space)
    ip("address", "add", f"10.231.{number}.1/24", "dev", here)
    ip("link", "set", here, "up")
    ip("address", "add", f"10.231.{number}.2/24", "dev", "eth0", space=space)
    ip("link", "set", "eth0", "up", space=space)
    ip("link", "set", "lo", "up", space=space)


def ip(*arguments: str, space: str | None = None) -> None:
    within = ("-n", space) if space else ()
    subprocess.run(["ip", *within, *arguments], check=True, capture_output=True, text=True)
