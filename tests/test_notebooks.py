"""The contract of the notebooks: same sections, same roles, no outputs, short enough to read."""

import ast

import nbformat
import pytest
from rosetta.roles import NAMES, ROLES

from rosetta import catalog

COMMON_PARAMETERS = [
    "EPOCHS",
    "BATCHSIZE",
    "LR",
    "MOMENTUM",
    "SEED",
    "N_TRAIN",
    "N_TEST",
    "DATA_DIR",
    "SYNTHETIC",
    "DROPOUT",
    "TEST_EACH_EPOCH",
    "INITIAL_WEIGHTS",
    "SAVE_TO",
]

ROWS = catalog.load().rows("cifar10_cnn")
PATHS = sorted({row.notebook for row in ROWS})


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_valid_and_without_outputs(notebook):
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in code(notebook))
    assert notebook.metadata.kernelspec.name == "python3"


def test_one_cell_for_each_role_in_order(notebook):
    assert [cell.metadata.tags for cell in code(notebook)] == [[name] for name in NAMES]


def test_same_sections_in_order_each_with_prose(notebook):
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert texts[0].startswith("# ")
    assert [text.splitlines()[0] for text in texts[1:]] == [f"## {role.heading}" for role in ROLES]
    assert all(len(text.splitlines()) > 1 for text in texts[:-1])
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds == ["markdown"] + ["markdown", "code"] * len(ROLES)


def test_parameters_that_every_notebook_takes(notebook):
    tree = ast.parse(code(notebook)[0].source)
    bound = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    bound |= {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        for name in [node]
    }
    assert set(COMMON_PARAMETERS) <= bound
    used = {
        name.id
        for cell in code(notebook)[1:]
        for name in ast.walk(ast.parse(cell.source))
        if isinstance(name, ast.Name)
    }
    assert set(COMMON_PARAMETERS) <= used, "a parameter that nothing reads"


def test_variant_parameters_exist():
    for row in ROWS:
        source = code(nbformat.read(row.notebook, as_version=4))[0].source
        assert all(name in source for name in row.parameters), row.name


def test_short_enough_to_read(notebook):
    lines = [line for cell in code(notebook) for line in cell.source.splitlines() if line.strip()]
    assert len(lines) <= 125
    assert all(len(line) <= 125 for line in lines)


def test_no_star_imports_and_nothing_of_the_runner(notebook):
    text = "\n".join(cell.source for cell in code(notebook))
    assert "import *" not in text and "rosetta" not in text and "papermill" not in text
