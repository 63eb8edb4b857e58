"""The live table of a batch that another process runs."""

import os
import pty
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from rosetta import files, journal, lock
from rosetta.journal import LOCK, Journal, Line, Order, Status
from rosetta.run.execute import Progress
from rosetta.terminal import Console
from tests.standin import one_line

NOW = datetime.now(UTC)


def watch(standin, *batch: str) -> subprocess.CompletedProcess:
    return standin.call("watch", *batch, "--out", str(standin.out), own_python=False)


def leave(standin, name: str, **more) -> str:
    """A batch on disk as a runner leaves it: one run has ended, one has not begun."""
    lines = [
        Line(row="good", estimate_s=3, state="ok", started=NOW, ended=NOW, result="50.00 %"),
        Line(row="good[slow]", estimate_s=60),
    ]
    status = {"id": name, "host": os.uname().nodename, "pid": os.getpid(), "started": NOW, "lines": lines} | more
    folder = standin.out / ".batches" / name
    folder.mkdir(parents=True)
    (folder / "order.json").write_text("{}")
    (folder / "status.json").write_text(Status(**status).model_dump_json(by_alias=True))
    return name


class Terminal:
    """``watch`` in a terminal of its own."""

    def __init__(self, standin):
        self.master, other = pty.openpty()
        command = standin.command("watch", "--out", str(standin.out), own_python=False)
        env = standin.variables(TERM="xterm", LINES="40")
        self.process = subprocess.Popen(command, cwd=standin.root, env=env, stdin=other, stdout=other, stderr=other)
        os.close(other)
        self.seen = ""

    def until(self, text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in self.seen and time.monotonic() < deadline:
            self.seen += self._read() or ""
        assert text in self.seen

    def end(self) -> int:
        while (more := self._read()) is not None:
            self.seen += more
        os.close(self.master)
        return self.process.wait(30)

    def _read(self) -> str | None:
        try:
            return os.read(self.master, 65536).decode(errors="replace") or None
        except OSError:  # the other side has closed it
            return None


def test_follows_a_batch_to_its_end(standin):
    standin.catalog(standin.entry("good") + "[frameworks.good.variants.second]\nparameters = { SECONDS = 3 }\n")
    runner = standin.start("good[*]")
    terminal = Terminal(standin)
    terminal.until("0 of 2 done")
    terminal.until("1 of 2 done")
    assert "left" in terminal.seen and "good[second]" in terminal.seen
    assert terminal.end() == 0
    assert "2 of 2 done" in terminal.seen and "50.00 %" in terminal.seen
    runner.communicate()
    assert runner.returncode == 0


def test_interrupt_ends_it_quietly_and_a_runner_that_is_gone_is_told(standin):
    runner = standin.start("good[slow]")
    terminal = Terminal(standin)
    terminal.until("0 of 1 done")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 0
    assert "Traceback" not in terminal.seen and "Aborted" not in terminal.seen
    assert runner.poll() is None
    terminal = Terminal(standin)
    terminal.until("0 of 1 done")
    runner.kill()
    runner.wait()
    assert terminal.end() == 1
    (batch,) = (folder.name for folder in (standin.out / ".batches").iterdir())
    message = f"batch {batch} has lost its runner, 1 runs are missing; go on with: run_all.py resume {batch}"
    assert message in terminal.seen.replace("\r\n", "")


def test_without_a_terminal_the_table_is_printed_once(inside):
    leave(inside, "20261121-100000", ended=NOW)
    name = leave(inside, "20261122-100000", ended=NOW)
    done = watch(inside)
    assert done.stdout.count(f"batch {name}: 1 of 2 done") == 1
    assert "50.00 %" in done.stdout and "waiting" in done.stdout
    assert watch(inside, name).stdout == done.stdout
    assert "batch 20261121-100000:" in watch(inside, "20261121-100000").stdout


@pytest.mark.parametrize("ended, reason", [(None, "has lost its runner"), (NOW, "was interrupted")])
def test_batch_that_lacks_runs_without_a_terminal(inside, ended, reason):
    name = leave(inside, "20261122-100000", ended=ended)
    done = watch(inside)
    assert done.returncode == 1
    going_on = f"go on with: run_all.py resume {name} --out {inside.out}"
    assert f"batch {name} {reason}, 1 runs are missing; {going_on}" in done.stdout
    leave(inside, "20261123-100000", ended=NOW, lines=[Line(row="good", estimate_s=3, state="ok", ended=NOW)])
    done = watch(inside)
    assert done.returncode == 0 and "1 of 1 done" in done.stdout and "go on with" not in done.stdout


def test_bad_input_is_one_line(inside):
    done = watch(inside)
    assert done.returncode == 2 and "there is no batch below out/" in one_line(done.stderr)
    name = leave(inside, "20261122-100000", ended=NOW)
    said = one_line(watch(inside, "20200101-000000").stderr)
    assert said == f"run_all.py: there is no batch 20200101-000000; the latest are: {name}"
    (inside.out / ".batches" / name / "status.json").write_text("{")
    done = watch(inside)
    assert done.returncode == 2 and "status.json is not valid" in one_line(done.stderr)


def test_runner_lives_as_long_as_it_holds_the_batch(tmp_path, monkeypatch):
    first, folder = (journal.new_folder(tmp_path, Order(rows=[])) for _ in range(2))
    assert first.name < folder.name and journal.find(tmp_path, "last") == folder
    assert not lock.is_held(folder / LOCK), "a batch that nobody has begun"
    kept = Journal(folder, [], 1, Console())
    assert lock.is_held(folder / LOCK)
    kept.close()
    assert not lock.is_held(folder / LOCK)
    monkeypatch.setattr(lock, "take", Mock(side_effect=PermissionError))
    assert lock.is_held(folder / LOCK), "it may be"


def test_what_came_too_soon_to_be_written_is_written_later(tmp_path):
    folder = journal.new_folder(tmp_path, Order(rows=["good"]))
    kept = Journal(folder, [Line(row="good", estimate_s=3)], 1, Console())

    def part() -> str:
        return files.load(Status, folder / "status.json").lines[0].part

    for epoch in (1, 2):
        kept.progress(0, Progress("running", "epoch", epoch, 2, "loss 1.0"))
    deadline = time.monotonic() + 10
    while part() != "epoch 2/2" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert part() == "epoch 2/2" and files.load(Status, folder / "status.json").ended is None
    kept.close()
    assert files.load(Status, folder / "status.json").ended


def test_an_installation_takes_nothing_of_the_time_left(tmp_path):
    line = Line(row="good", estimate_s=60, state="preparing", started=NOW - timedelta(minutes=9))
    status = Status(id="x", host="x", pid=1, started=NOW, lines=[line])
    assert status.remaining_s == 60
    kept = Journal(journal.new_folder(tmp_path, Order(rows=["good"])), [line], 1, Console())
    kept.progress(0, Progress("preparing", note="installing"))
    assert status.remaining_s == 60
    kept.progress(0, Progress("starting"))
    line.ready -= timedelta(seconds=20)
    assert 39 < status.remaining_s <= 40
    kept.close()
