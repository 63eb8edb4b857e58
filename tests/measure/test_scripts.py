"""Scripts made of a notebook's cells."""

import pytest

from rosetta import catalog
from rosetta.errors import RosettaError, Unavailable
from rosetta.measure import scripts
from rosetta.measure.scripts import Changes

KNOWN = catalog.load()
ROWS = KNOWN.rows()
TRAINED = [row for row in ROWS if KNOWN.kind(row).trains]
OF_ANY_TASK, OF_A_TASK = (sorted(scripts.PROGRAMS.glob(pattern)) for pattern in ("*/*.py", "*/*/*.py"))


def named(file):
    return file.relative_to(scripts.PROGRAMS).with_suffix("").as_posix()


def test_cells_are_replaced_and_appended(tmp_path):
    file = tmp_path / "x.py"
    file.write_text('"""Why."""\n\n# %% after parameters\nz = 0\n\n# %% after data\nx = 1\n\n# %% train\ny = 2\n')
    change = scripts.changes(file, ("parameters", "data", "train"))
    assert change == Changes({"train": "y = 2"}, {"parameters": "z = 0", "data": "x = 1"})
    code = scripts.changed({"parameters": "p", "setup": "s", "data": "a", "train": "b", "record": "c"}, change)
    expected = {"parameters": "p", "setup": "z = 0\n\n\ns", "data": "a\n\n\nx = 1", "train": "y = 2", "record": "c"}
    assert code == expected


def test_unknown_cell_and_missing_program_are_told(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("# %% training\npass\n")
    with pytest.raises(RosettaError, match="notebooks have no cell training"):
        scripts.changes(file, ("train",))
    with pytest.raises(Unavailable, match="not written: there is no .*y.py"):
        scripts.changes(tmp_path / "y.py", ("train",))


def test_edit_of_what_is_not_there():
    assert scripts.edited({"train": "x = 1"}, [("train", "1", "2")]) == {"train": "x = 2"}
    for role in ("train", "model"):
        with pytest.raises(RosettaError, match=f"the cell {role} does not hold z"):
            scripts.edited({"train": "x = 1"}, [(role, "z", "2")])


@pytest.mark.parametrize("row", TRAINED, ids=lambda row: row.full_name)
def test_cells_of_a_notebook_come_in_order(row):
    assert tuple(scripts.cells(row.notebook)) == KNOWN.kind(row).names


@pytest.mark.parametrize("file", OF_ANY_TASK + OF_A_TASK, ids=named)
def test_every_program_is_of_a_framework(file):
    rows = [row for row in ROWS if row.framework == file.stem]
    assert rows, "no notebook is of this framework"
    what, *task, _ = file.relative_to(scripts.PROGRAMS).parts
    if task:
        rows = [row for row in rows if row.task == task[0]]
        assert scripts.program(what, rows[0]) == file
    if what == "weights":
        assert file.stem in KNOWN.task(task[0]).weights.values(), "a whole program, of no cells"
        return
    change = scripts.changes(file, KNOWN.kind(rows[0]).names)
    assert change.instead or change.after
    if what == "phases":
        assert set(change.after) == {"optimizer"} and not change.instead


@pytest.mark.parametrize("file", OF_ANY_TASK, ids=named)
def test_a_program_of_any_task_names_none(file):
    names = {task.data for task in KNOWN.tasks.values() if task.data} | set(KNOWN.tasks)
    assert not [name for name in names if name in file.read_text()]
