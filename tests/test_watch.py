"""The status of a batch on disk, and the live table of one that another process runs."""

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from rosetta import files, journal, lock
from rosetta.errors import RosettaError
from rosetta.journal import LOCK, Journal, Line, Order, Status
from rosetta.run.execute import Progress
from rosetta.terminal import Console

NOW = datetime.now(UTC)


def begun(out: Path, *lines: Line) -> Journal:
    """A batch whose runner is this process."""
    return Journal(journal.new_folder(out, Order(rows=[])), list(lines), 1, Console())


def leave(out: Path, name: str, ended: datetime | None) -> str:
    """A batch on disk, as a runner that is gone leaves it: one run has ended, one has not begun."""
    done = Line(row="good", estimate_s=3, state="ok", started=NOW, ended=NOW, result="50.00 %")
    lines = [done, Line(row="good[slow]", estimate_s=60)]
    files.write(out / ".batches" / name / "order.json", Order(rows=[]))
    status = Status(id=name, host="x", pid=1, started=NOW, ended=ended, lines=lines)
    files.write(out / ".batches" / name / "status.json", status)
    return name


def finish(kept: Journal) -> None:
    kept.status.lines[1].state, kept.status.lines[1].ended = "ok", NOW
    kept.close()


def interrupt(kept: Journal) -> None:
    raise KeyboardInterrupt


def lose(kept: Journal) -> None:
    kept._closed.set()
    kept._alive.release()  # as the system does when a process ends


@pytest.mark.parametrize(
    "happens, code, said",
    [
        (finish, 0, "2 of 2 done"),
        (interrupt, 0, "1 of 2 done"),
        (Journal.close, 1, "was interrupted, 1 runs are missing; go on with: run_all.py resume {}"),
        (lose, 1, "has lost its runner, 1 runs are missing; go on with: run_all.py resume {}"),
    ],
)
def test_follows_a_batch_in_a_terminal(tmp_path, monkeypatch, capsys, happens, code, said):
    done = Line(row="good", estimate_s=3, state="ok", ended=NOW, result="50.00 %")
    kept = begun(tmp_path, done, Line(row="good[slow]", estimate_s=60))
    monkeypatch.setattr(journal, "Console", partial(Console, force_terminal=True, width=300))
    monkeypatch.setattr("rosetta.journal.time.sleep", lambda seconds: happens(kept))
    assert journal.watch("last", tmp_path) == code
    seen = capsys.readouterr().out
    first, last = "1 of 2 done, about 1:00 min left", said.format(kept.folder.name)
    assert "good[slow]" in seen and "50.00 %" in seen and -1 < seen.find(first) <= seen.rfind(last)


@pytest.mark.parametrize("ended, reason", [(None, "has lost its runner"), (NOW, "was interrupted")])
def test_without_a_terminal_the_table_is_printed_once(tmp_path, capsys, ended, reason):
    leave(tmp_path, "20261121-100000", None)
    name = leave(tmp_path, "20261122-100000", ended)
    assert journal.watch("last", tmp_path) == 1
    said = capsys.readouterr().out
    assert said.count(f"batch {name}: 1 of 2 done") == 1 and "50.00 %" in said and "waiting" in said
    assert f"batch {name} {reason}, 1 runs are missing; go on with: run_all.py resume {name} --out {tmp_path}" in said
    assert journal.watch("20261121-100000", tmp_path) == 1
    assert "batch 20261121-100000:" in capsys.readouterr().out


def test_a_batch_that_cannot_be_shown(tmp_path):
    with pytest.raises(RosettaError, match="^there is no batch below .*: start one with run_all.py run$"):
        journal.watch("last", tmp_path)
    name = leave(tmp_path, "20261122-100000", NOW)
    with pytest.raises(RosettaError, match=f"^there is no batch 20200101-000000; the latest are: {name}$"):
        journal.watch("20200101-000000", tmp_path)


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
    kept = begun(tmp_path, Line(row="good", estimate_s=3))

    def written() -> Status:
        return files.load(Status, kept.folder / "status.json")

    for epoch in (1, 2):
        kept.progress(0, Progress("running", "epoch", epoch, 2, "loss 1.0"))
    deadline = time.monotonic() + 10
    while written().lines[0].part != "epoch 2/2" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert written().lines[0].part == "epoch 2/2" and written().ended is None
    kept.close()
    assert written().ended


def test_an_installation_takes_nothing_of_the_time_left(tmp_path):
    kept = begun(tmp_path, Line(row="good", estimate_s=60, state="preparing", started=NOW - timedelta(minutes=9)))
    assert kept.status.remaining_s == 60
    kept.progress(0, Progress("preparing", note="installing"))
    assert kept.status.remaining_s == 60
    kept.progress(0, Progress("starting"))
    kept.status.lines[0].ready -= timedelta(seconds=20)
    assert 39 < kept.status.remaining_s <= 40
    kept.close()


def test_the_time_left_follows_the_machine():
    """Runs that took twice their estimate say what the others will take; a run that failed says nothing."""
    ended = Line(row="good", estimate_s=30, state="ok", ready=NOW - timedelta(minutes=1), ended=NOW)
    failed = Line(row="raises", estimate_s=30, state="failed", ready=NOW - timedelta(seconds=1), ended=NOW)
    resumed = Line(row="other", estimate_s=30, state="ok", ended=NOW)
    waiting = Line(row="late", estimate_s=50)
    for lines, left in (([waiting], 50), ([failed, resumed, waiting], 50), ([ended, failed, resumed, waiting], 100)):
        assert Status(id="x", host="here", pid=1, started=NOW, lines=lines).remaining_s == left
