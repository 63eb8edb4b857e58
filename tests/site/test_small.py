"""The site of a small checkout with two records, in this process: its pages, and that every link leads to one."""

import json
import re
import shutil
from types import SimpleNamespace
from urllib.parse import unquote

import nbformat
import pytest

from rosetta import catalog, records
from rosetta.paths import NOTEBOOKS, ROOT
from rosetta.site import addresses
from rosetta.site.pages import Pages
from tests.standin import TASK
from tests.test_report import make as make_record

HOME = "https://example.org/stone"
DOCUMENTS = {f"docs/{name}.html" for name in ("some", "same-network", "lessons", "porting-weights")}
LINK = re.compile(r'(?:href|src)="([^"#:?]+)[#?]?[^":]*"')


@pytest.fixture
def site(inside):
    """Two frameworks with PyTorch's notebook; the first has been run, once on synthetic data."""
    (inside.root / "docs").mkdir()
    (inside.root / "docs" / "some.md").write_text("# A page of some words\n\nSome.\n")
    for name in ("same-network", "lessons", "porting-weights"):
        (inside.root / "docs" / f"{name}.md").write_text("# A page that others link to\n")
    shutil.rmtree(inside.root / "notebooks")
    folder = inside.root / "notebooks" / TASK
    folder.mkdir(parents=True)
    shutil.copy(NOTEBOOKS / TASK / "concepts.toml", folder)
    for name in ("good", "other"):
        shutil.copy(NOTEBOOKS / TASK / "pytorch.ipynb", folder / f"{name}.ipynb")
    inside.catalog(inside.entry("good") + inside.entry("other"))
    for preset, text in (("smoke", "of the other run\n"), ("quick", "epoch 1/1\n")):
        record = make_record("good", preset=preset, synthetic=preset == "smoke")
        record.notebook.executed = "good.ipynb"
        file = records.write(record, inside.out)
        executed = nbformat.read(folder / "good.ipynb", as_version=4)
        for cell in (cell for cell in executed.cells if cell.metadata.get("tags") == ["train"]):
            cell.outputs = [nbformat.v4.new_output("stream", text=text)]
        nbformat.write(executed, file.with_name("good.ipynb"))
    done = inside.call(
        "site", "--to", str(inside.root / "site"), "--out", str(inside.out), "--repository", HOME, own_python=False
    )
    assert done.returncode == 0, done.stderr
    return inside.root / "site"


def test_pages_and_files(site):
    named = (
        "code: good.js other.js reference.js",
        "compare/concepts/conformance/network: html",
        "frameworks: good.html other.html",
        "notebooks: good.ipynb other.ipynb",
        "outputs: good.js",
        "results: csv html json",
    )
    generated = {f"results/{name}.html" for name in ("benchmarks", "speed")}
    expected = {"index.html", "results.html", *generated, *DOCUMENTS}
    for folders, names in (line.split(": ") for line in named):
        for folder in folders.split("/"):
            expected |= {f"{folder}/{TASK}{'/' if '.' in name else '.'}{name}" for name in names.split()}
    for preset in ("quick", "smoke-synthetic"):
        expected |= {f"records/here/{TASK}/{preset}/good.{suffix}" for suffix in ("html", "ipynb", "json")}
    expected |= {f"pictures/{TASK}-here-{preset}-epochs.svg" for preset in ("quick", "smoke-synthetic-data")}
    expected.add(".rosetta-site")
    files = {file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file()}
    assert {file for file in files if not file.startswith("assets/")} == expected
    assert "assets/site.css" in files and "assets/compare_page.js" in files


def test_every_link_leads_to_a_page(site):
    linked = set()
    for page in site.rglob("*.html"):
        for link in LINK.findall(page.read_text()):
            target = page.parent / unquote(link)
            assert target.exists(), f"{page.name}: {link}"
            linked.add(target.resolve())
    assert linked >= set(site.rglob("*.html"))


def test_what_each_page_says(site):
    titles = {
        "index.html": "Deep Learning Rosetta Stone",
        f"compare/{TASK}.html": "Compare: Stand-in",
        f"concepts/{TASK}.html": "Concepts: Stand-in",
        f"conformance/{TASK}.html": "Conformance: Stand-in",
        "results.html": "Results",
        f"results/{TASK}.html": "Results: Stand-in",
        "docs/some.html": "A page of some words",
        f"frameworks/{TASK}/good.html": "good",
    }
    for name, title in titles.items():
        text = (site / name).read_text()
        assert re.search(r"<title>(.*?)( · Deep.*)?</title>", text)[1] == title, name
        assert f'href="{HOME}' in text, name
    for name in ("compare", "concepts", "results", "conformance"):
        text = (site / name / f"{TASK}.html").read_text()
        assert f'<a href="../{name}/{TASK}.html" aria-current="page">{name.title()}</a>' in text
    assert '<a href="results.html" aria-current="page">Results</a>' in (site / "results.html").read_text()
    assert "Conv2d" in (site / "concepts" / f"{TASK}.html").read_text()


def test_what_the_compare_page_loads(site):
    text = (site / "compare" / f"{TASK}.html").read_text()
    known = json.loads(re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", text, re.DOTALL)[1])
    good, other, reference = known["rows"]
    assert good == {
        "name": "good",
        "title": "good",
        "program": "good",
        "page": f"../frameworks/{TASK}/good.html",
        "injected": [],
        "executed": True,
    }
    assert (other["name"], other["executed"]) == ("other", False)
    assert (reference["program"], reference["page"]) == ("reference", f"../network/{TASK}.html")
    assert known["concepts"]["dropout"]
    printed = (site / "outputs" / TASK / "good.js").read_text()
    what, key, content = re.fullmatch(r'rosetta\.(\w+)\("(\w+)", (.*)\);\n', printed).groups()
    content = json.loads(content)
    assert (what, key) == ("outputs", "good")
    assert content["steps"]["train"] == [{"text": "epoch 1/1", "same": True}] and content["about"].startswith(
        "here, quick"
    )
    assert (site / "compare" / content["page"]).is_file()
    assert "keepdims" in (site / "code" / TASK / "reference.js").read_text(), "the functions that it imports, too"
    code = (site / "code" / TASK / "good.js").read_text()
    steps = json.loads(re.fullmatch(r'rosetta\.program\("good", (.*)\);\n', code)[1])
    (model,) = steps["model"]
    assert model["note"].startswith("<") and model["concepts"] and ["relu", "", 1, 1] in model["calls"]


@pytest.mark.parametrize(
    "file, page",
    [
        ("README.md", "index.html"),
        ("docs/some.md", "docs/some.html"),
        ("results/conformance/some.md", "conformance/some.html"),
        ("environments/README.md", "docs/environments.html"),
        (f"notebooks/{TASK}/some.ipynb", f"frameworks/{TASK}/some.html"),
        (f"notebooks/{TASK}/README.md", f"network/{TASK}.html"),
        (f"notebooks/{TASK}/task.toml", None),
        ("rosetta/cli.py", None),
    ],
)
def test_page_of_a_file(file, page):
    assert addresses.of_file(ROOT / file) == page


def test_a_link_leads_to_the_page_of_the_site_that_its_title_names():
    text = '[code](../notebooks "on the site: compare/a.html#b+c/model") [plain](some.md "a title")'
    pages = Pages(ROOT, None, None)
    first, second = re.findall("<a (.*?)>", pages.markup(text, ROOT / "docs", "docs/other.html"))
    assert first == 'href="../compare/a.html#b+c/model"'
    assert second == 'href="some.html" title="a title"'


def test_page_of_a_row_that_exists():
    row = SimpleNamespace(task="a", framework="b", facts=SimpleNamespace(absent=None))
    row = catalog.Row.model_construct(**vars(row))
    assert addresses.of_target(row) == "frameworks/a/b.html"
    row.facts.absent = "it never could"
    assert addresses.of_target(row) is None
