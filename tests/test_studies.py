"""Studies can still be started, and their page names them."""

import importlib

import pytest

from tests.standin import ROOT

FOLDER = ROOT / "studies"
STUDIES = {file.stem: file.name for file in FOLDER.glob("*.py")}
STUDIES |= {file.parent.name: f"{file.parent.name}/" for file in FOLDER.glob("*/__main__.py")}


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_study_can_be_started(name):
    """Its modules and the names that it takes from the runner are there; it says its question and how to run it."""
    study = importlib.import_module(f"studies.{name}" + ("" if STUDIES[name].endswith(".py") else ".__main__"))
    assert callable(study.main) and f"uv run python -m studies.{name}" in study.__doc__
    assert "?" in study.__doc__.partition("\n\n")[0]


def test_page_names_every_study():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in STUDIES.values() if f"]({name})" not in page] == []
    assert (FOLDER / "lessons.toml").is_file()
