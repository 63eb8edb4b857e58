"""A notebook that runs outside a checkout: before all others it has one cell that fetches what the notebook imports."""

from pathlib import Path

import nbformat

from rosetta.catalog import Row
from rosetta.paths import ROOT
from rosetta.run import environments

FIRST_CELL = Path(__file__).resolve().parent / "templates" / "first_cell.txt"
HOSTED = (3, 11)  # the Python from which on hosted notebooks such as Colab run an environment's pins


def hosted(row: Row) -> bool:
    """Whether a row's pins install into the Python of a hosted notebook: those of retired frameworks want an old one."""
    return _python(row) >= HOSTED


def text(row: Row, repository: str | None, commit: str | None) -> str:
    """The copy as a file; without a repository to fetch from it is the notebook as it is, for a checkout."""
    if repository is None:
        return row.notebook.read_text(encoding="utf-8")
    notebook = nbformat.read(row.notebook, as_version=4)
    cell = nbformat.v4.new_code_cell(_first_cell(row, repository, commit), id="fetch")
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):  # whose cells have no ids
        del cell["id"]
    notebook.cells.insert(0, cell)
    return nbformat.writes(notebook) + "\n"


def _first_cell(row: Row, repository: str, commit: str | None) -> str:
    environment = environments.load(row.environment)
    serving = [name for name, build in environment.recipe.builds.items() if build.codes(row.imports)]
    values = {
        "REPOSITORY": repository,
        "COMMIT": commit or "HEAD",
        "FOLDER": row.notebook.parent.relative_to(ROOT).as_posix(),
        "PINS": f"environments/{row.environment}/requirements.in",
        # The newest pins ask for a driver that a hosted machine may not have
        "PINS_ON_GPU": f"environments/{row.environment}/{serving[-1] if serving else 'requirements'}.in",
        "PYTHON": _python(row),
        "EXACTLY": not hosted(row),
    }
    given = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    return FIRST_CELL.read_text(encoding="utf-8").replace("# given\n", f"{given}\n").strip()


def _python(row: Row) -> tuple[int, ...]:
    return tuple(map(int, environments.load(row.environment).recipe.python.split(".")[:2]))
