"""Studies can still be started, and their page names them."""

import importlib

import pytest

from tests.standin import ROOT

STUDIES = sorted((ROOT / "studies").glob("*.py"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_study_can_be_started(file):
    """Its modules and the names that it takes from the runner are there; it says its question and how to run it."""
    study = importlib.import_module(f"studies.{file.stem}")
    assert callable(study.main) and f"uv run python -m studies.{file.stem}" in study.__doc__
    assert "?" in study.__doc__.partition("\n\n")[0]


def test_page_names_every_study():
    page = (ROOT / "studies" / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in STUDIES if f"]({file.name})" not in page] == []
    assert (ROOT / "studies" / "lessons.toml").is_file()
