"""The tables of docs/performance.md, and those of a sweep."""

from datetime import UTC, datetime

import pytest

from rosetta import catalog
from rosetta.errors import RosettaError
from rosetta.paths import RESULTS
from rosetta.records import Commit
from rosetta.run import devices
from rosetta.speed import command, floor, kept, page, startup
from rosetta.speed.pairs import Pairs
from rosetta.speed.sweep import Point, Protocol, Sweep
from tests.speed.test_pairs import pair, slot  # noqa: F401

KNOWN = catalog.load()


def point(machine, row="pytorch", threads=1, batch_size=64, step=0.2) -> Point:
    return Point(
        row=row,
        title=row.title(),
        threads=threads,
        batch_size=batch_size,
        seconds={"forward": [0.05, 0.05], "backward": [0.15, 0.17], "step": [step, step]},
        loss={"forward": 2.3, "backward": 2.3, "step": 2.3},
        steps=100,
        synthetic=False,
        measured=datetime(2026, 1, 2, tzinfo=UTC),
        commit=Commit(),
        machine=machine,
    )


def test_committed_page_holds_what_was_measured():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, KNOWN, RESULTS) == text, "run_all.py report fills it anew"
    assert {found["name"] for found in page.BLOCK.finditer(text)} == set(page.TABLES)


def test_tables_are_filled_in(tmp_path, slot):  # noqa: F811
    machine = slot.machine
    kept.write(Pairs(pairs=[pair(slot, "flax"), pair(slot)]), kept.path(tmp_path, "box", "fastest"))
    kept.write(
        Pairs(pairs=[pair(slot, variables={"A": "1", "B": ""}, synthetic=True)]),
        kept.path(tmp_path, "box", "variables"),
    )
    points = [point(machine), point(machine, threads=2, step=0.1), point(machine, batch_size=16)]
    kept.write(Sweep(points=points), kept.path(tmp_path, "box", "sweep"))
    speed = floor.Floor(machine=machine, measured=points[0].measured, size=8, flop_s=[1e12, 2e12])
    kept.write(speed, kept.path(tmp_path, "box", "floor"))
    start = startup.Start(start_s=1, import_s=2, data_s=3, build_s=4, first_step_s=5, second_step_s=0.5)
    rows = [startup.RowStart(row="pytorch", title="PyTorch", starts=[start])]
    kept.write(
        startup.Startup(machine=machine, commands={"list": [0.5]}, rows=rows), kept.path(tmp_path, "box", "startup")
    )
    names = "".join(f"[//]: # ({name})\nold\n[//]: # (end)\n" for name in page.TABLES)
    text = page.filled(names, KNOWN, tmp_path)
    assert "old" not in text and page.filled(text, KNOWN, tmp_path) == text
    assert text.index("| pytorch | 110.0 (100.0 - 120.0) | 100.0 (100.0 - 100.0) | 1.10 (1.00 - 1.20) |") < text.index(
        "| flax |"
    )
    assert "`A=1` without `B`:" in text and "SYNTHETIC" in text
    assert (
        "| Pytorch | 50.0 ± 0.0 | 160.0 ± 14.1 | 200.0 ± 0.0 | 50.0 ± 0.0 | 160.0 ± 14.1 | 100.0 ± 0.0 | 2.00 |" in text
    )
    assert "| Pytorch | 100 | 239 | 12% | 50% | 110% | -60% |" in text and "12 ms" in text
    assert "| PyTorch | 1.00 | 2.00 | 3.00 | 4.00 | 5.00 | 0.50 | 15.00 |" in text and "; one run each." in text
    assert "Not measured yet." in text  # as in 2018


def test_unknown_table_is_told(tmp_path):
    with pytest.raises(RosettaError, match="there is no table nix; known are fastest"):
        page.filled("[//]: # (nix)\n[//]: # (end)", KNOWN, tmp_path)


def test_sweep_has_a_table_and_a_picture(tmp_path):
    machine = devices.timed(gpus="none", threads=1)[0].machine
    found = Sweep(points=[point(machine, batch_size=size) for size in (64, 16)] + [point(machine, "flax", step=0.4)])
    file = kept.path(tmp_path, "box", "sweep")
    json, table, picture = command.write_tables(KNOWN, file, found, plot=True)
    text = table.read_text()
    assert text.index("| pytorch | 1 | 16 |") < text.index("| pytorch | 1 | 64 |") < text.index("| flax | 1 | 64 |")
    assert "| 320 | 2 x 100 |" in text and "![Images a second" in text
    drawn = picture.read_text()
    assert drawn.count("images a second") == 1 and "Flax" in drawn
    assert command.write_tables(KNOWN, file, found, plot=True)[2].read_text() == drawn
    assert json == file


def test_slow_row_is_measured_with_less():
    slow = next(row for row in KNOWN.rows("cifar10_cnn") if row.slow_on_cpu)
    protocol = Protocol([16, 64, 1024], steps=100, repeats=5)
    assert protocol.of(slow, gpu=False) == Protocol([16, 64], steps=10, repeats=5)
    assert protocol.of(slow, gpu=True) == protocol
    assert Protocol([256]).of(slow, gpu=False).batch_sizes == [256]


@pytest.mark.parametrize("text", ["0", "a", "1,,2", "", "-1", "1.5"])
def test_numbers_that_are_none(text):
    with pytest.raises(RosettaError, match="--threads takes whole numbers above 0 such as 1,2, not"):
        command.numbers("--threads", text)


def test_usual_threads(monkeypatch):
    for there, threads in ((1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (16, [1, 2, 4, 8, 16])):
        monkeypatch.setattr("rosetta.run.machine.processors", lambda there=there: list(range(there)))
        assert command.usual_threads() == threads
