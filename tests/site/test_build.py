"""What the site is made of: text stays text, markers cannot rot, and it is built in time."""

import base64
import json
import re
import shutil
import time
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from rosetta.errors import RosettaError
from rosetta.kinds import KINDS
from rosetta.paths import COMMON, NOTEBOOKS, RESULTS, ROOT
from rosetta.site import addresses, build, calls, concepts, executed, highlight, programs, prose
from tests import toys
from tests.fault_table import fault
from tests.site.browser import Reader
from tests.standin import TASK as STANDIN
from tests.test_report import CATALOG, TASK
from tests.test_report import make as make_record

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LOADED = {"width": "1 onload=document.title='taken'", "height": 20, "alt": '" onload="document.title=1'}
EVIL = "<script>parent.document.title = 'taken'</script><img src=x onerror=alert(1)>"


@pytest.fixture
def checkout(standin):
    """A stand-in checkout whose notebooks keep to the contract: copies of PyTorch's under other names."""
    shutil.copytree(ROOT / "docs", standin.root / "docs")

    def fill(names: list[str], **keys: str) -> Path:
        shutil.rmtree(standin.root / "notebooks")
        folder = standin.root / "notebooks" / STANDIN
        folder.mkdir(parents=True)
        shutil.copy(NOTEBOOKS / TASK / "concepts.toml", folder)
        for name in names:
            shutil.copy(NOTEBOOKS / TASK / "pytorch.ipynb", folder / f"{name}.ipynb")
        entries = [
            standin.entry(name).replace(f'title = "{name}"', f"title = {json.dumps(keys.get(name, name))}")
            for name in names
        ]
        standin.catalog("".join(entries))
        return standin.root

    return fill


def test_built_in_time(built):
    assert built[1] <= 10 * len(CATALOG.tasks), "seconds"


def test_committed_pictures_are_those_of_the_records(site):
    # The ids of clip paths are hashes of positions, whose last bits depend on the processor
    committed, drawn = (
        {file.name: re.sub(r"\bp[0-9a-f]{10}\b", "", file.read_text()) for file in (of / "pictures").glob("*.svg")}
        for of in (RESULTS, site)
    )
    assert committed == drawn, "draw them anew: python3 run_all.py report --pictures"


def test_hundred_frameworks(checkout, standin, browser):
    root = checkout([f"framework{number}" for number in range(100)])
    started = time.perf_counter()
    done = standin.call("site", "--to", str(root / "site"), "--out", str(standin.out), own_python=False)
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - started <= 60
    reader = Reader(browser, root / "site")
    page = reader.open(f"compare/{STANDIN}.html#framework7+framework99")
    page.wait_for_selector("#record article:nth-child(2)")
    assert {file.name for file in reader.sizes if file.parent.name == STANDIN} == {
        "framework7.js",
        "framework99.js",
    }
    assert sum(reader.sizes.values()) <= 400_000
    assert not reader.troubles


def outputs() -> list[nbformat.NotebookNode]:
    """Of every kind, each with a script or what starts one."""
    link = f"{EVIL}<a href='javascript:alert(1)'>link</a><img src='https://example.org/x.png'>"
    shown = [
        {"text/html": link, "text/plain": EVIL},
        {"application/javascript": "document.title = 'taken'"},
        {"image/svg+xml": f"<svg xmlns='http://www.w3.org/2000/svg'>{EVIL}</svg>"},
        {"text/markdown": f"{EVIL} [link](javascript:alert(1))"},
        {"text/latex": f"$x$ {EVIL}"},
        {"image/png": PIXEL},
    ]
    return [
        nbformat.v4.new_output("stream", text=EVIL),
        *(nbformat.v4.new_output("display_data", data=data, metadata={"image/png": LOADED}) for data in shown),
        nbformat.v4.new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL]),
    ]


@fault("a script in an output", "`<script>`, `onerror`, `javascript:` in outputs, and an `onload` in their metadata")
def test_script_in_an_output_is_text(tmp_path):
    cell = nbformat.v4.new_code_cell("1", outputs=outputs())
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "x.ipynb")
    html = executed.body(tmp_path / "x.ipynb", lambda text: prose.markup(text, tmp_path, lambda file, _: file.name))
    begun = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: begun.append((tag, dict(attributes)))
    parser.feed(html)
    assert {"img", "a"} <= {tag for tag, _ in begun} and not {"script", "iframe", "object"} & {tag for tag, _ in begun}
    assert not [name for _, attributes in begun for name in attributes if name.startswith("on")]
    assert not [one for _, one in begun if one.get("href", "").startswith("javascript")]
    assert html.count("&lt;script&gt;") > 3
    return "the script as text, on a page where nothing runs", "the executed notebook, as it was"


def test_whatever_is_in_catalog_notebook_and_record_stays_text(checkout, standin, browser, screenshot):
    root = checkout(["good", "other"], good=f"Good {EVIL}")
    notebook = nbformat.read(root / "notebooks" / STANDIN / "good.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source += f"\n{EVIL}" if cell.cell_type == "markdown" else f"\n# {EVIL}"
    nbformat.write(notebook, root / "notebooks" / STANDIN / "good.ipynb")
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.outputs = outputs()
    for name, status in (("good", "ok"), ("other", "failed")):
        record = make_record(
            name, task=STANDIN, status=status, title=EVIL, error=EVIL, device=EVIL, versions={EVIL: EVIL}
        )
        record.machine.cpu = record.machine.os = EVIL
        record.notebook.executed = f"{name}{'' if status == 'ok' else '.failed'}.ipynb"
        file = build.records.write(record, standin.out)
        nbformat.write(notebook, file.parent / record.notebook.executed)
    done = standin.call("site", "--to", str(root / "site"), "--out", str(standin.out), own_python=False)
    assert done.returncode == 0, done.stderr
    reader = Reader(browser, root / "site")
    hrefs = [file.relative_to(root / "site").as_posix() for file in (root / "site").rglob("*.html")]
    for href in [*hrefs, f"compare/{STANDIN}.html#good+other"]:
        page = reader.open(href)
        if "#" in href:
            page.wait_for_selector("#record article:nth-child(2)")
        assert (
            page.title() != "taken" and page.locator("main img[src=x], [onerror], [onload], svg script").count() == 0
        ), href
        assert page.locator("main script:not([type='application/json'])").count() == 0, href
        assert page.locator("a[href^=javascript]").count() == 0, href
    page = reader.open(f"frameworks/{STANDIN}/good.html")
    assert "<script>" in page.locator("h1").first.inner_text()
    page = reader.open(next(href for href in hrefs if href.endswith("/good.html") and href.startswith("records")))
    assert "<script>" in page.locator(".executed").inner_text()
    screenshot(page)
    assert not reader.troubles


@pytest.mark.parametrize("task", CATALOG.tasks.values(), ids=CATALOG.tasks)
def test_markers_name_lines_that_are_there(task):
    known = concepts.read(task.folder / "concepts.toml")
    for path in sorted(task.folder.glob("*.ipynb")):
        program = programs.notebook(path, task.kind)
        concepts.check(program, known)
        assert all(concepts.excerpts(program, concept) for concept in known), path.name


def test_marker_without_its_line_is_an_error(tmp_path):
    notebook = nbformat.read(NOTEBOOKS / TASK / "pytorch.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("nn.MaxPool2d(2)", "nn.AvgPool2d(2)")
    nbformat.write(notebook, tmp_path / "pytorch.ipynb")
    with pytest.raises(RosettaError, match=r"pytorch.ipynb: no line of the cell model has the text .*MaxPool2d"):
        concepts.excerpts(programs.notebook(tmp_path / "pytorch.ipynb", KINDS["train"]), "pooling")


def test_excerpt_is_dedented_line_by_line():
    program = programs.notebook(NOTEBOOKS / TASK / "mxnet_gluon.ipynb", KINDS["train"])
    (first,) = concepts.excerpts(program, "loss")
    assert (first.role, first.code) == ("optimizer", "loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()")


@pytest.mark.parametrize("task", CATALOG.tasks.values(), ids=CATALOG.tasks)
def test_every_line_of_the_reference_belongs_to_a_step(task):
    module = COMMON / "reference" / f"{task.key}.py"
    program = programs.reference(module, COMMON / "params" / f"{task.key}.py", task.kind)
    shown = "\n".join(section.code for section in program.sections)
    functions = re.findall(r"^def \w+", module.read_text(), re.MULTILINE)
    assert functions and all(f"{name}(" in shown for name in functions)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_notebooks_of_every_kind_are_cut_by_its_roles(kind, tmp_path):
    """A role of many cells has all of them, each with its heading."""
    roles = [role.name for role in kind.roles for _ in range(3 if role.many else 1)]
    cells = [nbformat.v4.new_markdown_cell("# Title\n\nintro")]
    for number, role in enumerate(roles):
        cells.append(nbformat.v4.new_markdown_cell(f"## Heading {number}\n\nnote {number}"))
        cells.append(nbformat.v4.new_code_cell(f"x = {number}", metadata={"tags": [role]}))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "x.ipynb")
    program = programs.notebook(tmp_path / "x.ipynb", kind)
    assert [section.role for section in program.sections] == roles and program.intro == "intro"
    assert [section.code for section in program.sections] == [f"x = {number}" for number in range(len(roles))]
    assert kind.core in kind.names
    many = {role.name for role in kind.roles if role.many}
    assert all(("Heading" in section.note) == (section.role in many) for section in program.sections)


def test_pages_of_tasks_of_every_kind(inside):
    """A toy of each kind: a page of each sort, and a framework's pages lead to each other. One has its notebook and no more."""
    shutil.copytree(ROOT / "docs", inside.root / "docs")
    toys.write(inside.root)
    shutil.rmtree(inside.root / "notebooks" / STANDIN)  # its notebooks have no text
    (inside.root / "catalog.toml").write_text("schema = 2\n" + toys.FRAMEWORK)
    bare = inside.root / "notebooks" / toys.TOYS[-1]
    notebook = nbformat.read(bare / "numpy.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("concepts", None)
    nbformat.write(notebook, bare / "numpy.ipynb")
    reference = inside.root / "common" / "reference" / f"{bare.name}.py"
    for file in (bare / "README.md", bare / "concepts.toml", reference):
        file.unlink(missing_ok=True)
    done = inside.call("site", "--to", str(inside.root / "site"), "--out", str(inside.out), own_python=False)
    assert done.returncode == 0, done.stderr
    index = (inside.root / "site" / "index.html").read_text()
    for task in toys.TOYS:
        for folder in addresses.OF_TASKS:
            assert (inside.root / "site" / folder / f"{task}.html").is_file() and f"{folder}/{task}.html" in index
        page = (inside.root / "site" / "frameworks" / task / "numpy.html").read_text()
        assert [other for other in toys.TOYS if f"../{other}/numpy.html" in page] == [
            other for other in toys.TOYS if other != task
        ]


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


def test_what_the_steps_of_a_notebook_printed(tmp_path):
    made = nbformat.v4.new_code_cell("x", metadata={"tags": ["train"]})
    made.outputs = [
        nbformat.v4.new_output("stream", text="0 %\r100 %\n"),
        nbformat.v4.new_output("display_data", data={"text/plain": "a picture"}),
        nbformat.v4.new_output("error", ename="E", evalue="e", traceback=["\x1b[31mTraceback", "E: e"]),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=[made, nbformat.v4.new_code_cell("y")]), tmp_path / "x.ipynb")
    printed = executed.Printed("x", "100 %\na picture\nTraceback\nE: e")
    assert executed.printed(tmp_path / "x.ipynb", ["train"]) == {"train": [printed]}


def test_executed_notebook_fetches_nothing_and_its_links_are_relinked(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("![x](https://example.org/a.png) [y](https://example.org) [z](a.md)")]
    )
    nbformat.write(notebook, tmp_path / "x.ipynb")
    html = executed.body(
        tmp_path / "x.ipynb", lambda text: prose.markup(text, tmp_path, lambda file, _: f"../{file.stem}.html")
    )
    assert "example.org/a.png" not in html and 'href="https://example.org"' in html and 'href="../a.html"' in html


def test_svg_of_a_notebook_is_its_shapes_and_words(tmp_path, browser):
    """It is a picture, in which no script runs anyway; it looks as it did."""
    drawing = next((RESULTS / "pictures").glob("*.svg")).read_text()
    evil = "<script>alert(1)</script><a xlink:href='javascript:alert(1)'><text onclick='alert(1)'>a&#160;b</text></a>"
    svg = drawing.replace("<defs>", f"{evil}<defs>", 1).replace("<svg ", "<svg onload='alert(1)' ", 1)
    cell = nbformat.v4.new_code_cell("1")
    cell.outputs = [nbformat.v4.new_output("display_data", data={"image/svg+xml": svg})]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "x.ipynb")
    html = executed.body(tmp_path / "x.ipynb", lambda text: text)
    clean = base64.b64decode(re.search(r"svg\+xml;base64,([^\"]+)", html)[1]).decode()
    assert not re.search(r"script|\son\w+=", clean) and "a&#160;b" in clean
    assert clean.count("<path") == drawing.count("<path") and clean.count("<use") == drawing.count("<use")
    page = browser.new_page()
    page.set_content(html)
    assert page.evaluate("document.images[0].decode().then(() => document.images[0].naturalWidth)") > 100
    page.close()


@pytest.mark.parametrize("address", ["data:text/html,x", "JaVaScript:alert(1)", "vbscript:x", " javascript:alert(1)"])
def test_link_of_an_output_leads_to_a_page_or_nowhere(tmp_path, address):
    cell = nbformat.v4.new_code_cell("1")
    text = f"</div></div><a href='{address}' id='main' onclick='x()'>link</a><table><tr><td style='text-align:right'>1"
    cell.outputs = [nbformat.v4.new_output("display_data", data={"text/html": text})]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "x.ipynb")
    html = executed.body(tmp_path / "x.ipynb", lambda text: text)
    assert '<a rel="noopener">link</a>' in html and '<td style="text-align:right">1</td>' in html


def test_sizes_of_an_output_are_numbers():
    html = executed._clean("<img width='7' height='9em'><img width='calc(1px)' height='8'>")
    assert html == '<img width="7"><img height="8">'


def test_calls_are_told_apart_by_their_last_name_and_arguments():
    code = "x = nn.Conv2d(\n    3, kernel_size=(3,3))\nprint(len(x.Sum()))"
    assert calls.calls(code) == [("conv2d", "3, kernel_size=(3, 3)", 0, 1), ("sum", "", 2, 2)]
    assert calls.calls("%matplotlib inline") == []


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
