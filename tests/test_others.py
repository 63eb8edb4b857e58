"""Other programs: what they use of the processors, and what does not count."""

import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from rosetta import records
from rosetta.compare import compare
from rosetta.kinds import KINDS, TrainMetrics
from rosetta.records import Others
from rosetta.run import machine, telemetry
from rosetta.run.telemetry import OtherPrograms
from tests.test_report import make

US, CHILD, TWO = os.getpid(), 90001, [0, 1]
BUSY = "import os\nif os.fork(): os._exit(0)\nprint(os.getpid(), flush=True)\nwhile True: pass"


@pytest.fixture
def table(monkeypatch):
    """A machine of two processors: ``tick`` lets seconds pass, in which programs use so much."""
    processes, state = {}, SimpleNamespace(now=0.0, busy_s=0.0)

    def tick(seconds, system_s=None, **used):
        state.now += seconds
        state.busy_s += sum(used.values()) if system_s is None else system_s
        for name, used_s in used.items():
            processes[name]["cpu_times"][0] += used_s

    def add(name, pid, parent):
        start = {"pid": pid, "ppid": parent, "name": name, "create_time": float(pid)}
        processes[name] = start | {"cpu_times": [0.0, 0.0, 0.0, 0.0]}

    for one in (
        ("us", US, 1),
        ("kernel", CHILD, US),
        ("other", 90002, 1),
        ("kswapd", 90003, 2),
        ("editor", 90004, 1),
        ("elsewhere", 90005, 1),
    ):
        add(*one)
    monkeypatch.setattr(psutil, "process_iter", lambda _: [SimpleNamespace(info=info) for info in processes.values()])
    monkeypatch.setattr(psutil, "cpu_times", lambda: SimpleNamespace(user=state.busy_s, system=0.0, nice=0.0))
    monkeypatch.setattr(telemetry.time, "monotonic", lambda: state.now)
    monkeypatch.setattr(machine, "processors", lambda: TWO)
    affinity = {90002: [1, 2], 90005: [2, 3]}
    children = [SimpleNamespace(pid=CHILD)]

    def process(pid=US):
        return SimpleNamespace(
            pid=pid, cpu_affinity=lambda: affinity.get(pid, TWO), children=lambda recursive: children
        )

    monkeypatch.setattr(psutil, "Process", process)
    return SimpleNamespace(tick=tick, processes=processes)


@pytest.mark.parametrize(
    "used, share, names",
    [
        ({"other": 10}, 0.5, ["other"]),
        ({"editor": 2, "other": 10, "kernel": 8}, 0.6, ["other", "editor"]),
        ({"us": 5, "kernel": 15}, 0.0, []),
        ({"kernel": 10, "kswapd": 10}, 0.0, []),
        ({"other": 10, "system_s": 3}, 0.15, ["other"]),  # the rest was a child's, and counted before
        ({"kernel": 10, "system_s": 20}, 0.0, []),  # of what cannot be seen
        ({"kernel": 10, "elsewhere": 10}, 0.0, []),  # on processors that are not the run's
    ],
)
def test_share_of_the_processors(table, used, share, names):
    """From the first look on, whatever a process has used before."""
    table.processes["other"]["cpu_times"][0] = 1000.0
    programs = OtherPrograms()
    programs.sample()
    assert programs.used() == Others(processors=None, programs=[])
    table.tick(10, **used)
    programs.sample()
    assert programs.used() == Others(processors=share, programs=names)


def test_short_spike_is_none_over_a_long_run_and_one_in_the_part_that_it_meets(table):
    programs = OtherPrograms()
    programs.sample()
    for second in range(60):
        table.tick(1, other=1 if second in (30, 31) else 0)
        programs.sample()
    assert programs.used().processors < 0.1 < programs.used(30.5, 31.5).processors
    assert programs.used(40, 50).processors == 0


@pytest.fixture
def beside(monkeypatch):
    """A real program on this machine, which is taken to have two processors. Its parent is gone: nothing that we have started."""
    monkeypatch.setattr(machine, "processors", lambda: TWO)
    monkeypatch.setattr("rosetta.records.MOST", 0.1)
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as started:
        pid = int(started.stdout.readline())
        yield
        os.kill(pid, signal.SIGKILL)


def run_of(train_s=10.0, accuracy=0.5, **used) -> records.Record:
    metrics = TrainMetrics(train_s=train_s, accuracy=accuracy, wall_s=20.0)
    return make(metrics=metrics, others=Others(**used))


def test_time_beside_other_programs_is_marked_and_no_figure(monkeypatch):
    monkeypatch.setattr("rosetta.records.MOST", 0.1)
    accuracy, train = KINDS["train"].main
    quiet, busy = run_of(processors=0.1), run_of(80.0, processors=0.48, programs=["python3", "cc1plus"])
    assert train.sample([quiet, busy]).values == (10.0,) and accuracy.sample([quiet, busy]).values == (0.5, 0.5)
    assert train.cell([busy]) == "80.0 s (busy)" and train.sample([busy]) is None
    assert busy.disturbed == "other programs used 48% of the processors (python3, cc1plus)"
    assert run_of(processors=0.0, gpu=0.3).disturbed == "other programs used 30% of the GPU's time"
    assert run_of().disturbed is None and make().disturbed is None


def test_compare_takes_no_time_beside_other_programs(monkeypatch):
    monkeypatch.setattr("rosetta.records.MOST", 0.1)
    (change,) = compare([run_of()], [run_of(80.0, processors=0.5, programs=["cc1plus"])]).changes
    assert (change.outcome, change.why) == ("not comparable", "other programs used 50% of the processors (cc1plus)")


def test_run_beside_another_program_says_so_and_resume_takes_it_again(inside, beside, monkeypatch):
    """The screen, the record, the table."""
    done = inside.call("run", "good", "--preset", "quick", "--synthetic", "--out", str(inside.out))
    assert re.search(r"this machine is busy: other programs used \d+% of the processors \(.*python", done.stdout)
    assert re.search(r"\] good: ok .*; its times are no figures: other programs used", done.stdout)
    assert inside.record("good", preset="quick-synthetic")["others"]["processors"] > 0.1
    assert "(busy)" in (inside.out / "results.md").read_text()
    again = inside.call("resume", "--out", str(inside.out), own_python=False)
    assert "0 of 1 runs are finished" in again.stdout
