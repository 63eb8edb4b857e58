"""What ends a batch from outside: one signal or several close together leave no process and nothing half done."""

import signal
import time

import pytest

from tests.test_faults import until
from tests.test_run import processes_below

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("pause_s", [0, 0.02, 0.1, 0.4])
@pytest.mark.parametrize("first, then", [("SIGTERM", "SIGTERM"), ("SIGINT", "SIGINT")])
def test_several_signals_stop_once(standin, first, then, pause_s):
    """As ``timeout`` and Slurm send SIGTERM through ``uv run``: twice."""
    runner = until(standin, "good[slow]: starting", "good[*]")
    time.sleep(0.5)
    for name in (first, then, then):
        runner.send_signal(getattr(signal, name))
        time.sleep(pause_s)
    _, errors = runner.communicate(timeout=30)
    assert runner.returncode == 130 and "Traceback" not in errors and "interrupted" in errors
    assert not processes_below(standin) and standin.record("good")["status"] == "ok"
    assert not list(standin.column().glob("good-slow*"))
