"""The tables of what was measured, and the pictures of it."""

from datetime import UTC, datetime

import pytest

from rosetta import catalog, markdown, records
from rosetta.errors import RosettaError
from rosetta.kinds.kind import BATCH
from rosetta.measure import rows, tables
from rosetta.measure.rows import Measurement, Measuring
from rosetta.paths import Checkout
from rosetta.records import Dataset, Point, Record
from rosetta.where import Where
from tests.test_report import HERE, make

KNOWN = catalog.load()
ROWS = [row for row in KNOWN.rows() if KNOWN.kind(row).trains][:2]
SIZE = KNOWN.task(ROWS[0].task).constants()[BATCH]


def measured(what: str, points: list[Point], row=ROWS[0], **more) -> Record:
    about = {"task": row.task, "title": row.title, "started": datetime(2026, 1, 2, tzinfo=UTC), "versions": {}}
    return make(row.framework, row.variant, what, points=points, **about | more)


def pair(what: str) -> list[Point]:
    at = {BATCH: SIZE, "steps": 10}
    losses = Point(at=at | {"program": what}, values=[2.3] * 3, unit="loss")
    own = Point(at=at | {"program": "notebook"}, values=[0.1, 0.12, 0.11])
    return [own, losses, Point(at=at | {"program": what}, values=[0.1] * 3), losses]


def swept(threads: int, step: float, size: int = SIZE) -> list[Point]:
    seconds = {"forward": [0.05, 0.05], "backward": [0.15, 0.17], "step": [step, step]}
    at = {"threads": threads, BATCH: size, "steps": 100}
    times = [Point(at=at | {"phase": phase}, values=values) for phase, values in seconds.items()]
    return [*times, *(Point(at=point.at, values=[2.3], unit="loss") for point in times)]


def made(every: list[Record], results) -> dict[str, str]:
    """The tables, each in one line a paragraph."""
    return {name: make().replace("\n", " ") for name, make in tables.by_name(KNOWN, every, results).items()}


def write_product(results, value: float, machine=HERE):
    point = Point(at={"size": 8}, values=[value, value / 2], unit="FLOP/s")
    return rows.write_machine("floor", machine, [point], results)


def test_pairs_come_in_the_catalogs_order_by_setting(tmp_path):
    first, second = ROWS
    every = [measured("fastest", pair("fastest"), second), measured("fastest", pair("fastest"), first)]
    every.append(measured("settings", pair("settings"), changed={"A": "1", "B": ""}, dataset=Dataset(synthetic=True)))
    shown = made(every, tmp_path)
    line = "| 110.0 (100.0 - 120.0) | 100.0 (100.0 - 100.0) | 1.10 (1.00 - 1.20) |"
    assert shown["fastest"].index(f"| {first.title} {line}") < shown["fastest"].index(f"| {second.title} {line}")
    assert "3 epochs of 10 steps after a first that is not counted; 2026-01-02." in shown["fastest"]
    assert "`A=1` without `B`:" in shown["settings"] and f"| {first.title} SYNTHETIC {line}" in shown["settings"]
    assert "These records name no versions of frameworks." in shown["fastest"]
    every[0].versions = {"python": "3", "numpy": "2", "x": "1.0"}
    assert f"Versions: x 1.0. Not recorded of {first.title}." in made(every, tmp_path)["fastest"]


def test_sweeps(tmp_path):
    write_product(tmp_path, 2e12)
    every = [measured("sweep", swept(1, 0.2) + swept(2, 0.1) + swept(1, 0.2, 2 * SIZE))]
    shown, title = made(every, tmp_path), ROWS[0].title
    phases = "50.0 ± 0.0 | 160.0 ± 14.1"
    assert f"batch {SIZE}, 2 times 100 steps, mean ± standard deviation" in shown["sweep"]
    assert f"| {title} | {phases} | 200.0 ± 0.0 | {phases} | 100.0 ± 0.0 | 2.00 |" in shown["sweep"]
    assert f"| {title} | 1 | {2 * SIZE} | {phases} | 200.0 ± 0.0 | {2 * SIZE / 0.2:.0f} | 2 x 100 |" in shown["points"]
    assert shown["limits"].count("| 50% | 110% | -60% |") == 1


def test_row_without_a_program_is_not_written(tmp_path, monkeypatch):
    first, second = ROWS
    monkeypatch.setattr(Checkout, "programs", tmp_path)
    shown = made([measured("fastest", pair("fastest")), measured("sweep", swept(1, 0.2))], tmp_path)
    for name in ("fastest", "sweep"):
        table, sentence = shown[name].split("No program is written for: ")
        assert first.title in table and first.title not in sentence.split("; "), "what was measured stays"
        assert second.title in sentence and second.title not in table
    assert "No program" not in shown["points"] + shown["limits"]


def test_sessions_are_joined_when_they_are_read(tmp_path):
    """The newest point of a place counts; points of another notebook or of other versions do not."""

    def session(day: int, step: float, threads: int = 1, version: str = "2", notebook: str = "a") -> Record:
        named = {"versions": {"python": "3", "x": version}, "session": f"202601{day:02}-000000"}
        record = measured("sweep", swept(threads, step), started=datetime(2026, 1, day, tzinfo=UTC), **named)
        record.notebook.sha256 = notebook
        return record

    joined = [session(4, 0.1), session(2, 0.3), session(3, 0.2, threads=2)]
    superseded = [session(1, 9, threads=4, version="1"), session(1, 9, threads=8, notebook="b"), measured("sweep", [])]
    (((only,),), none) = (rows.groups(KNOWN, joined + superseded, what) for what in ("sweep", "fastest"))
    steps = [point for point in tables.timed(only.points) if point.at["phase"] == "step"]
    assert {point.at["threads"]: point.values[0] for point in steps} == {1: 0.1, 2: 0.2}
    assert only.newest == joined[0] and len(only.sessions) == 3 and none == []
    shown = made(joined + superseded, tmp_path)["sweep"]
    assert "; 2026-01-02 to 2026-01-04." in shown and "Versions: x 2." in shown
    for record in joined:
        records.write(record, tmp_path)
    assert len(records.read_all(tmp_path)) == 3, "a file each"


def test_newest_matrix_product_of_the_same_system_counts(tmp_path):
    ((group,), other) = rows.groups(KNOWN, [measured("sweep", swept(1, 0.2))], "sweep"), measured("sweep", [])
    other.machine = HERE.model_copy(update={"os": "another"})
    first = write_product(tmp_path, 3e12)
    first.write_text(first.read_text().replace('"measured": "20', '"measured": "19'))
    first = first.rename(first.with_name("floor.json"))  # as it was named before
    assert rows.matrix_product(group, tmp_path)[1:] == (8, 3e12)
    write_product(tmp_path, 2e12)
    write_product(tmp_path, 9e12, other.machine)
    session, *product = rows.matrix_product(group, tmp_path)
    assert product == [8, 2e12] and "numpy" in session.versions
    assert rows.matrix_product([*group, Measurement.of([other])], tmp_path) is None, "of two systems"
    first.write_text("{")
    with pytest.raises(RosettaError, match="floor.json is not valid: .*; mend or delete it"):
        rows.matrix_product(group, tmp_path)


def test_unknown_and_empty_blocks_are_told(tmp_path):
    block, known = "[//]: # ({})\nold\n[//]: # (end)", tables.by_name(KNOWN, [], tmp_path)
    with pytest.raises(RosettaError, match="there is no table nix; there are: points, fastest"):
        markdown.fill(block.format("nix"), known)
    text = markdown.fill(block.format("fastest"), known)
    assert "Not measured yet." in text and "old" not in text and markdown.fill(text, known) == text


def test_picture_of_a_sweep_has_rates_with_the_spread_of_their_repeats(tmp_path, monkeypatch):
    from rosetta.measure import pictures  # here, because it brings matplotlib

    every, drawn = [measured("sweep", swept(1, 0.2, 8) + swept(1, 0.2, 4), row) for row in ROWS], []
    draw = pictures.Axes.errorbar
    monkeypatch.setattr(pictures.Axes, "errorbar", lambda *of, **more: drawn.append(of[1:]) or draw(*of, **more))
    (picture,) = pictures.draw_sweeps(KNOWN, every, tmp_path)
    text = picture.read_text()
    assert all(row.title in text for row in ROWS) and "forward + backward" in text
    assert f"({HERE.name}/measured/{picture.name})" in made(every, tmp_path)["points"]
    deviation = 2**0.5 * 0.01 / 0.16
    rates = [[80, 160], [25, 50], [20, 40]]
    errors = [[0, 0], [25 * deviation, 50 * deviation], [0, 0]]
    expected = [([4, 8], pytest.approx(rate), pytest.approx(error, abs=1e-9)) for rate, error in zip(rates, errors)]
    assert drawn == expected * 2


@pytest.mark.parametrize(
    ("there", "each", "threads"), [(1, True, [1]), (2, True, [1, 2]), (6, True, [1, 2, 4, 6]), (6, False, [6])]
)
def test_numbers_of_threads_where_none_are_named(monkeypatch, there, each, threads):
    monkeypatch.setattr("rosetta.run.machine.processors", lambda: list(range(there)))
    bench = Measuring(Where(gpus="none"), "sweep", "phases")
    assert [slot.threads for slot in bench.slots(None, each)] == threads
