"""The tables of what was measured, and the committed pages that hold them."""

from datetime import UTC, datetime
from unittest.mock import MagicMock

import pytest

from rosetta import catalog, files, markdown
from rosetta.errors import RosettaError
from rosetta.kinds.kind import BATCH
from rosetta.measure import cells, keep, lessons, scripts, sweep
from rosetta.measure.tables import Tables
from rosetta.records import Dataset, Notebook, Point, Record
from rosetta.run import devices

KNOWN = catalog.load()
ROWS = [row for row in KNOWN.rows() if KNOWN.kind(row).trains][:2]
TASK = KNOWN.task(ROWS[0].task)
SIZE = TASK.constants()[BATCH]
MACHINE = devices.timed(gpus="none", threads=1)[0].machine


def measured(what: str, points: list[Point], row=ROWS[0], changed=None, synthetic=False) -> Record:
    return Record(
        task=row.task,
        kind=KNOWN.kind(row).name,
        framework=row.framework,
        variant=row.variant,
        title=row.title,
        environment=row.environment,
        preset=what,
        changed=changed or {},
        status="ok",
        started=datetime(2026, 1, 2, tzinfo=UTC),
        notebook=Notebook(path="x.ipynb", sha256=""),
        machine=MACHINE,
        dataset=Dataset(synthetic=synthetic),
        metrics=KNOWN.kind(row).metrics(),
        points=points,
    )


def pair(what: str) -> list[Point]:
    at = {BATCH: SIZE, "steps": 10}
    losses = Point(at=at | {"program": what}, values=[2.3] * 3, unit="loss")
    own = Point(at=at | {"program": "notebook"}, values=[0.1, 0.12, 0.11])
    return [own, losses, Point(at=at | {"program": what}, values=[0.1] * 3), losses]


def swept(threads: int, step: float, size: int = SIZE) -> list[Point]:
    seconds = {"forward": [0.05, 0.05], "backward": [0.15, 0.17], "step": [step, step]}
    message = {"batch_size": size, "seconds": seconds, "loss": dict.fromkeys(seconds, 2.3)}
    return sweep.points(threads, 100, {}, message)


def made(every: list[Record], results) -> dict[str, str]:
    return {name: make() for name, make in Tables(KNOWN, every, results).blocks().items()}


def test_pairs_come_in_the_catalogs_order_by_setting(tmp_path):
    first, second = ROWS
    every = [measured("fastest", pair("fastest"), second), measured("fastest", pair("fastest"), first)]
    every.append(measured("settings", pair("settings"), changed={"A": "1", "B": ""}, synthetic=True))
    tables = made(every, tmp_path)
    line = "| 110.0 (100.0 - 120.0) | 100.0 (100.0 - 100.0) | 1.10 (1.00 - 1.20) |"
    assert tables["fastest"].index(f"| {first.title} {line}") < tables["fastest"].index(f"| {second.title} {line}")
    assert "3 epochs of 10 steps after a first that is not counted; 2026-01-02." in " ".join(tables["fastest"].split())
    assert "`A=1` without `B`:" in tables["settings"] and f"| {first.title} SYNTHETIC {line}" in tables["settings"]


def test_sweeps(tmp_path):
    keep.machine("floor", MACHINE, [Point(at={"size": 8}, values=[1e12, 2e12], unit="FLOP/s")], tmp_path)
    every = [measured("sweep", swept(1, 0.2) + swept(2, 0.1) + swept(1, 0.2, 2 * SIZE))]
    tables, title = made(every, tmp_path), ROWS[0].title
    phases = "50.0 ± 0.0 | 160.0 ± 14.1"
    assert f"batch {SIZE}, 2 times 100 steps, mean ± standard deviation" in " ".join(tables["sweep"].split())
    assert f"| {title} | {phases} | 200.0 ± 0.0 | {phases} | 100.0 ± 0.0 | 2.00 |" in tables["sweep"]
    assert f"| {title} | 1 | {2 * SIZE} | {phases} | 200.0 ± 0.0 | {2 * SIZE / 0.2:.0f} | 2 x 100 |" in tables["points"]
    assert tables["limits"].count("| 50% | 110% | -60% |") == 1


def test_row_without_a_program_is_not_written(tmp_path, monkeypatch):
    first, second = ROWS
    monkeypatch.setattr(scripts, "PROGRAMS", tmp_path)
    tables = made([measured("fastest", pair("fastest")), measured("sweep", swept(1, 0.2))], tmp_path)
    for name in ("fastest", "sweep"):
        table, sentence = tables[name].split("No program is written for: ")
        assert first.title in table and first.title not in sentence.split("; "), "what was measured stays"
        assert second.title in sentence and second.title not in table
    assert "No program" not in tables["points"] + tables["limits"]


def test_starts_harness_lessons_and_machines(tmp_path):
    seconds = zip(cells.PARTS, (1, 2, 3, 4, 5, 0.5))
    parts = [Point(at={"part": part}, values=[value]) for part, value in seconds]
    harness = [Point(at={"program": name}, values=[value]) for name, value in (("script", 1), ("run_all.py", 2.5))]
    worth = [
        Point(at={"lesson": "a"}, values=[0.3, 0.2], unit="accuracy"),
        Point(at={"lesson": "b"}, values=[0.01]),
    ]
    every = [measured("startup", parts), measured("overhead", harness), measured("lessons", worth)]
    keep.machine("startup", MACHINE, [Point(at={"command": "list"}, values=[0.5])], tmp_path)
    keep.machine("loading", MACHINE, [Point(at={"data": "x"}, values=[0.25])], tmp_path)
    keep.machine("cluster", MACHINE, [Point(at={"workers": 2, "runs": 4, "seconds": 30}, values=[61])], tmp_path)
    tables = made(every, tmp_path)
    assert "| 1.00 | 2.00 | 3.00 | 4.00 | 5.00 | 0.50 | 15.00 |" in tables["startup"]
    assert "| list | 0.50 (0.50 - 0.50) |" in tables["startup"] and "; one run each." in tables["startup"]
    assert "| 1.00 (1.00 - 1.00) | 2.50 (2.50 - 2.50) | 1.50 |" in tables["overhead"]
    assert (
        "| a | 30.00 %, 20.00 % |" in tables["lessons"] and "| b | 10.0 (10.0 - 10.0) ms a step |" in tables["lessons"]
    )
    assert "| x | 0.250 (0.250 - 0.250) |" in tables["loading"] and "| 2 | 4 | 30 | 61.0 |" in tables["cluster"]
    (page,) = Tables(KNOWN, every, tmp_path).write()
    assert "## Loading data" in page.read_text() and "## Threads" not in page.read_text()


def test_unknown_and_empty_blocks_are_told(tmp_path):
    block = "[//]: # ({})\nold\n[//]: # (end)"
    tables = Tables(KNOWN, [], tmp_path).blocks()
    with pytest.raises(RosettaError, match="there is no table nix; there are: fastest"):
        markdown.fill(block.format("nix"), tables)
    text = markdown.fill(block.format("fastest"), tables)
    assert "Not measured yet." in text and "old" not in text and markdown.fill(text, tables) == text


def test_picture_of_a_sweep(tmp_path):
    from rosetta.measure import plot  # here, because it brings matplotlib

    every = [measured("sweep", swept(1, 0.2) + swept(1, 0.4, 2 * SIZE), row) for row in ROWS]
    (picture,) = plot.write(KNOWN, every, tmp_path)
    text = picture.read_text()
    assert all(row.title in text for row in ROWS) and "forward + backward" in text
    assert f"({MACHINE.name}/measured/{picture.name})" in made(every, tmp_path)["points"]


def test_panel_has_rates_with_the_spread_of_their_repeats():
    from rosetta.measure import plot

    drawn, axes = {}, MagicMock()
    points = [point for size in (8, 4) for point in swept(1, 0.2, size)]
    plot._panel(axes, cells.timed(points), [1], plot.RATE[1])
    for sizes, rates, errors in (call.args for call in axes.errorbar.call_args_list):
        drawn[len(drawn)] = sizes, pytest.approx(rates), pytest.approx(errors, abs=1e-9)
    forward, backward, step = drawn.values()
    assert forward == ([4, 8], [80, 160], [0, 0]) and step == ([4, 8], [20, 40], [0, 0])
    deviation = 2**0.5 * 0.01 / 0.16
    assert backward == ([4, 8], [25, 50], [25 * deviation, 50 * deviation])


def test_usual_threads(monkeypatch):
    for there, threads in ((1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (16, [1, 2, 4, 8, 16])):
        monkeypatch.setattr("rosetta.run.machine.processors", lambda there=there: list(range(there)))
        assert sweep.usual_threads() == threads


LESSONS = [task for task in KNOWN.tasks.values() if (task.folder / "lessons.toml").is_file()]


@pytest.mark.parametrize("task", LESSONS, ids=lambda task: task.key)
def test_lessons_fit_their_notebooks(task):
    written = files.load(lessons.TaskLessons, task.folder / "lessons.toml")
    for row in KNOWN.select([f"{task.key}/{name}" for name in written.rows]):
        for edits in (written.accuracy.lessons | written.time.lessons).values():
            assert scripts.edited(scripts.cells(row.notebook), edits) != scripts.cells(row.notebook)
