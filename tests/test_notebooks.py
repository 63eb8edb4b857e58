"""The contract of the notebooks: same sections, same roles, no outputs, short enough to read."""

import ast
from itertools import groupby

import nbformat
import pytest

from rosetta import catalog
from rosetta.plan import TOLD

KNOWN = catalog.load()
PATHS = sorted({row.notebook: row for row in KNOWN.rows()}.items())


@pytest.fixture(params=PATHS, ids=lambda pair: f"{pair[1].task}/{pair[1].framework}")
def row(request):
    """Any of the rows of a notebook."""
    return request.param[1]


@pytest.fixture
def task(row):
    return KNOWN.task(row.task)


@pytest.fixture
def notebook(row):
    return nbformat.read(row.notebook, as_version=4)


def code(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def names(source: str, context: type) -> set[str]:
    """The names that a program stores or loads, those that it imports among the stored."""
    nodes = list(ast.walk(ast.parse(source)))
    found = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}
    if context is ast.Store:
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        found |= {alias.asname or alias.name for node in imports for alias in node.names}
    return found


def test_valid_and_without_outputs(notebook):
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in code(notebook))
    assert notebook.metadata.kernelspec.name == "python3"


def test_one_cell_for_each_role_in_order(notebook, task):
    tags = [cell.metadata.tags for cell in code(notebook)]
    assert all(len(tag) == 1 for tag in tags)
    sizes = [(name, len(list(cells))) for name, cells in groupby(tag[0] for tag in tags)]
    assert [name for name, _ in sizes] == list(task.kind.names)
    assert all(size == 1 or role.many for role, (_, size) in zip(task.kind.roles, sizes))


def test_same_sections_in_order_each_with_prose(notebook, task):
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert texts[0].startswith("# ")
    headings = [text.splitlines()[0] for text in texts if text.startswith("## ")]
    assert headings == [f"## {role.heading}" for role in task.kind.roles]
    assert all(len(text.splitlines()) > 1 for text in texts[:-1])
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds == ["markdown"] + ["markdown", "code"] * len(code(notebook)), "each cell has its words before it"


def test_parameters_that_every_notebook_takes(notebook, task):
    """The task's constants that a run may inject: each is there, and something reads it."""
    constants = set(task.constants()) - task.kind.free | {"SEED"}
    constants |= set(task.without_chance).union(*task.presets.values()) - set(TOLD)
    constants |= {"INITIAL_WEIGHTS"} if "weights" in task.kind.names else set()
    parameters, *others = [cell.source for cell in code(notebook)]
    assert constants <= names(parameters, ast.Store)
    unread = names(parameters, ast.Store) - set().union(*(names(source, ast.Load) for source in others))
    assert not {name for name in unread if name.isupper()}, "parameters that nothing reads"


def test_short_enough_to_read(notebook):
    lines = [line for cell in code(notebook) for line in cell.source.splitlines() if line.strip()]
    assert len(lines) <= 110
    assert all(len(line) <= 100 for line in lines)


def test_no_star_imports_and_nothing_of_the_runner(notebook):
    text = "\n".join(cell.source for cell in code(notebook))
    assert "import *" not in text and "rosetta" not in text and "papermill" not in text
