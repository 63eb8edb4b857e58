"""The contract of the notebooks, which is ``rosetta/notebook.py``: the collection keeps to it, and each breach is told with cell and role."""

import json

import pytest

from rosetta import catalog, entries, notebook, sections
from rosetta.errors import RosettaError
from rosetta.kinds import KINDS
from tests.inside import Inside
from tests.standin import StandIn, one_line

KNOWN = catalog.load()
NOTEBOOKS = {f"{row.task}/{row.framework}": row for row in KNOWN.rows()}
TRAIN = KINDS["train"]
ROW = next(row for row in NOTEBOOKS.values() if KNOWN.kind(row) is TRAIN)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_kept(name):
    row = NOTEBOOKS[name]
    assert not list(entries.contract(row.notebook, KNOWN.task(row.task)))


OF_ONE = ["module", "data", "device", "gradient and step", "training and evaluation", "save and load", "seed"]
OF_SEVERAL = ["devices", "batch size", "who deals out a batch", "gradients", "batch norm"]


def test_a_framework_has_one_table_of_words():
    """Seven rows, the same in each of its notebooks, and five where there are several devices; PyTorch's stand beside Keras's, all
    others beside PyTorch's."""
    tables: dict[tuple[str, bool], set[str]] = {}
    for row in NOTEBOOKS.values():
        if row.task == "dictionary":  # is such a table itself
            continue
        first, several = notebook.cells(row.notebook)[0].source, "DEVICES" in KNOWN.task(row.task).constants()
        tables.setdefault((row.framework, several), set()).add(first[first.index("**Coming from ") :].strip())
    for (framework, several), (table, *others) in tables.items():
        _, _, head, _, *body = table.split("\n")
        assert not others, framework
        names = [line.split("|")[1].strip().partition("](")[0].lstrip("[") for line in body]
        assert names == (OF_SEVERAL if several else OF_ONE), framework
        assert head.split("|")[2].strip() == ("Keras" if framework == "pytorch" else "PyTorch")


class Cells:
    """The cells of a copy of a notebook, to be broken."""

    def __init__(self, folder):
        self.path = folder / "copy.ipynb"
        self.content = json.loads(ROW.notebook.read_text())
        self.list = self.content["cells"]

    def place(self, role: str) -> int:
        return next(place for place, cell in enumerate(self.list) if cell["metadata"].get("tags") == [role])

    def cell(self, role: str) -> dict:
        return self.list[self.place(role)]

    def note(self, role: str) -> dict:
        return self.list[self.place(role) - 1]

    def code(self, role: str, text: str) -> None:
        """Let the cell of a role have this code."""
        self.cell(role)["source"] = text

    def add(self, role: str, text: str) -> None:
        """Let the cell of a role end with this code."""
        self.cell(role)["source"].append(f"\n{text}")

    def text(self, role: str, text: str) -> None:
        """Let this be the text above the cell of a role."""
        self.note(role)["source"] = text

    def tags(self, role: str, *tags: str) -> None:
        self.cell(role)["metadata"]["tags"] = list(tags)

    def remove(self, role: str) -> list:
        """Take away the cell of a role and its text."""
        place = self.place(role)
        taken = self.list[place - 1 : place + 1]
        del self.list[place - 1 : place + 1]
        return taken

    def troubles(self) -> list[str]:
        self.path.write_text(json.dumps(self.content))
        return [one_line(trouble) for trouble in notebook.troubles(self.path, KNOWN.task(ROW.task))]


@pytest.fixture
def cells(tmp_path):
    return Cells(tmp_path)


# What breaks the contract, and what is said. REFUSED: before a run, and by the site
REFUSED = [
    (lambda c: c.cell("model")["metadata"].pop("tags"), "code cell 4 (", ") has no tag: give it its role"),
    (lambda c: c.tags("model", "model", "data"), "code cell 4 (", ") has the tags model, data: it must have one"),
    (lambda c: c.tags("model", "modle"), "has the tag modle, which is no role of kind train; did you mean model?"),
    (lambda c: c.remove("evaluate"), "no code cell has the role evaluate; the roles are parameters, setup"),
    (lambda c: c.list.extend(c.list[-2:]), "2 code cells have the role record: put their code into one"),
    (lambda c: c.list.extend(c.remove("train")), "the cell record stands before the cell train; their order is param"),
    (lambda c: c.list.remove(c.note("train")), "the cell train has no text of its own above it"),
    (lambda c: c.list.append(c.note("train")), "each code cell has one text above it, no more"),
    (lambda c: c.content.pop("cells"), "copy.ipynb is not a notebook: it lacks 'cells'"),
]
TOLD = [
    (lambda c: c.cell("train").update(execution_count=3), "the cell train has outputs or a number: run_all.py tidy"),
    (lambda c: c.cell("train").pop("outputs"), "it is not a valid notebook: "),
    (lambda c: c.content["metadata"]["kernelspec"].update(name="julia"), "its kernel is not python3"),
    (lambda c: c.list[0].update(source="Words"), "its first text does not begin with a title"),
    (lambda c: c.text("train", "## Train\n\nWords."), "the cell train begins with '## Train', not with '## Training'"),
    (lambda c: c.text("train", "## Training"), "the text above the cell train has a heading and"),
    (lambda c: c.text("train", "## Training\n\n[Words](nowhere.md)."), "nowhere.md, which is not there"),
    (lambda c: c.code("parameters", "EPOCHS, BATCHSIZE = 1, 2"), "does not bind DROPOUT_CONV, DROPOUT_FC, INITIAL_WEI"),
    (lambda c: c.add("parameters", "LEFT = 1"), "the cell parameters binds LEFT, which no other cell reads"),
    (lambda c: c.code("model", "a =\nb"), "the cell model is not Python: invalid syntax, line 1"),
    (lambda c: c.add("model", "x = 1\n" * 141), "lines of code; 140 are allowed"),
    (
        lambda c: c.add("model", "x = " + "1 + " * 25 + "1"),
        "the cell model has a line of 105 characters; 100 are",
    ),
    (lambda c: c.add("setup", "from os import *"), "the cell setup imports *"),
    (lambda c: c.add("setup", "import rosetta"), "the cell setup names rosetta: a notebook"),
]


@pytest.mark.parametrize("change, said", TOLD)
def test_breach_is_one_line_that_names_it(cells, change, said):
    change(cells)
    assert any(said in trouble for trouble in cells.troubles())


@pytest.mark.parametrize("change, said", [(change, said) for change, *said in REFUSED])
def test_refusal_is_one_line_and_the_site_says_the_same(cells, change, said):
    change(cells)
    (told,) = cells.troubles()
    assert all(part in told for part in said)
    with pytest.raises(RosettaError) as error:
        sections.notebook(cells.path, TRAIN)
    assert str(error.value) == told


@pytest.mark.parametrize(
    "number, begins", [(9, "device = "), (1, "EPOCHS")]
)  # the last, and the one with the parameters
def test_refused_by_a_run_before_anything_starts_and_the_others_run(inside: Inside, number, begins):
    inside.catalog("".join(map(inside.entry, ("good", "raises"))))
    content = json.loads(inside.path("raises").read_text())
    del [cell for cell in content["cells"] if cell["cell_type"] == "code"][number - 1]["metadata"]["tags"]
    inside.path("raises").write_text(json.dumps(content))
    assert inside.call("list").returncode == 0
    done = inside.run()
    said = f"raises.ipynb: code cell {number} ({begins}"
    first, second, *_ = (line for line in done.stdout.splitlines() if line.startswith("["))
    assert done.returncode == 1 and first.startswith("[1/2] raises: failed") and second.startswith("[2/2] good: ")
    assert said in done.stdout.partition("\n[1/2]")[0], "in the plan"
    record = inside.record("raises.failed")
    assert record["status"] == "failed" and said in record["error"] and record["metrics"]["wall_s"] is None
    assert inside.record("good")["status"] == "ok"


def test_notebook_that_names_no_language_runs(standin: StandIn):
    content = json.loads(standin.path("good").read_text())
    content["metadata"] = {}
    standin.path("good").write_text(json.dumps(content))
    assert standin.run("good").returncode == 0 and standin.record("good")["status"] == "ok"


def test_what_an_editor_saves_is_taken_away(cells):
    before = ROW.notebook.read_text()
    cells.path.write_text(before)
    assert not notebook.tidy(cells.path) and cells.path.read_text() == before, "the collection is tidy"
    cells.cell("train").update(execution_count=3, outputs=[{"output_type": "stream", "name": "stdout", "text": "x"}])
    cells.cell("train")["metadata"]["scrolled"] = True
    cells.content["metadata"] = {"kernelspec": {"name": "rosetta-torch", "display_name": "x"}, "widgets": {}}
    assert cells.troubles() and notebook.tidy(cells.path) and cells.path.read_text() == before
    cells.path.write_text('{"cells": [7]}')
    with pytest.raises(RosettaError, match="is no notebook: "):
        notebook.tidy(cells.path)
