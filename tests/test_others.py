"""Other programs: what they use of the processors, and what does not count."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from rosetta.run import machine, others

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
    monkeypatch.setattr(others.time, "monotonic", lambda: state.now)
    monkeypatch.setattr(machine, "processors", lambda: TWO)
    affinity = {90002: [1, 2], 90005: [2, 3]}
    monkeypatch.setattr(psutil, "Process", lambda pid: SimpleNamespace(cpu_affinity=lambda: affinity.get(pid, TWO)))
    return SimpleNamespace(tick=tick, processes=processes)


@pytest.mark.parametrize(
    "used, share",
    [
        ({"other": 10}, 0.5),
        ({"other": 10, "editor": 2, "kernel": 8}, 0.6),
        ({"us": 5, "kernel": 15}, 0.0),
        ({"kernel": 10, "kswapd": 10}, 0.0),
        ({"other": 10, "system_s": 3}, 0.15),  # the rest was a child's, and counted before
        ({"kernel": 10, "system_s": 20}, 0.0),  # of what cannot be seen
        ({"kernel": 10, "elsewhere": 10}, 0.0),  # on processors that are not the run's
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else str(value),
)
def test_share_of_the_processors(table, used, share):
    programs = others.OtherPrograms()
    programs.sample()
    table.tick(10, **used)
    programs.sample()
    assert programs.share() == pytest.approx(share)


def test_busiest_programs_are_named(table):
    programs = others.OtherPrograms()
    programs.sample()
    table.tick(10, editor=1, other=5, kernel=4)
    programs.sample()
    assert programs.busiest() == ["other", "editor"]


def test_short_spike_is_none_over_a_long_run_and_one_in_the_part_that_it_meets(table):
    programs = others.OtherPrograms()
    programs.sample()
    for second in range(60):
        table.tick(1, other=1 if second in (30, 31) else 0)
        programs.sample()
    assert programs.share() < others.MOST < programs.share(30.5, 31.5)
    assert programs.share(40, 50) == 0


def test_process_that_was_there_before_counts_from_now_on(table):
    table.processes["other"]["cpu_times"][0] = 1000.0
    programs = others.OtherPrograms()
    programs.sample()
    assert programs.share() is None
    table.tick(10, other=1)
    programs.sample()
    assert programs.share() == pytest.approx(0.05)


def test_program_beside_this_one_is_told_in_a_line(monkeypatch):
    """A real one, whose parent is gone: nothing that we have started."""
    monkeypatch.setattr(machine, "processors", lambda: TWO)
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as started:
        pid = int(started.stdout.readline())
        try:
            said = others.look(seconds=2.0)
        finally:
            os.kill(pid, signal.SIGKILL)
    assert said and "python" in said and "of the processors" in said
