"""What ``run_all.py new`` does: a framework in its three places, as copies to be rewritten."""

import json
import keyword
import re
from pathlib import Path

from rosetta import catalog, files
from rosetta.catalog import Catalog, Frameworks, Row
from rosetta.errors import RosettaError
from rosetta.notebook import cut
from rosetta.paths import checkout, from_root
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
RECIPE = """\
python = "{python}"

[without_gpu]
{name} = "no build for a GPU has been tried yet"
"""
LIKEWISE = (
    " If it brings packages that environments/{other} has, ask for the same versions: uv stores their files once. "
    "Copy what [variables] of that environment sets for them."
)
TITLE = re.compile(r"^# [^:\n]*", re.MULTILINE)


def new(name: str, task: str | None, like: str | None, environment: str | None) -> int:
    """Write notebook, environment and catalog entry, and tell what is left to do. Nothing is overwritten.

    A framework that the catalog has gets a notebook in another task. like: the row whose notebook is copied. environment:
    a folder that is there is shared. Raises RosettaError before anything is written.
    """
    known = catalog.load()
    model = _model(known, task, like)
    notebook = checkout.notebooks / model.task / f"{name}.ipynb"
    _check_name(name, notebook)
    cut(model.notebook, known.kind(model))  # what is broken there is not copied
    copy = _copied(model.notebook, name)
    if name in known.frameworks:
        if environment:
            raise RosettaError(
                f"{checkout.catalog.name} has [frameworks.{name}], which says its environment: leave the option out"
            )
        written, steps = [], []
    else:
        written, steps = _write_places(name, environment or name, model)
    files.write_atomically(notebook, copy)  # after its entry: there is no notebook without one
    for line in (*written, f"{from_root(notebook)}: a copy of {model.notebook.name}", "What is left to do:"):
        print(line)
    row = name if len(known.tasks) == 1 else f"{model.task}/{name}"
    for number, step in enumerate([*steps, *_last_steps(row, notebook, model)], start=1):
        print(f"  {number}. {step}")
    return 0


def _model(known: Catalog, task: str | None, like: str | None) -> Row:
    """The row whose notebook is copied."""
    asked = known.select([like], task) if like else []
    tasks = [known.task(task).key] if task else list(dict.fromkeys(row.task for row in asked)) or list(known.tasks)
    if len(tasks) > 1:
        raise RosettaError(f"there are the tasks {', '.join(tasks)}: say with --task to which one to add it")
    names = known.first(tasks[0], 1)
    if not asked and not names:
        raise RosettaError(f"task {tasks[0]} has no row yet that could be copied: write its first notebook by hand")
    return (asked or known.select(names, tasks[0]))[0]


def _check_name(name: str, notebook: Path) -> None:
    if not (name.isascii() and name.isidentifier() and name.islower()) or keyword.iskeyword(name):
        raise RosettaError(f"{name} cannot be a framework's name: use small letters, digits and _, as in my_framework")
    if notebook.exists():
        raise RosettaError(f"the name {name} is taken: there is {from_root(notebook)}")


def _write_places(name: str, environment: str, model: Row) -> tuple[list[str], list[str]]:
    """The environment, where there is none, and the entry; what was written, and what is left to do there."""
    folder = checkout.environments / environment
    if not re.fullmatch(r"[a-z][\w-]*", environment):
        raise RosettaError(f"--environment {environment} is no name of a folder below environments/")
    shared = environment in environments.names()
    if folder.exists() and not shared:
        raise RosettaError(f"{from_root(folder)} is there, but it has no environment.toml: delete it, or name another")
    entry = ENTRY.format(name=name, environment=environment, released=RELEASED, homepage=HOMEPAGE)
    text = f"{files.text(checkout.catalog).rstrip()}\n{entry}"
    files.parse(Frameworks, text, checkout.catalog.name)
    if not shared:
        _write_environment(folder, name, environments.load(model.environment).recipe.python)
    files.write_atomically(checkout.catalog, text)
    return [
        f"{from_root(folder)}/: {'shared with the rows that it has' if shared else 'new'}",
        f"{checkout.catalog.name}: the entry [frameworks.{name}]",
    ], [
        f"environments/{environment}/requirements.in: name the package of {name} there, if it is not there yet."
        + ("" if shared else LIKEWISE.format(other=model.environment)),
        f"{checkout.catalog.name}: in [frameworks.{name}] write title, released and homepage, and the modules that it imports.",
        f"python3 run_all.py env {environment} --lock: this resolves, installs and imports the packages.",
    ]


def _write_environment(folder: Path, name: str, python: str) -> None:
    """Its packages without versions, and a lock that says so."""
    files.write_atomically(folder / "requirements.in", PACKAGES.format(name=name, environment=folder.name))
    files.write_atomically(folder / "requirements.txt", f"# Not locked yet: run_all.py env {folder.name} --lock\n")
    files.write_atomically(folder / "environment.toml", RECIPE.format(python=python, name=name))


def _copied(model: Path, name: str) -> str:
    """The text of a notebook with another title, as the file is written."""
    content = json.loads(files.text(model))
    first = content["cells"][0]
    first["source"] = TITLE.sub(f"# {name}", "".join(first["source"]), count=1).splitlines(keepends=True)
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _last_steps(row: str, notebook: Path, model: Row) -> list[str]:
    return [
        f"{from_root(notebook)}: rewrite each cell and the text above it. Keep the headings and the tags. The concepts in a "
        f"cell's metadata name lines of {model.title}: name your own.",
        f"python3 run_all.py check {row}: this explains the first mistake, until there is none.",
        f"python3 run_all.py verify {row} --out results: this keeps the proof.",
        "python3 run_all.py report: this renews the generated pages. Then commit all of it.",
    ]
