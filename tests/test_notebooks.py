"""The contract of the notebooks, which is ``rosetta/notebook.py``: the collection keeps to it, and each breach is told with cell and role."""

import json

import pytest

from rosetta import catalog, notebook, sections
from rosetta.errors import RosettaError
from rosetta.kinds import KINDS
from tests.standin import StandIn, one_line

KNOWN = catalog.load()
NOTEBOOKS = {f"{row.task}/{row.framework}": row for row in KNOWN.rows()}
TRAIN = KINDS["train"]
ROW = next(row for row in NOTEBOOKS.values() if KNOWN.kind(row) is TRAIN)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_kept(name):
    row = NOTEBOOKS[name]
    assert not list(notebook.troubles(row.notebook, KNOWN.task(row.task)))


class Cells:
    """The cells of a copy of a notebook, to be broken."""

    def __init__(self, folder):
        self.path = folder / "copy.ipynb"
        self.content = json.loads(ROW.notebook.read_text())

    @property
    def list(self) -> list:
        return self.content["cells"]

    def place(self, role: str) -> int:
        return next(place for place, cell in enumerate(self.list) if cell["metadata"].get("tags") == [role])

    def cell(self, role: str) -> dict:
        return self.list[self.place(role)]

    def note(self, role: str) -> dict:
        return self.list[self.place(role) - 1]

    def remove(self, role: str) -> list:
        place = self.place(role)
        taken = self.list[place - 1 : place + 1]
        del self.list[place - 1 : place + 1]
        return taken

    def first(self) -> str:
        """The first thing that is wrong."""
        self.path.write_text(json.dumps(self.content))
        return one_line(next(notebook.troubles(self.path, KNOWN.task(ROW.task))))


@pytest.fixture
def cells(tmp_path):
    return Cells(tmp_path)


REFUSED = {
    "untagged": (lambda c: c.cell("model")["metadata"].pop("tags"), "code cell 4 (", ") has no tag: give it its role"),
    "two tags": (
        lambda c: c.cell("model")["metadata"]["tags"].append("data"),
        "code cell 4 (",
        ") has the tags model, data: it must have one",
    ),
    "no role": (
        lambda c: c.cell("model")["metadata"].update(tags=["modle"]),
        "has the tag modle, which is no role of kind train; did you mean model?",
    ),
    "missing": (lambda c: c.remove("evaluate"), "no code cell has the role evaluate; the roles are parameters, setup"),
    "twice": (lambda c: c.list.extend(c.list[-2:]), "2 code cells have the role record: put their code into one"),
    "out of order": (
        lambda c: c.list.extend(c.remove("train")),
        "the cell record stands before the cell train; their order is parameters, setup",
    ),
    "no text": (lambda c: c.list.remove(c.note("train")), "the cell train has no text of its own above it"),
    "a text too many": (lambda c: c.list.append(c.note("train")), "each code cell has one text above it, no more"),
    "no cells": (lambda c: c.content.pop("cells"), "copy.ipynb is not a notebook: it lacks 'cells'"),
}
TOLD = {
    "outputs": (
        lambda c: c.cell("train").update(execution_count=3),
        "the cell train has outputs or a number: clear all outputs",
    ),
    "not valid": (lambda c: c.cell("train").pop("outputs"), "it is not a valid notebook: "),
    "kernel": (lambda c: c.content["metadata"]["kernelspec"].update(name="julia"), "its kernel is not python3"),
    "title": (lambda c: c.list[0].update(source="Words"), "its first text does not begin with a title"),
    "heading": (
        lambda c: c.note("train").update(source="## Train\n\nWords."),
        "the text above the cell train begins with '## Train', not with '## Training'",
    ),
    "no words": (
        lambda c: c.note("train").update(source="## Training"),
        "the text above the cell train has a heading and",
    ),
    "parameter": (
        lambda c: c.cell("parameters").update(source="EPOCHS, BATCHSIZE = 1, 2"),
        "the cell parameters does not bind DROPOUT_CONV, DROPOUT_FC, INITIAL_WEIGHTS, ",
    ),
    "unread": (lambda c: c.cell("parameters")["source"].append("\nLEFT = 1"), "binds LEFT, which no other cell reads"),
    "not Python": (
        lambda c: c.cell("model").update(source="a =\nb"),
        "the cell model is not Python: invalid syntax, line 1",
    ),
    "long": (lambda c: c.cell("model")["source"].append("\nx = 1" * 111), "lines of code; 110 are allowed"),
    "wide": (
        lambda c: c.cell("model")["source"].append("\nx = " + "1 + " * 25 + "1"),
        "the cell model has a line of 105 characters; 100 are allowed: x = 1 + 1",
    ),
    "star": (lambda c: c.cell("setup")["source"].append("\nfrom os import *"), "the cell setup imports *"),
    "runner": (
        lambda c: c.cell("setup")["source"].append("\nimport rosetta"),
        "the cell setup names rosetta: a notebook",
    ),
}


@pytest.mark.parametrize("name", REFUSED | TOLD)
def test_breach_is_one_line_that_names_it(cells, name):
    change, *said = (REFUSED | TOLD)[name]
    change(cells)
    assert all(part in cells.first() for part in said)


def test_link_that_leads_nowhere_is_told(cells):
    cells.note("train").update(source="## Training\n\n[Words](nowhere.md).")
    cells.first()
    troubles = notebook.troubles(cells.path, KNOWN.task(ROW.task))
    assert any("nowhere.md, which is not there" in trouble for trouble in troubles)


@pytest.mark.parametrize("name", REFUSED)
def test_site_says_the_same(cells, name):
    change, *said = REFUSED[name]
    change(cells)
    told = cells.first()
    with pytest.raises(RosettaError) as error:
        sections.notebook(cells.path, TRAIN)
    assert str(error.value) == told


def test_refused_by_a_run_before_anything_starts_and_the_others_run(standin: StandIn):
    standin.catalog("".join(map(standin.entry, ("good", "raises"))))
    content = json.loads(standin.path("raises").read_text())
    del content["cells"][-1]["metadata"]["tags"]
    standin.path("raises").write_text(json.dumps(content))
    done = standin.run()
    said = "raises.ipynb: code cell 9 (device = "
    first, second, *_ = (line for line in done.stdout.splitlines() if line.startswith("["))
    assert done.returncode == 1 and first.startswith("[1/2] raises: failed") and second.startswith("[2/2] good: ")
    assert said in done.stdout.partition("\n[1/2]")[0], "in the plan"
    record = standin.record("raises.failed")
    assert record["status"] == "failed" and said in record["error"] and record["metrics"]["wall_s"] is None
    assert standin.record("good")["status"] == "ok"
