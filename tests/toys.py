"""A toy task of each kind, for stand-in checkouts: a framework "numpy" with a notebook of a few lines in each.

Their files lie in ``tests/toy_tasks`` as they do in a checkout, but for the notebooks: there ``numpy.py`` has their code, each cell
after a line ``# %% ROLE``. What a notebook must do to be proven: ``rosetta/verify/<kind>.py``.
"""

import json
import shutil
from pathlib import Path

import nbformat

from rosetta import adding

TASKS = Path(__file__).with_name("toy_tasks")
TOYS = ("toy_train", "toy_infer", "toy_speed", "toy_entries")
# A text that stands in one line of each notebook: the lines that show the concept "idea"
IDEAS = {"toy_train": "e = np.exp(", "toy_infer": "np.maximum(", "toy_speed": "np.maximum(", "toy_entries": "x.mean("}
FRAMEWORK = """
[frameworks.numpy]
title = "NumPy"
environment = "test"
imports = ["numpy"]
released = 2006
homepage = "https://numpy.org"
"""


def write(root: Path) -> None:
    """Add the four tasks, and the framework in the environment ``test``, to a stand-in checkout whose catalog is written."""
    with (root / "catalog.toml").open("a") as catalog:
        catalog.write(FRAMEWORK)
    shutil.copytree(TASKS, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("numpy.py", "__pycache__"))
    for task in TOYS:
        notebook(root, task)


def notebook(root: Path, task: str, old: str = "", new: str = "", framework: str = "numpy") -> None:
    """Write the notebook of a toy task, with ``new`` in the place of the text ``old`` of its code, which must be there."""
    folder = TASKS / "notebooks" / task
    code = (folder / "numpy.py").read_text()
    assert old in code, f"{task} has no {old}"
    made = adding.example(code.replace(old, new, 1), folder, task, task.partition("_")[2], framework)
    made = nbformat.reads(json.dumps(made), as_version=4)
    for cell in made.cells:
        if IDEAS[task] in cell.source:
            cell.metadata["concepts"] = {"idea": [IDEAS[task]]}
    nbformat.write(made, root / "notebooks" / task / f"{framework}.ipynb")
