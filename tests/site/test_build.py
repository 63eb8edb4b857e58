"""What the site is made of: its files and links, text that stays text, markers that cannot rot, notebooks to take away."""

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import nbformat
import pytest

from rosetta import records, sections
from rosetta.errors import RosettaError
from rosetta.kinds import KINDS
from rosetta.notebook import Step
from rosetta.paths import checkout
from rosetta.site import addresses, build, html
from rosetta.site import pages as site_pages
from rosetta.site.pages import Pages, TaskContent, write_framework
from tests import toys
from tests.fault_table import fault
from tests.standin import ROOT
from tests.standin import TASK as STANDIN
from tests.test_report import CATALOG, TASK
from tests.test_report import make as make_record

HOME = "https://example.org/stone"
DOCUMENTS = {f"docs/{name}.html" for name in ("some", "same-network", "lessons", "porting-weights")}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LOADED = {"width": "1 onload=document.title='taken'", "height": 20, "alt": '" onload="document.title=1'}
EVIL = "<script>parent.document.title = 'taken'</script><img src=x onerror=alert(1)>"


# ---- The site of all records, whose pages the other tests read


def test_built_in_time(built):
    assert built[1] <= 20 * len(CATALOG.tasks), "seconds of a processor; about half of it on one of 2026"


def test_the_compare_page_shows_what_a_variant_runs(site):
    """Its own cells where a program changes the notebook's."""
    rows = [row for key in CATALOG.tasks for row in CATALOG.rows(key) if row.program]
    assert len(rows) > 5
    for row in rows:
        text = (site / "code" / row.task / f"{row.name}.js").read_text()
        lines, steps = json.loads(re.sub(r"^\S+?, (.*)\);\n$", r"[\1]", text))
        plain = [unescape(re.sub(r"<[^>]*>", "", line)) for line in lines]
        shown = {role: "\n".join(plain[n] for n in step["settings"][0]["code"]) for role, step in steps.items()}
        assert shown == row.code, row.name


def test_committed_pictures_are_those_of_the_records(site):
    # The ids of clip paths are hashes of positions, whose last bits depend on the processor
    committed, drawn = (
        {file.name: re.sub(r"\bp[0-9a-f]{10}\b", "", file.read_text()) for file in (of / "pictures").glob("*.svg")}
        for of in (checkout.results, site)
    )
    assert committed == drawn, "draw them anew: python3 run_all.py report --pictures"


# ---- A small site in this process


@pytest.fixture
def with_notebooks(inside):
    """A stand-in checkout whose notebooks keep to the contract: copies of PyTorch's under other names."""

    def fill(**titles: str) -> Path:
        shutil.rmtree(inside.root / "notebooks")
        folder = inside.root / "notebooks" / STANDIN
        folder.mkdir(parents=True)
        # No task here has questions: the concepts are the task's own
        shown = sections.concepts(ROOT / "notebooks" / TASK)
        own = [f"[own.{key}]\ntitle = {json.dumps(one.title)}\nabout = 'What it is.'" for key, one in shown.items()]
        (folder / "concepts.toml").write_text("\n".join([f"order = {json.dumps([*shown])}", *own]))
        for name in titles:
            shutil.copy(ROOT / "notebooks" / TASK / "pytorch.ipynb", folder / f"{name}.ipynb")
        entries = [
            inside.entry(name).replace(f'title = "{name}"', f"title = {json.dumps(title)}")
            for name, title in titles.items()
        ]
        inside.catalog("".join(entries))
        (inside.root / "docs").mkdir()
        for document in DOCUMENTS:
            (inside.root / document).with_suffix(".md").write_text("# A page of some words\n\nSome.\n")
        return folder

    return fill


@pytest.fixture
def made(inside):
    """Writes the site of a small checkout; returns its folder."""

    def write(*options: str) -> Path:
        site = inside.root / "site"
        done = inside.call("site", "--to", str(site), "--out", str(inside.out), *options, own_python=False)
        assert done.returncode == 0, done.stderr
        return site

    return write


@pytest.fixture
def small(with_notebooks, inside, made) -> Path:
    """Two frameworks with PyTorch's notebook. The first has runs on synthetic and on real data, of another seed, of an earlier notebook."""
    folder = with_notebooks(good="good", other="other")
    runs = [("smoke", None, "of the other run"), ("quick", None, "epoch 1/1"), ("full", None, "as it was")]
    for preset, seed, text in [("quick", 1, "of another seed"), *runs]:
        started = datetime(2026, 11, 21 + (seed or 0), tzinfo=UTC)
        record = make_record("good", preset=preset, synthetic=preset == "smoke", seed=seed, started=started)
        record.notebook.executed = f"{record.stem}.ipynb"
        file = records.write(record, inside.out)
        executed = nbformat.read(folder / "good.ipynb", as_version=4)
        for cell in (cell for cell in executed.cells if cell.metadata.get("tags") == ["train"]):
            cell.outputs = [nbformat.v4.new_output("stream", text=f"{text}\n")]
            cell.source += "\n# as it was" * (preset == "full")
        nbformat.write(executed, file.with_name(record.notebook.executed))
    return made("--repository", HOME)


def test_files_and_what_each_page_says(small):
    expected = {
        ".rosetta-site",
        "index.html",
        "about.html",
        "choose.html",
        "results.html",
        "results/benchmarks.html",
        "results/speed.html",
        *DOCUMENTS,
    }
    expected |= {f"{folder}/{STANDIN}.html" for folder in addresses.OF_TASKS}
    expected |= {f"results/{STANDIN}.csv", f"results/{STANDIN}.json"}
    folders = {
        "code": "good.js other.js reference.js",
        "notebooks": "good.ipynb other.ipynb",
        "outputs": "good.js",
    }
    expected |= {f"{folder}/{STANDIN}/{name}" for folder, names in folders.items() for name in names.split()}
    expected |= {"frameworks/good.html", "frameworks/other.html"}
    expected |= {f"records/here/{STANDIN}/quick/good.seed-1.{suffix}" for suffix in ("html", "json")}
    for preset, shown in (("quick", "quick"), ("full", "full"), ("smoke-synthetic", "smoke-synthetic-data")):
        expected |= {f"records/here/{STANDIN}/{preset}/good.{suffix}" for suffix in ("html", "json")}
        expected.add(f"pictures/{STANDIN}-here-{shown}-epochs.svg")
    files = {file.relative_to(small).as_posix() for file in small.rglob("*") if file.is_file()}
    assert {file for file in files if not file.startswith("assets/")} == expected
    assert "assets/site.css" in files and "assets/compare_page.js" in files
    titles = {"index.html": "Deep Learning Rosetta Stone", "results.html": "Results"}
    titles |= {"docs/some.html": "A page of some words", "frameworks/good.html": "good"}
    titles |= {"about.html": "About"}
    of_task = {f"{name}/{STANDIN}.html": name.title() for name in ("compare", "concepts", "results", "conformance")}
    titles |= {href: f"{heading}: Stand-in" for href, heading in of_task.items()}
    texts = {href: (small / href).read_text() for href in titles}
    for href, title in titles.items():
        assert re.search(r"<title>(.*?)( · Deep.*)?</title>", texts[href])[1] == title, href
        assert f'href="{HOME}' in texts[href], href
    for href, heading in of_task.items():
        assert f'<a href="../{href}" aria-current="page">{heading}</a>' in texts[href]
    assert '<a href="results.html" aria-current="page">Results</a>' in texts["results.html"]
    assert "Conv2d" in texts[f"concepts/{STANDIN}.html"]


def test_what_the_compare_page_loads(small):
    text = (small / "compare" / f"{STANDIN}.html").read_text()
    known = json.loads(re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", text, re.DOTALL)[1])
    good, other, reference = known["rows"]
    page = f"../frameworks/good.html#{STANDIN}"
    same = dict.fromkeys(("name", "title", "program", "code"), "good")
    assert good == same | {"page": page, "injected": [], "executed": True}
    assert (other["name"], other["executed"]) == ("other", False)
    assert (reference["program"], reference["page"]) == ("reference", f"../network/{STANDIN}.html")
    assert known["concepts"]["dropout"]
    printed = (small / "outputs" / STANDIN / "good.js").read_text()
    what, key, content = re.fullmatch(r'rosetta\.(\w+)\("(\w+)", (.*)\);\n', printed).groups()
    content = json.loads(content)
    assert (what, key) == ("outputs", "good")
    assert content["steps"]["train"] == {"text": "epoch 1/1", "same": True}
    assert content["about"].startswith("here, quick")
    assert (small / "compare" / content["page"]).is_file()
    assert "keepdims" in (small / "code" / STANDIN / "reference.js").read_text(), "the functions that it imports, too"
    executed = {
        preset: (small / f"records/here/{STANDIN}/{preset}/good.html").read_text() for preset in ("quick", "full")
    }
    assert "today's has other code in train." in executed["full"] and "earlier notebook" not in executed["quick"]
    code = (small / "code" / STANDIN / "good.js").read_text()
    lines, steps = json.loads(re.sub(r'^rosetta\.program\("good", (.*)\);\n$', r"[\1]", code))
    model = steps["model"]
    assert len({*lines}) == len(lines) > max(model["settings"][0]["code"])
    written = model["settings"][0]
    assert model["note"].startswith("<") and written["concepts"] and ["relu", "", 1, 1] in written["calls"]


def test_pages_of_tasks_of_every_kind(inside, made):
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
    site = made()
    index = (site / "index.html").read_text()
    for task in toys.TOYS:
        for folder in addresses.OF_TASKS[2 if task == "toy_entries" else 0 :]:
            assert (site / folder / f"{task}.html").is_file() and f"{folder}/{task}.html" in index, (folder, task)
        assert f'<h2 id="{task}">' in (site / "frameworks" / "numpy.html").read_text()


def test_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RosettaError, match="is not empty and holds no earlier site: name another folder with --to"):
        build.write(tmp_path, tmp_path / "none", None)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_failure_leaves_the_earlier_site(tmp_path):
    with build._replaced(tmp_path / "site") as new:
        (new / "index.html").write_text("earlier")
    with pytest.raises(ZeroDivisionError), build._replaced(tmp_path / "site") as new:
        (new / "index.html").write_text(str(1 / 0))
    assert (tmp_path / "site" / "index.html").read_text() == "earlier"
    assert [file.name for file in tmp_path.iterdir()] == ["site"]


# ---- Addresses


@pytest.mark.parametrize(
    "file, page",
    [
        ("README.md", "index.html"),
        ("docs/some.md", "docs/some.html"),
        ("results/conformance/some.md", "conformance/some.html"),
        ("environments/README.md", "docs/environments.html"),
        (f"notebooks/{STANDIN}/some.ipynb", f"frameworks/some.html#{STANDIN}"),
        (f"notebooks/{STANDIN}/README.md", f"network/{STANDIN}.html"),
        (f"notebooks/{STANDIN}/task.toml", None),
        ("rosetta/cli.py", None),
    ],
)
def test_page_of_a_file(file, page):
    assert addresses.of_file(checkout.root / file) == page


def test_a_link_leads_to_the_page_of_the_site_that_its_title_names():
    text = '[code](../notebooks "on the site: compare/a.html#b+c/model") [plain](some.md "a title")'
    pages = Pages(checkout.root, checkout.root, CATALOG, [])
    first, second = re.findall("<a (.*?)>", pages.markup(text, checkout.root / "docs", "docs/other.html"))
    assert first == 'href="../compare/a.html#b+c/model"'
    assert second == 'href="some.html" title="a title"'


# ---- Text stays text


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
    cell = nbformat.v4.new_code_cell("1", metadata={"tags": ["train"]}, outputs=outputs())
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "x.ipynb")
    ((_, _, text),) = html.printed(tmp_path / "x.ipynb")
    assert text.count(EVIL) > 2, "pages escape it, as the next test sees"
    return "the script as text, on a page where nothing runs", "the executed notebook, as it was"


def test_whatever_is_in_catalog_notebook_and_record_stays_text(with_notebooks, inside, made, window, screenshot):
    folder = with_notebooks(good=f"Good {EVIL}", other="other")
    notebook = nbformat.read(folder / "good.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source += f"\n{EVIL}" if cell.cell_type == "markdown" else f"\n# {EVIL}"
    nbformat.write(notebook, folder / "good.ipynb")
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.outputs = outputs()
    for name, status in (("good", "ok"), ("other", "failed")):
        evil = {"title": EVIL, "error": EVIL, "device": EVIL, "versions": {EVIL: EVIL}}
        record = make_record(name, task=STANDIN, status=status, **evil)
        record.machine.cpu = record.machine.os = EVIL
        record.notebook.executed = f"{name}{'' if status == 'ok' else '.failed'}.ipynb"
        file = records.write(record, inside.out)
        nbformat.write(notebook, file.parent / record.notebook.executed)
    site = made()
    reader, hrefs = window(site), [file.relative_to(site).as_posix() for file in site.rglob("*.html")]
    for href in [*hrefs, f"compare/{STANDIN}.html#good+other"]:
        page = reader.open(href)
        if "#" in href:
            page.wait_for_selector("#record article:nth-child(2)")
        assert page.title() != "taken", href
        assert page.locator("main img[src=x], [onerror], [onload], svg script").count() == 0, href
        assert page.locator("main script:not([type='application/json'])").count() == 0, href
        assert page.locator("a[href^=javascript]").count() == 0, href
    page = reader.open("frameworks/good.html")
    assert "<script>" in page.locator("h1").first.inner_text()
    assert "<script>" in page.locator(".printed").first.inner_text()
    screenshot(page)


def test_what_the_steps_of_a_notebook_printed(tmp_path):
    made = nbformat.v4.new_code_cell("x", metadata={"tags": ["train"]})
    made.outputs = [
        nbformat.v4.new_output("stream", text="0 %\r100 %\n"),
        nbformat.v4.new_output("display_data", data={"text/plain": "a picture"}),
        nbformat.v4.new_output("error", ename="E", evalue="e", traceback=["\x1b[31mTraceback", "E: e"]),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=[made, nbformat.v4.new_code_cell("y")]), tmp_path / "x.ipynb")
    told = "100 %\na picture\nTraceback\nE: e"
    assert html.printed(tmp_path / "x.ipynb") == [("train", "x", told), ("", "y", "")]
    made.outputs = [nbformat.v4.new_output("stream", text="".join(f"{number}\n" for number in range(1000)))]
    nbformat.write(nbformat.v4.new_notebook(cells=[made]), tmp_path / "x.ipynb")
    ((_, _, text),) = html.printed(tmp_path / "x.ipynb")
    assert text.split("\n") == [*map(str, range(30)), "[940 more lines]", *map(str, range(970, 1000))]


def test_constants_are_linked_and_nothing_else():
    (line,) = html.lines("LR = 'LR' + x.LR  # LR <b>", {"LR"}, "page.html")
    assert line.count('href="page.html#LR"') == 2 and "&lt;b&gt;" in line and "<b>" not in line


def test_markdown_keeps_raw_html_as_text_and_relinks_files():
    text, pages = "<b>x</b> [a](a.md#p) [b](b.md) [c](https://example.org)", {checkout.root / "docs" / "a.md": "x.html"}
    made = html.markdown(text, checkout.root / "docs", lambda file, place: pages.get(file) and pages[file] + place)
    assert "&lt;b&gt;" in made and '<a href="x.html#p">a</a>' in made
    assert "<a>b</a>" in made and '<a href="https://example.org">c</a>' in made


# ---- Programs and concepts


@pytest.mark.parametrize("task", CATALOG.tasks.values(), ids=CATALOG.tasks)
def test_markers_name_lines_that_are_there(task):
    known = sections.concepts(task.folder)
    for path in sorted(task.folder.glob("*.ipynb")):
        program = sections.notebook(path, task.kind)
        sections.check(program, known)
        assert all(sections.excerpts(program, concept) for concept in known), path.name


def test_wrong_markers_are_errors(tmp_path):
    notebook = nbformat.read(checkout.notebooks / TASK / "pytorch.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("nn.MaxPool2d(2)", "nn.AvgPool2d(2)")
    nbformat.write(notebook, tmp_path / "pytorch.ipynb")
    program, listed = (
        sections.notebook(tmp_path / "pytorch.ipynb", KINDS["train"]),
        {*sections.concepts(CATALOG.task(TASK).folder)},
    )
    with pytest.raises(RosettaError, match=r"pytorch.ipynb: no line of the cell model has the text .*MaxPool2d"):
        sections.check(program, listed)
    with pytest.raises(RosettaError, match="pytorch.ipynb marks concepts that concepts.toml does not have: dropout"):
        sections.check(program, listed - {"dropout"})


def test_excerpt_is_dedented_line_by_line():
    program = sections.notebook(checkout.notebooks / TASK / "mxnet_gluon.ipynb", KINDS["train"])
    (first,) = sections.excerpts(program, "cross-entropy")
    assert first == "loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()"


@pytest.mark.parametrize("task", CATALOG.tasks.values(), ids=CATALOG.tasks)
def test_every_line_of_the_reference_belongs_to_a_step(task):
    module = checkout.common / "reference" / f"{task.key}.py"
    program = sections.reference(module, checkout.common / "params" / f"{task.key}.py", task.kind)
    shown = "\n".join(section.code for section in program.sections)
    functions = re.findall(r"^ *(def \w+)", module.read_text(), re.MULTILINE)
    assert functions and all(f"{name}(" in shown for name in functions)


def test_calls_are_told_apart_by_their_last_name_and_arguments():
    code = "x = nn.Conv2d(\n    3, kernel_size=(3,3))\nprint(len(x.Sum()))"
    assert sections.calls(code) == [("conv2d", "3, kernel_size=(3, 3)", 0, 1), ("sum", "", 2, 2)]
    assert sections.calls("%matplotlib inline") == []


# ---- The notebook that a framework's page offers runs from an empty folder: its first cell fetches the rest


ROW = next(row for row in CATALOG.rows(TASK) if row.name == "pytorch")  # of this test's own Python
OLD = next(row for row in CATALOG.rows(TASK) if row.variant is None and site_pages.python(row) < site_pages.HOSTED)
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


def test_copy_runs_from_an_empty_folder(empty, tmp_path):
    first, parameters, *rest = cells(site_pages.standalone(ROW, str(checkout.root), None))
    assert [parameters, *rest] == cells(ROW.notebook.read_text(encoding="utf-8")), "one cell more, and no other change"
    done = execute(f"{parameters}\nprint(BATCHSIZE)", empty)
    assert "No module named 'common'" in done.stderr
    again = f"{first}\n{first}\n{parameters}\nfrom common.record import record\nprint(BATCHSIZE)"
    done = execute(again, empty)
    assert done.stdout.split() == [str(CATALOG.task(TASK).constants()["BATCHSIZE"])], done.stderr
    assert [file.name for file in empty.iterdir()] == ["rosetta-stone"]
    asked = (tmp_path / "modules" / "pip" / "__main__.py.asked").read_text()
    assert asked.startswith("install --quiet torch=") and " lightning==" in asked and "#" not in asked


def test_python_that_the_framework_needs_is_said(empty):
    (first, *_) = cells(site_pages.standalone(OLD, str(checkout.root), None))
    done = execute(first, empty)
    assert done.returncode == 1 and done.stderr.startswith("This framework needs Python 3.")
    assert list(empty.iterdir()) == []


def test_page_offers_the_copy_and_colab_where_the_site_is_published(tmp_path):
    home, copy = "https://github.com/someone/stone", f"notebooks/{TASK}/pytorch.ipynb"
    content = TaskContent(CATALOG, TASK, [], tmp_path)

    def page(key: str, branch: str | None) -> str:
        write_framework(Pages(tmp_path, tmp_path, CATALOG, [content], home, branch=branch), key)
        return (tmp_path / "frameworks" / f"{key}.html").read_text()

    published = page("pytorch", "gh-pages")
    colab = "https://colab.research.google.com/github/someone/stone/blob/gh-pages/"
    for link in (f'href="../{copy}" download', f'href="{colab}{copy}"', f'href="{home}/blob/main/{copy}"'):
        assert link in published
    assert "someone/stone" in cells((tmp_path / copy).read_text())[0]
    assert "Colab" not in page("pytorch", None) and "Colab" not in page(OLD.framework, "gh-pages")


def test_a_published_site_names_its_addresses(small, inside, made):
    assert not (small / "sitemap.xml").exists() and "canonical" not in (small / "index.html").read_text()
    site = made("--address", "https://example.org/stone")
    listed = re.findall(r"<loc>(.*?)</loc>", (site / "sitemap.xml").read_text())
    pages = {file.relative_to(site).as_posix() for file in site.rglob("*.html")} - {"404.html"}
    assert set(listed) == {f"https://example.org/stone/{href}" for href in pages}
    for href in pages:
        assert f'<link rel="canonical" href="https://example.org/stone/{href}">' in (site / href).read_text(), href
    assert 'href="https://example.org/stone/"' in (site / "404.html").read_text()


def test_what_speaks_for_a_framework_is_counted(site_of_choice):
    """Lines, names and answers, by hand."""
    row = site_of_choice["PyTorch"]
    assert row["CIFAR-10 CNN: lines"] == sum(
        bool(line.strip())
        for cell in nbformat.read(checkout.notebooks / TASK / "pytorch.ipynb", as_version=4).cells
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
    )
    assert row["answers: the same or another name"] == 82 and row["answers: none"] == 0
    lasagne = site_of_choice["Lasagne (Theano)"]
    assert sum(value for name, value in lasagne.items() if name.startswith("answers")) == 82


@pytest.fixture
def site_of_choice(site) -> dict[str, dict[str, float]]:
    """By framework and heading the figures of the page."""
    text = (site / addresses.CHOICE).read_text()
    headings = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", text)[1:]
    rows = {}
    for title, cells in re.findall(r'<th scope="row">\s*<a [^>]*>(.*?)</a></th>(.*?)</tr>', text, re.DOTALL):
        values = re.findall(r'<td(?: class="figure" data-value="([^"]*)")?>', cells)
        rows[title] = {name: float(value) for name, value in zip(headings, values) if value}
    return rows


def test_lessons_of_a_framework_are_those_that_name_it():
    found = {
        title: site_pages._lessons(title)
        for title in ("Keras", "Keras 2", "TensorFlow", "Lasagne (Theano)", "MindSpore")
    }
    assert all(found.values())
    assert any("Keras 2 on CNTK" in one for one in found["Keras 2"]) and not any(
        "Keras 2 on" in one for one in found["Keras"]
    )
    assert any("MindSpore 2.10" in one for one in found["MindSpore"])
    assert any(one.startswith("*Theano*") for one in found["Lasagne (Theano)"])


# ---- Code set for the width of a column


def test_code_is_set_for_a_width_and_what_is_marked_follows():
    code = 'model = Dense(512, activation="relu")  # as wide as the text\nx = 1\nreturn model(first_argument, second)'
    as_written, narrow = sections.settings([code], [40])[0]
    assert as_written == code
    assert narrow.split("\n") == [
        "# as wide as the text",
        'model = Dense(512, activation="relu")',
        "x = 1",
        "return model(first_argument, second)",
    ]
    narrowest = sections.settings([code], [40, 30])[0][-1].split("\n")
    assert narrowest[1:4] == ["model = Dense(", '    512, activation="relu"', ")"]
    step = Step("model", "model", "", code, {"dense": ["Dense("], "return": ["return "], "none": []})
    for concept, written, set_anew in (("dense", [0], [1, 2]), ("return", [2], [5, 6]), ("none", [], [])):
        assert sections.showing(step, concept, code) == written
        assert sections.showing(step, concept, "\n".join(narrowest)) == set_anew


def test_code_that_no_formatter_reads_stays_and_no_other_file_is_formatted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other.py"
    other.write_text("x  =  1\n")
    assert sections.settings(["%matplotlib inline = = ="], [10]) == [["%matplotlib inline = = ="]]
    assert sections.settings(["x  =  1"], [10]) == [["x  =  1"]] and other.read_text() == "x  =  1\n"
