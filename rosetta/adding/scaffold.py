"""What ``run_all.py new`` does: a framework in its three places, as copies to be rewritten."""

import json
import keyword
import re
from pathlib import Path

from rosetta import catalog, files
from rosetta.catalog import Catalog, Frameworks, Row
from rosetta.errors import RosettaError
from rosetta.paths import CATALOG, ENVIRONMENTS, NOTEBOOKS, from_root
from rosetta.run import environments

HOMEPAGE, RELEASED = "https://example.org", 0  # to be rewritten: ``check`` refuses them
ENTRY = """
[frameworks.{name}]
title = "{name}"
environment = "{environment}"
imports = ["{name}"]
released = {released}                                    # the year of its first release
homepage = "{homepage}"                # its documentation
"""
PACKAGES = """\
# {name}. run_all.py env {environment} --lock writes the versions.
{name}
numpy
ipykernel
"""
TITLE = re.compile(r"^# [^:\n]*", re.MULTILINE)


def new(name: str, task: str | None, like: str | None, environment: str | None) -> int:
    """Write notebook, environment and catalog entry, and tell what is left to do. Nothing is overwritten.

    like: the row whose notebook is copied. environment: a folder that is there is shared. Raises RosettaError before
    anything is written.
    """
    known, environment = catalog.load(), environment or name
    model = _model(known, task, like)
    notebook, folder = NOTEBOOKS / model.task / f"{name}.ipynb", ENVIRONMENTS / environment
    _check_names(known, name, environment, notebook)
    entry = ENTRY.format(name=name, environment=environment, released=RELEASED, homepage=HOMEPAGE)
    text = f"{files.text(CATALOG).rstrip()}\n{entry}"
    files.parse(Frameworks, text, CATALOG.name)
    shared = folder.exists()
    if not shared:
        _write_environment(folder, name, environments.load(model.environment).recipe.python)
    files.write_atomically(CATALOG, text)  # before the notebook, which must have an entry
    files.write_atomically(notebook, _copied(model.notebook, name))
    print(f"{from_root(notebook)}: a copy of {model.notebook.name}")
    print(f"{from_root(folder)}/: {'shared with the rows that it has' if shared else 'new'}")
    print(f"{CATALOG.name}: the entry [frameworks.{name}]")
    print("What is left to do:")
    for number, step in enumerate(_steps(name, environment, notebook, model), start=1):
        print(f"  {number}. {step}")
    return 0


def _model(known: Catalog, task: str | None, like: str | None) -> Row:
    """The row whose notebook is copied."""
    if like is None:
        tasks = [known.task(task).key] if task else list(known.tasks)
        if len(tasks) > 1:
            raise RosettaError(f"there are the tasks {', '.join(tasks)}: say with --task to which one to add it")
        names = known.first(tasks[0], 1)
        if not names:
            raise RosettaError(f"task {tasks[0]} has no row yet that could be copied: write its first notebook by hand")
        return known.select(names, tasks[0])[0]
    return known.select([like], task)[0]


def _check_names(known: Catalog, name: str, environment: str, notebook: Path) -> None:
    if not (name.isascii() and name.isidentifier() and name.islower()) or keyword.iskeyword(name):
        raise RosettaError(f"{name} cannot be a framework's name: use small letters, digits and _, as in my_framework")
    if name in known.frameworks:
        raise RosettaError(f"the name {name} is taken: {CATALOG.name} has [frameworks.{name}]")
    if notebook.exists():
        raise RosettaError(f"the name {name} is taken: there is {from_root(notebook)}")
    if not re.fullmatch(r"[a-z][\w-]*", environment):
        raise RosettaError(f"--environment {environment} is no name of a folder below environments/")
    folder = ENVIRONMENTS / environment
    if folder.exists() and environment not in environments.names():
        raise RosettaError(f"{from_root(folder)} is there, but it has no environment.toml: delete it, or name another")


def _write_environment(folder: Path, name: str, python: str) -> None:
    """Its packages without versions, and a lock that says so."""
    files.write_atomically(folder / "requirements.in", PACKAGES.format(name=name, environment=folder.name))
    files.write_atomically(folder / "requirements.txt", f"# Not locked yet: run_all.py env {folder.name} --lock\n")
    files.write_atomically(folder / "environment.toml", f'python = "{python}"\n')


def _copied(model: Path, name: str) -> str:
    """The text of a notebook with another title, as the file is written."""
    content = json.loads(files.text(model))
    first = content["cells"][0]
    first["source"] = TITLE.sub(f"# {name}", "".join(first["source"]), count=1).splitlines(keepends=True)
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _steps(name: str, environment: str, notebook: Path, model: Row) -> list[str]:
    return [
        f"environments/{environment}/requirements.in: name the package of {name} there, if it is not there yet.",
        f"{CATALOG.name}: in [frameworks.{name}] write title, released and homepage, and the modules that it imports.",
        f"uv run run_all.py env {environment} --lock: this resolves, installs and imports the packages.",
        f"{from_root(notebook)}: write each cell and the text above it for {name}. Keep the headings and the tags. "
        f"The concepts in a cell's metadata name lines of {model.title}: name those of {name}.",
        f"uv run run_all.py check {name}{'' if len(catalog.load().tasks) == 1 else f' --task {model.task}'}: "
        "this tells the first mistake, until there is none.",
        "uv run run_all.py report: this renews the generated pages. Then commit all of it.",
    ]
