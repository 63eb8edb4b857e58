"""The notebook that a framework's page offers runs from an empty folder: its first cell fetches the rest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rosetta.paths import RESULTS, ROOT
from rosetta.site import build, standalone
from tests.site.browser import Reader
from tests.test_report import CATALOG, TASK

ROW = next(row for row in CATALOG.rows(TASK) if row.name == "pytorch")  # of this test's own Python
OLD = next(row for row in CATALOG.rows(TASK) if row.variant is None and not standalone.hosted(row))
PIP = """import sys; open(sys.argv[0] + ".asked", "w").write(" ".join(sys.argv[1:]))"""


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Path:
    """A folder with nothing in it, and a pip that only notes what it is asked for."""
    (tmp_path / "modules" / "pip").mkdir(parents=True)
    (tmp_path / "modules" / "pip" / "__main__.py").write_text(PIP)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    return tmp_path / "empty"


def cells(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def execute(code: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_download_runs_from_an_empty_folder(browser, empty, tmp_path):
    build.write(tmp_path / "site", tmp_path / "results", str(ROOT))
    reader = Reader(browser, tmp_path / "site")
    page = reader.open(f"frameworks/{TASK}/pytorch.html")
    button = page.get_by_role("link", name="Download", exact=True)
    assert button.get_attribute("download") is not None and page.get_by_role("link", name="Open in Colab").count() == 0
    first, parameters, *rest = cells(
        (tmp_path / "site" / "frameworks" / TASK / button.get_attribute("href")).read_text()
    )
    assert [parameters, *rest] == cells(ROW.notebook.read_text(encoding="utf-8")), "one cell more, and no other change"
    done = execute(f"{parameters}\nprint(BATCHSIZE)", empty)
    assert "No module named 'common'" in done.stderr
    again = f"{first}\n{first}\n{parameters}\nfrom common.record import record\nprint(BATCHSIZE)"
    done = execute(again, empty)
    assert done.returncode == 0 and done.stdout.split() == [str(CATALOG.task(TASK).constants()["BATCHSIZE"])], (
        done.stderr
    )
    assert [file.name for file in empty.iterdir()] == ["rosetta-stone"]
    asked = (tmp_path / "modules" / "pip" / "__main__.py.asked").read_text()
    assert asked.startswith("install --quiet torch=") and " lightning==" in asked and "#" not in asked
    reader.context.close()


def test_python_that_the_framework_needs_is_said(empty):
    (first, *_) = cells(standalone.text(OLD, str(ROOT), None))
    done = execute(first, empty)
    assert done.returncode == 1 and done.stderr.startswith("This framework needs Python 3.")
    assert list(empty.iterdir()) == []


def test_colab_opens_the_copy_where_the_site_is_published(browser, tmp_path):
    build.write(tmp_path / "site", RESULTS.parent / "none", "https://github.com/someone/stone", "gh-pages")
    reader = Reader(browser, tmp_path / "site")
    link = reader.open(f"frameworks/{TASK}/pytorch.html").get_by_role("link", name="Open in Colab")
    copy = f"notebooks/{TASK}/pytorch.ipynb"
    assert link.get_attribute("href") == f"https://colab.research.google.com/github/someone/stone/blob/gh-pages/{copy}"
    assert "someone/stone" in cells((tmp_path / "site" / copy).read_text())[0]
    assert (
        reader.page.get_by_role("link", name="in the repository")
        .get_attribute("href")
        .endswith(f"stone/blob/main/{copy}")
    )
    page = reader.open(f"frameworks/{TASK}/{OLD.framework}.html")
    assert page.get_by_role("link", name="Open in Colab").count() == 0, "no hosted notebook has its Python"
    assert page.get_by_role("link", name="Download", exact=True).count() == 1
    reader.context.close()
