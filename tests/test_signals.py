"""What ends a batch from outside: one signal or several close together leave no process and nothing half done."""

import os
import signal
import time

import pytest
from uv import find_uv_bin

from tests.fault_table import fault, seen
from tests.test_faults import until
from tests.test_run import processes_below

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("pause_s", [0, 0.02, 0.1, 0.4])
@pytest.mark.parametrize("first, then", [("SIGTERM", "SIGTERM"), ("SIGINT", "SIGINT")])
def test_several_signals_stop_once(standin, first, then, pause_s):
    runner = until(standin, "good[slow]: starting", "good[*]")
    time.sleep(0.5)
    for name in (first, then, then):
        runner.send_signal(getattr(signal, name))
        time.sleep(pause_s)
    _, errors = runner.communicate(timeout=30)
    assert runner.returncode == 130 and "Traceback" not in errors and "interrupted" in errors
    assert not processes_below(standin) and standin.record("good")["status"] == "ok"
    assert not list(standin.column().glob("good-slow*"))
    seen(
        "several signals close together",
        "SIGTERM, or SIGINT, three times, 0 to 0.4 s apart",
        errors,
        "all finished runs; the run in flight leaves nothing",
    )


@fault(
    "SIGTERM twice",
    "SIGTERM to all processes of `uv run run_all.py run`, as `timeout` and Slurm do; uv hands on its own",
)
def test_signal_to_uv_and_all_that_it_has_started(standin):
    runner = until(standin, "good[slow]: starting", "good[*]", before=(find_uv_bin(), "run", "--no-project"))
    os.killpg(runner.pid, signal.SIGTERM)
    _, errors = runner.communicate(timeout=30)
    assert runner.returncode == 130 and standin.record("good")["status"] == "ok"
    assert not processes_below(standin) and not list(standin.column().glob("good-slow*"))
    return errors, "all finished runs; the run in flight leaves nothing"
