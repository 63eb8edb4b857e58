"""Faults that a batch must survive, injected for real: what the user sees, and what is kept."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from uv import find_uv_bin

from tests.fault_table import fault, seen, titles
from tests.standin import ROOT, TASK, StandIn
from tests.test_cluster import gone
from tests.test_run import processes_below

pytestmark = pytest.mark.timeout(300)

PARAMETERS = ("parameters", "EPOCHS, N_TRAIN, N_TEST = 1, 640, 100")
RECORD = "a record (`{}`), the executed notebook and the log"
# Faults of a notebook's cell: row of the stand-in -> title, how it is injected, the status that it ends with
CELLS = {
    "raises": ("a cell raises an exception", "a notebook whose training raises", "failed"),
    "segfault": ("the kernel dies of a segmentation fault", "a cell reads address 0", "crashed"),
    "exits": ("the kernel exits", "a cell calls `os._exit(3)`", "crashed"),
    "eats": ("the kernel is killed for its memory", "the kernel sends itself SIGKILL", "crashed"),
}
# And of what it hands over
HANDED_OVER = {
    "diverges": ("the loss is no number", "a notebook whose loss is NaN", "diverged"),
    "miscounts": ("it is not the network", "a notebook that counts other parameters", "failed"),
    "lists": ("the notebook hands over a list", "a notebook whose record is `[1, 2]`", "failed"),
    "silent": ("the notebook hands over no record", "a notebook whose last cell does nothing", "failed"),
}


def the_line(text: str, part: str) -> str:
    """The one line of an output that holds this."""
    (line,) = {line.strip() for line in text.splitlines() if part in line}
    return line


def kept_of(standin: StandIn, row: str, status: str) -> str:
    """Checks what a run that failed has left: record, partial notebook and log, no process; returns it in words."""
    record = standin.record(f"{row}.failed")
    assert record["status"] == status
    files = [record["notebook"]["executed"], record["notebook"]["log"]]
    assert files == [f"{row}.failed.ipynb", f"{row}.failed.log"]
    assert all((standin.column() / file).is_file() for file in files)
    assert not processes_below(standin)
    return RECORD.format(status)


@pytest.mark.long
@fault("a run hangs", "a cell sleeps, beside a process of its own session; `--timeout 10`")
def test_hangs(standin, tmp_path):
    done = standin.run("hangs", options=("--synthetic", "--timeout", "10"))
    assert done.returncode == 1
    return the_line(done.stdout, "hangs: timeout: "), kept_of(standin, "hangs", "timeout")


def stand_in_python(tmp_path: Path, kernel: str) -> str:
    """An interpreter that is one until it is asked for a kernel."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\ncase "$*" in *ipykernel_launcher*) {kernel};; esac\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return f"test={script}"


@pytest.mark.long
@fault("a kernel never starts", "an interpreter that sleeps when asked for a kernel; the limit of 120 s set to 5")
def test_never_starts(standin, tmp_path):
    child = standin.root / "rosetta" / "run" / "processes.py"
    child.write_text(child.read_text().replace("start_timeout_s: int = 120", "start_timeout_s: int = 5"))
    python = stand_in_python(tmp_path, "exec sleep 987")
    done = standin.run("good", options=("--synthetic", "--python", python))
    assert done.returncode == 1
    return the_line(done.stdout, "good: failed: "), kept_of(standin, "good", "failed")


@pytest.mark.long
@fault(
    "a kernel ends while it starts",
    "an interpreter that exits when asked for a kernel, as under a low limit of open files",
)
def test_ends_at_start(standin, tmp_path):
    python = stand_in_python(tmp_path, "echo 'OSError: [Errno 24] Too many open files' >&2; exit 1")
    done = standin.run("good", options=("--synthetic", "--python", python))
    assert done.returncode == 1
    return the_line(done.stdout, "good: failed: "), kept_of(standin, "good", "failed")


@pytest.mark.long
@fault("the run's own process is killed", "SIGKILL to the process between runner and kernel")
def test_child_killed(standin):
    runner = standin.start("good[slow]")
    while not list(standin.out.glob(".batches/*/rosetta-*/executed.ipynb")):
        time.sleep(0.1)
    (child,) = psutil.Process(runner.pid).children()
    child.kill()
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 1
    return the_line(out, "good[slow]: crashed: "), kept_of(standin, "good-slow", "crashed")


@pytest.mark.long
@fault("the folder of a run is removed", "`rm -r` of the run's folder below `.batches` while a cell computes")
def test_folder_removed(standin):
    runner = standin.start("good[slow]")
    while not (executed := list(standin.out.glob(".batches/*/rosetta-*/executed.ipynb"))):
        time.sleep(0.1)
    shutil.rmtree(executed[0].parent)
    out, _ = runner.communicate(timeout=120)
    assert runner.returncode == 1
    record = standin.record("good-slow.failed")
    assert record["status"] in ("crashed", "failed") and not processes_below(standin)
    return the_line(out, "good[slow]: crashed: "), "a record; other runs go on"


@pytest.mark.long
@fault("the disk is full", "results on a file system of 600 KiB; the first notebook prints 1 MB")
def test_disk_full(standin, tmp_path, missing):
    if not _can_mount():
        missing("a small file system cannot be mounted here (unshare -rm, tmpfs)")
    standin.notebook("raises", [PARAMETERS, ("train", "print('x' * 1_000_000)")])
    standin.catalog(standin.entry("raises") + standin.entry("good"))
    copy = tmp_path / "copy"
    command = standin.command("run", "raises", "good", "--synthetic", "--preset", "smoke", "--out", str(standin.out))
    standin.out.mkdir()
    script = 'mount -t tmpfs -o size=600k tmpfs "$0" || exit 99; out=$0; copy=$1; shift; "$@"; code=$?; cp -r "$out" "$copy"; exit $code'
    mounted = ["unshare", "-rm", "bash", "-c", script, str(standin.out), str(copy), *command]
    done = subprocess.run(mounted, cwd=standin.root, env=standin.variables(), capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "good: ok" in done.stdout
    column = copy / "test-machine" / TASK / "smoke-synthetic"
    assert json.loads((column / "good.json").read_text())["status"] == "ok"
    record = json.loads((column / "raises.failed.json").read_text())
    assert record["status"] == "failed" and "No space left" in record["error"]
    assert record["notebook"]["executed"] is None
    said = f"{the_line(done.stdout, 'raises: failed: ')}; {the_line(done.stdout, 'could be kept')}"
    return said, "the record, in the room of the run's own files; other runs go on"


@pytest.mark.long
@fault("a GPU is unplugged", "two GPUs played back, one of which NVML reports as lost during a run")
def test_unplugged(standin, tmp_path):
    lost = tmp_path / "lost"
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        f"from tests.fake_nvml import play_two_gpus; play_two_gpus(lost={str(lost)!r})\n"
    )
    loses = f"import os; open({str(lost)!r}, 'w').write(os.environ['CUDA_VISIBLE_DEVICES']); raise OSError('no device')"
    standin.notebook("raises", [PARAMETERS, ("train", loses)])
    standin.catalog("".join(standin.entry(name) for name in ("raises", "good", "diverges")))
    variables = {"PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1"}
    done = standin.run(options=("--synthetic",), **variables)
    assert done.returncode == 1 and "1 of 3 runs ok" in done.stdout, done.stdout
    said = the_line(done.stdout, "raises: failed: ")
    assert "on GPU 1: starting" in done.stdout
    record = standin.record("raises.failed")
    assert record["machine"]["gpus"][0]["name"] == "Tesla V100"
    again = standin.run("good", options=("--synthetic", "--gpus", lost.read_text()), **variables)
    assert again.returncode == 2
    kept = f"{RECORD.format('failed')}; the other GPU takes the rest"
    refused = again.stderr.strip().replace(
        "no GPU 1: this machine shows 0", "no GPU 0: this machine shows 1"
    )  # either may be
    return f"{said}; afterwards: {refused}", kept


def interrupted(standin: StandIn, runner: subprocess.Popen) -> tuple[str, str]:
    """Checks that a runner of ``good[*]`` has ended as after Ctrl-C; returns what it said, and what is kept."""
    _, errors = runner.communicate(timeout=30)
    assert runner.returncode == 130 and not processes_below(standin)
    assert standin.record("good")["status"] == "ok" and not list(standin.column().glob("good-slow*"))
    assert "50.00 %" in standin.table() and not list(standin.out.glob(".batches/*/rosetta-*"))
    return errors, "all finished runs; the run in flight leaves nothing"


@pytest.mark.long
@fault("Ctrl-C, or SIGTERM of a scheduler", "SIGINT to the runner in the middle of a run")
def test_interrupt(standin):
    runner = standin.start("good[*]", said="good[slow]: starting")
    runner.send_signal(signal.SIGINT)
    return interrupted(standin, runner)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "number, pause_s", [(signal.SIGTERM, 0), (signal.SIGINT, 0.02), (signal.SIGTERM, 0.1), (signal.SIGINT, 0.4)]
)
@fault("several signals close together", "SIGTERM, or SIGINT, three times, 0 to 0.4 s apart")
def test_several_signals_stop_once(standin, number, pause_s):
    runner = standin.start("good[*]", said="good[slow]: starting")
    time.sleep(0.5)
    for _ in range(3):
        runner.send_signal(number)
        time.sleep(pause_s)
    return interrupted(standin, runner)


@fault(
    "SIGTERM twice",
    "SIGTERM to all processes of `uv run run_all.py run`, as `timeout` and Slurm do; uv hands on its own",
)
def test_signal_to_uv_and_all_that_it_has_started(standin):
    uv = (find_uv_bin(), "run", "--no-project")
    runner = standin.start("good[*]", said="good[slow]: starting", before=uv)
    os.killpg(runner.pid, signal.SIGTERM)
    return interrupted(standin, runner)


@pytest.mark.long
@fault("the runner is killed", "SIGKILL to the runner in the middle of a run, then `run_all.py resume`")
def test_runner_killed(standin):
    runner = standin.start("good[*]", said="good[slow]: starting")
    time.sleep(1)
    runner.kill()
    runner.wait()
    assert gone(standin)
    first = standin.record("good")
    standin.catalog(standin.entry("good") + "[frameworks.good.variants.slow]\nparameters = { SECONDS = 0.1 }\n")
    done = standin.call("resume", "--out", str(standin.out), own_python=False)
    assert done.returncode == 0 and standin.record("good") == first and standin.record("good-slow")["status"] == "ok"
    said = the_line(done.stdout, "runs are finished")
    return said, "all finished runs; the kernel ends with the runner"


@pytest.mark.long
@fault(
    "everything is killed at once",
    "SIGKILL to the runner and, before it can notice, to the run's own process; then a new run",
)
def test_everything_killed(standin, tmp_path):
    """The run's process is stopped first, so that it sees nothing of the runner's end."""
    runner = standin.start("good", "hangs", said="hangs: starting")
    while not any(process.name() == "sleep" for process in processes_below(standin)):
        time.sleep(0.1)
    (child,) = psutil.Process(runner.pid).children()
    for process, number in ((child, signal.SIGSTOP), (runner, signal.SIGKILL), (child, signal.SIGKILL)):
        process.send_signal(number)
    runner.communicate()
    assert "sleep" in {process.name() for process in processes_below(standin)}
    first, done = standin.record("good"), standin.run("good")
    assert done.returncode == 0 and not done.stderr and standin.record("good")["started"] > first["started"]
    assert not processes_below(standin) and not list(standin.out.glob(".batches/*/rosetta-*"))
    return "nothing; the new run first ends what was left", "all finished runs; the run in flight leaves nothing"


@pytest.mark.long
@fault("a second runner is started", "`run_all.py run` twice on one checkout")
def test_second_runner(standin, tmp_path):
    first = standin.start("good[slow]")
    second = standin.run("good")
    first.terminate()
    first.communicate()
    assert second.returncode == 2
    assert not list(standin.out.rglob("good.json")) and standin.run("good").returncode == 0, "the lock is free again"
    return second.stderr, "everything of the first"


@pytest.mark.long
@fault("the given interpreter lacks the framework", "a row that imports a module that is not there")
def test_no_framework(standin, tmp_path):
    standin.catalog(standin.entry("good").replace('["numpy"]', '["no_such_framework"]'))
    assert standin.run().returncode == 0 and "no_such_framework" in standin.table()
    done = standin.run("good")
    assert done.returncode == 1 and standin.record("good.failed")["status"] == "skipped"
    kept = "the record (`skipped`); exit code 1 only if the row was asked for by name"
    return the_line(done.stdout, "good: skipped: "), kept


@pytest.mark.long
@fault("no network and no data", "a proxy that refuses, an empty cache")
def test_no_data(standin, tmp_path):
    nowhere = {"XDG_CACHE_HOME": str(tmp_path), "ROSETTA_DATA": "", "https_proxy": "http://127.0.0.1:9"}
    command = "run", "good", "--preset", "smoke", "--out", str(standin.out)
    real = standin.call(*command, "--data", "real", **nowhere)
    assert real.returncode == 2 and not standin.out.exists()
    assert "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz" in real.stderr and "--data-dir" in real.stderr
    done = standin.call(*command, **nowhere)
    assert done.returncode == 0 and "on generated data, marked SYNTHETIC" in done.stdout
    assert standin.record("good")["params"]["SYNTHETIC"]
    return real.stderr, "the rows run on generated data, marked SYNTHETIC; with `--data real` nothing is started"


@pytest.mark.long
@fault("a record that is none", "`{` in the place of a record")
def test_bad_record(standin, tmp_path):
    file = standin.column() / "good.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    done = standin.call("report", "--out", str(standin.out), own_python=False)
    assert done.returncode == 2 and file.read_text() == "{"
    return done.stderr, "the file; nothing is overwritten"


def test_faults_of_a_cell(standin):
    """In a batch with a good notebook after them."""
    rows = [*CELLS, "good"]
    standin.rows({f"{row}[*]": f"cost.start_s = {number}" for number, row in enumerate(rows)})
    check_each(standin, CELLS, standin.run(*rows))
    assert standin.record("good")["status"] == "ok"
    written = [file for file in standin.out.rglob("*") if file.suffix in (".json", ".ipynb", ".md")]
    assert len(written) > 2 * len(rows), "and nothing that is kept names a path of the machine"
    assert not [file for file in written if str(standin.root) in file.read_text()]


def test_faults_of_what_is_handed_over(inside):
    check_each(inside, HANDED_OVER, inside.run(*HANDED_OVER))


def check_each(standin: StandIn, faults: dict[str, tuple[str, str, str]], done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 1, done.stderr
    for row, (title, how, status) in faults.items():
        seen(title, how, the_line(done.stdout, f"{row}: {status}: "), kept_of(standin, row, status))


def test_every_fault_of_the_page_is_told_by_a_test():
    """What a test tells and the page lacks fails that test."""
    sources = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.rglob("*.py"))
    assert len(titles()) > 50 and not [title for title in titles() if f'"{title}"' not in sources]


def _can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    return subprocess.run(mount, capture_output=True).returncode == 0
