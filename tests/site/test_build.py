"""What the site is made of: text stays text, markers cannot rot, and it is built in time."""

import json
import re
import shutil
import time
from pathlib import Path

import nbformat
import pytest

from rosetta.errors import RosettaError
from rosetta.paths import NOTEBOOKS, RESULTS, ROOT
from rosetta.site import build, concepts, executed, highlight, programs, prose
from tests.site.browser import Reader
from tests.test_report import make as make_record

EVIL = "<script>parent.document.title = 'taken'</script><img src=x onerror=alert(1)>"


@pytest.fixture
def checkout(standin):
    """A stand-in checkout whose notebooks keep to the contract: copies of PyTorch's under other names."""
    shutil.copytree(ROOT / "docs", standin.root / "docs")

    def fill(names: list[str], **keys: str) -> Path:
        shutil.rmtree(standin.root / "notebooks")
        folder = standin.root / "notebooks" / "cifar10_cnn"
        folder.mkdir(parents=True)
        shutil.copy(NOTEBOOKS / "cifar10_cnn" / "concepts.toml", folder)
        for name in names:
            shutil.copy(NOTEBOOKS / "cifar10_cnn" / "pytorch.ipynb", folder / f"{name}.ipynb")
        entries = [
            standin.entry(name).replace(f'title = "{name}"', f"title = {json.dumps(keys.get(name, name))}")
            for name in names
        ]
        standin.catalog("".join(entries))
        return standin.root

    return fill


def test_built_in_time(built):
    assert built[1] <= 20


def test_committed_pictures_are_those_of_the_records(site):
    committed = {file.name: file.read_text() for file in (RESULTS / "pictures").glob("*.svg")}
    assert committed == {file.name: file.read_text() for file in (site / "pictures").glob("*.svg")}, (
        "draw them anew: uv run --extra site run_all.py report --pictures"
    )


def test_hundred_frameworks(checkout, standin, browser):
    root = checkout([f"framework{number}" for number in range(100)])
    started = time.perf_counter()
    done = standin.call("site", "--to", str(root / "site"), "--out", str(standin.out), own_python=False)
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - started <= 60
    reader = Reader(browser, root / "site")
    page = reader.open("compare/cifar10_cnn.html#framework7+framework99")
    page.wait_for_selector("#record article:nth-child(2)")
    assert {file.name for file in reader.sizes if file.parent.name == "cifar10_cnn"} == {
        "framework7.js",
        "framework99.js",
    }
    assert sum(reader.sizes.values()) <= 400_000
    assert not reader.troubles


def test_whatever_is_in_catalog_notebook_and_record_stays_text(checkout, standin, browser, screenshot):
    root = checkout(["good", "other"], good=f"Good {EVIL}")
    notebook = nbformat.read(root / "notebooks" / "cifar10_cnn" / "good.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source += f"\n{EVIL}" if cell.cell_type == "markdown" else f"\n# {EVIL}"
    nbformat.write(notebook, root / "notebooks" / "cifar10_cnn" / "good.ipynb")
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    link = f"{EVIL}<a href='javascript:alert(1)'>link</a><img src='https://example.org/x.png'>"
    code.outputs = [
        nbformat.v4.new_output("stream", text=EVIL),
        nbformat.v4.new_output("display_data", data={"text/html": link, "text/plain": EVIL}),
        nbformat.v4.new_output("display_data", data={"application/javascript": "document.title = 'taken'"}),
        nbformat.v4.new_output(
            "display_data", data={"image/svg+xml": f"<svg xmlns='http://www.w3.org/2000/svg'>{EVIL}</svg>"}
        ),
        nbformat.v4.new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL]),
    ]
    for name, status in (("good", "ok"), ("other", "failed")):
        record = make_record(name, status=status, title=EVIL, error=EVIL, device=EVIL, versions={EVIL: EVIL})
        record.machine.cpu = record.machine.os = EVIL
        record.notebook.executed = f"{name}{'' if status == 'ok' else '.failed'}.ipynb"
        file = build.records.write(record, standin.out)
        nbformat.write(notebook, file.parent / record.notebook.executed)
    done = standin.call("site", "--to", str(root / "site"), "--out", str(standin.out), own_python=False)
    assert done.returncode == 0, done.stderr
    reader = Reader(browser, root / "site")
    hrefs = [file.relative_to(root / "site").as_posix() for file in (root / "site").rglob("*.html")]
    for href in [*hrefs, "compare/cifar10_cnn.html#good+other"]:
        page = reader.open(href)
        if "#" in href:
            page.wait_for_selector("#record article:nth-child(2)")
        assert page.title() != "taken" and page.locator("main img[src=x], [onerror], svg script").count() == 0, href
        assert page.locator("main script:not([type='application/json'])").count() == 0, href
        assert page.locator("a[href^=javascript]").count() == 0, href
    page = reader.open("frameworks/cifar10_cnn/good.html")
    assert "<script>" in page.locator("h1").first.inner_text()
    page = reader.open(next(href for href in hrefs if href.endswith("/good.html") and href.startswith("records")))
    assert "<script>" in page.locator(".executed").inner_text()
    screenshot(page)
    assert not reader.troubles


def test_markers_name_lines_that_are_there():
    for path in sorted((NOTEBOOKS / "cifar10_cnn").glob("*.ipynb")):
        program = programs.notebook(path)
        known = concepts.read(path.parent / "concepts.toml")
        assert not concepts.unknown(program, known)
        assert all(concepts.excerpts(program, concept) for concept in known), path.name


def test_marker_without_its_line_is_an_error(tmp_path):
    notebook = nbformat.read(NOTEBOOKS / "cifar10_cnn" / "pytorch.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("nn.MaxPool2d(2)", "nn.AvgPool2d(2)")
    nbformat.write(notebook, tmp_path / "pytorch.ipynb")
    with pytest.raises(RosettaError, match=r"pytorch.ipynb: no line of the cell model has the text .*MaxPool2d"):
        concepts.excerpts(programs.notebook(tmp_path / "pytorch.ipynb"), "pooling")


def test_excerpt_is_dedented_line_by_line():
    (first,) = concepts.excerpts(programs.notebook(NOTEBOOKS / "cifar10_cnn" / "mxnet_gluon.ipynb"), "loss")
    assert (first.role, first.code) == ("optimizer", "loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()")


def test_every_line_of_the_reference_belongs_to_a_step():
    module = ROOT / "common" / "reference" / "cifar10_cnn.py"
    program = programs.reference(module, ROOT / "common" / "params" / "cifar10_cnn.py")
    shown = "\n".join(section.code for section in program.sections)
    functions = re.findall(r"^def \w+", module.read_text(), re.MULTILINE)
    assert functions and all(f"{name}(" in shown for name in functions)


def test_notebook_that_breaks_the_contract_is_named(tmp_path):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]), tmp_path / "x.ipynb")
    with pytest.raises(RosettaError, match="x.ipynb has not one code cell for each of parameters"):
        programs.notebook(tmp_path / "x.ipynb")


def test_constants_are_linked_and_nothing_else():
    (line,) = highlight.lines("LR = 'LR' + x.LR  # LR <b>", {"LR"}, "page.html")
    assert line.count('href="page.html#LR"') == 2 and "&lt;b&gt;" in line and "<b>" not in line


def test_prose_keeps_raw_html_as_text_and_relinks_files():
    resolve = {ROOT / "docs" / "a.md": "x.html"}
    html = prose.markup(
        "<b>x</b> [a](a.md#p) [b](b.md) [c](https://example.org)",
        ROOT / "docs",
        lambda f, p: resolve.get(f) and resolve[f] + p,
    )
    assert "&lt;b&gt;" in html and '<a href="x.html#p">a</a>' in html
    assert "<a>b</a>" in html and '<a href="https://example.org">c</a>' in html


def test_executed_notebook_fetches_nothing_and_its_links_are_relinked(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("![x](https://example.org/a.png) [y](https://example.org) [z](a.md)")]
    )
    nbformat.write(notebook, tmp_path / "x.ipynb")
    html = executed.body(
        tmp_path / "x.ipynb", lambda text: prose.markup(text, tmp_path, lambda file, _: f"../{file.stem}.html")
    )
    assert "example.org/a.png" not in html and 'href="https://example.org"' in html and 'href="../a.html"' in html


def test_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RosettaError, match="is not empty and holds no earlier site: name another folder with --to"):
        build.write(tmp_path, RESULTS, None)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_failure_leaves_the_earlier_site(tmp_path, monkeypatch):
    build.write(tmp_path / "site", tmp_path / "results", None)
    before = (tmp_path / "site" / "index.html").stat().st_mtime_ns
    monkeypatch.setattr("rosetta.site.results.write", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build.write(tmp_path / "site", tmp_path / "results", None)
    assert (tmp_path / "site" / "index.html").stat().st_mtime_ns == before
    assert [file.name for file in tmp_path.iterdir()] == ["site"]


def test_repository_gives_links_to_it(tmp_path):
    build.write(tmp_path / "site", tmp_path / "results", "https://github.com/someone/stone")
    page = (tmp_path / "site" / "frameworks" / "cifar10_cnn" / "flax.html").read_text()
    assert "https://colab.research.google.com/github/someone/stone/blob/main/notebooks/cifar10_cnn/flax.ipynb" in page
    assert "https://github.com/someone/stone/blob/main/notebooks/cifar10_cnn/flax.ipynb" in page
