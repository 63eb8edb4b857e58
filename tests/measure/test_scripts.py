"""Scripts made of a notebook's cells."""

import pytest

from rosetta import catalog
from rosetta.errors import RosettaError
from rosetta.roles import NAMES
from rosetta.speed import scripts
from rosetta.speed.scripts import Changes

KNOWN = catalog.load()
(PYTORCH,) = KNOWN.select("cifar10_cnn", ["pytorch"])


def test_cells_are_replaced_and_appended(tmp_path):
    file = tmp_path / "x.py"
    file.write_text('"""Why."""\n\n# %% after parameters\nz = 0\n\n# %% after data\nx = 1\n\n# %% train\ny = 2\n')
    change = scripts.changes(file)
    assert change == Changes({"train": "y = 2"}, {"parameters": "z = 0", "data": "x = 1"})
    code = scripts.changed({"parameters": "p", "setup": "s", "data": "a", "train": "b", "record": "c"}, change)
    expected = {"parameters": "p", "setup": "z = 0\n\n\ns", "data": "a\n\n\nx = 1", "train": "y = 2", "record": "c"}
    assert code == expected


def test_unknown_cell_and_missing_program_are_told(tmp_path):
    file = tmp_path / "x.py"
    file.write_text("# %% training\npass\n")
    with pytest.raises(RosettaError, match="notebooks have no cell training"):
        scripts.changes(file)
    with pytest.raises(RosettaError, match="there is no .*y.py: this framework cannot be measured so yet"):
        scripts.changes(tmp_path / "y.py")


def test_edit_of_what_is_not_there(tmp_path):
    assert scripts.edited({"train": "x = 1"}, [("train", "1", "2")]) == {"train": "x = 2"}
    with pytest.raises(LookupError, match="the cell train does not hold z"):
        scripts.edited({"train": "x = 1"}, [("train", "z", "2")])


def test_cells_of_a_notebook_come_in_order():
    assert tuple(scripts.cells(PYTORCH.notebook)) == NAMES


@pytest.mark.parametrize("kind", ["phases", "fastest"])
@pytest.mark.parametrize("framework", sorted(KNOWN.frameworks))
def test_every_framework_has_its_program(kind, framework):
    row = next(row for row in KNOWN.rows("cifar10_cnn") if row.framework == framework)
    change = scripts.changes(scripts.program(kind, row))
    assert change.instead or change.after
    if kind == "phases":
        assert set(change.after) == {"optimizer"} and not change.instead


def test_every_framework_of_then_has_a_program_of_2018():
    old = {row.framework for row in KNOWN.rows("cifar10_cnn") if row.environment in ("python36", "classic")}
    there = {file.stem for file in (scripts.PROGRAMS / "cifar10_cnn" / "as_in_2018").glob("*.py")}
    assert there == old
