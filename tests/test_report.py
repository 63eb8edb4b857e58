"""results.md as a function of records."""

import io
import re
from contextlib import redirect_stdout
from datetime import UTC, datetime

import pytest
from markdown_it import MarkdownIt

from rosetta import catalog, cli, files, markdown, records
from rosetta.errors import RosettaError
from rosetta.identity import of_row
from rosetta.kinds import KINDS, TrainMetrics
from rosetta.measure import tables as measured_tables
from rosetta.paths import checkout
from rosetta.records import Dataset, Gpu, Machine, Notebook, Point, Record
from rosetta.report import pages, tables
from rosetta.report.results import TaskResults, current, published, read_results
from rosetta.tasks import RowFacts
from tests.fault_table import fault

CATALOG = catalog.load()
TASK = next(key for key, task in CATALOG.tasks.items() if task.kind_name == "train")
HERE = Machine(name="here", cpu="CPU", cores=2, memory=2**34, os="Linux")


def make(name="pytorch", variant=None, preset="quick", status="ok", synthetic=False, **more) -> Record:
    metrics = TrainMetrics(
        accuracy=0.25,
        train_s=12.3,
        epoch_s=[7.0, 5.3],
        first_epoch_s=7.0,
        steady_epoch_s=5.3,
        examples_per_s=943.4,
        peak_rss=2**30,
    )
    return Record(
        **{
            "task": TASK,
            "kind": "train",
            "framework": name,
            "variant": variant,
            "title": name,
            "environment": "torch",
            "preset": preset,
            "status": status,
            "started": datetime(2026, 11, 21, tzinfo=UTC),
            "notebook": Notebook(path="x.ipynb", sha256="0", executed="pytorch.ipynb"),
            "machine": HERE,
            "device": "cpu",
            "dataset": Dataset(name="DATA", synthetic=synthetic, sizes={"train": 5000, "test": 10000}),
            "versions": {"python": "3.11.7", "torch": "2.13.0"},
            "params": {"EPOCHS": 2, "BATCHSIZE": 64, "N_TRAIN": 50000, "N_TEST": 10000},
            "metrics": metrics,
        }
        | more
    )


def seeds(*values: float, name="pytorch", metric="accuracy", **more) -> list[Record]:
    """Runs that differ in the seed and in one metric."""
    made = []
    for number, value in enumerate(values):
        record = make(name, seed=number or None, **more)
        record.params = record.params | {"SEED": number}
        setattr(record.metrics, metric, value)
        made.append(record)
    return made


@pytest.fixture
def page(tmp_path):
    """Writes records, returns the overview and the task's page made from them, one after the other."""

    def write(*given: Record) -> str:
        for record in given:
            records.write(record, tmp_path)
        written = pages.write(CATALOG, tmp_path)
        assert written == [tmp_path / "results.md", *(tmp_path / f"{key}.md" for key in CATALOG.tasks)]
        return (tmp_path / "results.md").read_text() + (tmp_path / f"{TASK}.md").read_text()

    return write


def line_of(page: str, start: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(f"| [{start}]") and "/dictionary/" not in line]


@pytest.fixture(scope="module")
def reported():
    """Every page as ``report`` would write it, by its path; nothing is written."""
    made, said = {}, io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
        patch.setattr(files, "write_atomically", made.__setitem__)
        patch.setattr(records, "MOST", 0.1)  # as without the tests, which compute beside each other
        cli.report.callback(checkout.results, False)
    assert len(made) == len(said.getvalue().splitlines()), "each file that it names was made"
    return made


def test_committed_pages_are_what_report_writes(reported):
    """Byte for byte."""
    wrong = [
        file.relative_to(checkout.root).as_posix()
        for file, text in reported.items()
        if file.read_text(encoding="utf-8") != text
    ]
    assert not wrong, "make them anew: python3 run_all.py report"


def test_no_page_and_no_block_is_left_out(reported):
    written = [*checkout.root.glob("*.md"), *checkout.root.glob("docs/*.md")]
    generated = {page for page in written if markdown.blocks(page.read_text()) or page.name == "results.md"}
    generated |= {*checkout.results.glob("*.md"), *checkout.results.glob("conformance/*.md")}
    by_others = {checkout.docs / "reliability.md", checkout.results / "scaling.md"}  # tests, and studies/scaling.py
    assert generated - reported.keys() == by_others
    for page in (checkout.root / name for name in pages.BY_HAND):
        assert markdown.blocks(reported[page]) and "Not measured yet." not in reported[page]


def test_overview_and_details(page):
    text = page(make())
    overview, details = line_of(text, "PyTorch")
    assert "25.00 % | 12.3 s" in overview
    assert "torch 2.13.0, Python 3.11.7 | CPU | 25.00 % | 12.3 s | 7.0 s | 5.3 s | 943 |" in details
    files = f"here/{TASK}/quick/pytorch"
    assert f"{files}.ipynb" in details and f"[record, of an earlier notebook]({files}.json)" in details
    for row in CATALOG.rows(TASK):
        assert f"notebooks/{TASK}/{row.framework}.ipynb" in line_of(text, row.title)[0]


@pytest.mark.parametrize(
    "name", ["cuda:0", "Device(gpu, 0)", "/device:GPU:0", "CudaDevice(id=0)", "cpu", "/device:CPU:0"]
)
def test_devices_have_short_names(name):
    assert tables.device(make(device=name)) == ("CPU" if "cpu" in name.lower() else "GPU")
    assert tables.device(make(device="METAL")) == "METAL" and tables.device(make(device=None)) == ""


def test_without_records_the_overview_leads_to_the_pages_of_each_task(page):
    text = page()
    assert text.count("No finished run yet.") == len(CATALOG.tasks) + 1
    for key, task in CATALOG.tasks.items():
        section = text[text.index(f"## {task.title}") :]
        assert f"notebooks/{key}/README.md)" in section and f"[All figures]({key}.md)" in section


def test_published_figures_have_their_source(page):
    text = page()
    sources = [(task, source) for task in CATALOG.tasks.values() for source in map(published, task.published)]
    assert sources
    for task, source in sources:
        assert source.url in text and source.conditions in text
        for title, figures in source.columns.items():
            assert f"| {title} ({source.year}) |" in text
            for row in (row for row in CATALOG.shown(task.key) if row.name in figures):
                titled = f"{row.title} ({row.facts.flavour})" if row.facts.flavour else row.title
                shown = task.kind.clocked.unit.one(figures[row.name])
                assert any(shown in line for line in line_of(text, titled))


def test_columns_of_their_own_in_their_order(page):
    other = HERE.model_copy(update={"name": "there"})
    changed = make(changed={"BATCHSIZE": 32, "threads": 1})
    text = page(make(), make(preset="full"), changed, make(preset="sweep"), make(machine=other), make(synthetic=True))
    titles = ["here, full", "here, quick", "there, quick", "here, quick, BATCHSIZE=32, threads=1"]
    assert re.findall("^## (t?here,.*)$", text, re.MULTILINE) == [*titles, "here, quick, SYNTHETIC data"]


def of(*rows, kind: str = "train", given=()) -> TaskResults:
    """Results of a made-up task of a kind with these rows of the first task's, changed."""
    task = CATALOG.task(TASK).model_copy(update={"kind_name": kind, "published": []})
    return TaskResults(task, list(rows), list(given))


def test_rows_that_cannot_exist_and_flavours_are_shown():
    first, second, *_ = CATALOG.rows(TASK)
    absent = first.model_copy(update={"facts": RowFacts(absent="it has no such layer")})
    bound = second.model_copy(update={"facts": RowFacts(flavour="reset_after")})
    results = of(absent, bound)
    table = tables.choice(results, badges={})
    assert [[cell.text for cell in row] for row in table.rows] == [
        [first.title, "absent"],
        [f"{second.title} (reset_after)", "not verified"],
    ]
    assert tables.notes(results) == [f"{first.title}: it has no such layer."]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_table_of_each_kind_has_its_quantities(kind):
    row = CATALOG.rows(TASK)[0]
    numbers = [name for name, field in kind.metrics.model_fields.items() if "list" not in str(field.annotation)]
    metrics = kind.metrics(**dict.fromkeys(numbers, 1))
    record = make(kind=kind.name, metrics=metrics, name=row.framework)
    results = of(row, kind=kind.name, given=[record])
    (column,) = results.columns
    (cells,) = tables.overview(results).rows
    assert [cell.text for cell in cells[1:]] == [quantity.unit.one(1) for quantity in kind.main]
    details = tables.details(results, column)
    shown = [quantity.heading for quantity in kind.quantities if quantity.has_column([record])]
    assert [heading.text for heading in details.headings] == ["framework", "versions", "device", *shown, "record"]
    assert pages.meaning(results.task).startswith(kind.figures.strip())


def test_reasons_of_unfinished_rows_are_text_not_markup(page):
    failed = make(status="failed", error="<script>alert(1)</script> | [x](y)")
    text = page(failed, make("chainer", status="skipped", error="needs g++"))
    assert "<script>" not in text and "&lt;script&gt;" in text and "&#124;" in text
    assert f"| [skipped](here/{TASK}/quick/chainer.failed.json) | needs g++ |" in text


@pytest.mark.parametrize(
    "change",
    [
        {"notebook": Notebook(path="x.ipynb", sha256="1")},
        {"versions": {"python": "3.11.7", "torch": "2.14.0"}},
        {"params": {"EPOCHS": 2, "BATCHSIZE": 32, "N_TRAIN": 50000, "N_TEST": 10000, "SEED": 0}},
        {"threads": 1},
    ],
)
def test_only_the_newest_experiment_counts(page, change):
    older = seeds(0.1, 0.2, 0.3)
    newest = older[0].model_copy(update={"started": datetime(2026, 11, 22, tzinfo=UTC)} | change)
    assert current([*older[1:], newest]) == [newest]
    assert "10.00 % | 12.3 s" in line_of(page(*older[1:], newest), "PyTorch")[0]


@pytest.mark.parametrize(
    "n_train, accuracy, said",
    [
        (640, 0.08, "too short"),
        (5000, 0.2, "learns"),
        (5000, 0.1091, "learns"),
        (5000, 0.1089, "**guesses**"),  # 0.1 and three standard deviations of 10,000 guesses are 0.109
        (25000, 0.45, "45.00 %"),
    ],
)
def test_accuracy_is_shown_where_the_whole_training_set_was_seen(page, n_train, accuracy, said):
    (run,) = seeds(accuracy)
    run.params["N_TRAIN"] = n_train
    for line in line_of(page(run), "PyTorch"):
        assert f"| {said} |" in line


def test_headline_is_of_the_first_column_with_and_without_a_gpu(page):
    gpu = HERE.model_copy(update={"name": "box", "gpus": [Gpu(name="G", memory=2**33, driver="1", cuda="13")]})
    runs = [make(name, preset=preset) for name in ("pytorch", "flax") for preset in ("full", "epoch")]
    for number, run in enumerate(runs):
        run.metrics.accuracy = 0.4 + number / 100
    less = HERE.model_copy(update={"name": "a"})  # ahead by its name, but with fewer rows
    runs.append(make(preset="epoch", machine=less))
    text = page(*runs, make(preset="full", machine=gpu), make("flax", preset="full", machine=gpu))
    assert "\n\n2 implementations, one network: 25.00 to 25.00 % accuracy (box, full).\n\n" in text
    assert "\n\n2 implementations, one network: 41.00 to 43.00 % accuracy (here, epoch).\n\n" in text
    headings = next(line for line in text.splitlines() if line.startswith("| framework |"))
    columns = re.findall(r"(\w+, \w+): accuracy", headings)
    assert columns == ["box, full", "here, epoch", "a, epoch", "here, full"], "on a CPU an epoch comes first"


def test_page_says_where_a_copy_is_of_an_earlier_notebook(page):
    today = Notebook(path="x.ipynb", sha256=of_row(CATALOG.select(["flax"], TASK)[0]), executed="flax.ipynb")
    text = page(make(), make("flax", notebook=today)).partition("## here, quick")[2]
    assert ", of an earlier notebook](" in line_of(text, "PyTorch")[0] and "| [record](" in line_of(text, "Flax")[0]


def test_time_to_the_target_where_epochs_were_tested(page):
    assert "| to target |" not in page(make())
    reached = seeds(60.0, 70.0, None, metric="target_s", preset="full")
    for record in reached:
        record.metrics.epoch_accuracy = [0.5, 0.8]
        record.params |= {"TARGET_ACCURACY": 0.75, "TEST_EACH_EPOCH": True}
    never = make("chainer", preset="full", params=reached[0].params)
    never.metrics.epoch_accuracy = [0.1, 0.2]
    text = page(*reached, never, make("flax", preset="full"))
    full = text[text.index("## here, full") : text.index("## here, quick")]
    assert "| train | to target | first epoch |" in full and "tested on 10,000 after each epoch, target 75 %" in full
    assert "| 65.0 s (60.0 - 70.0, n = 2 of 3) |" in line_of(full, "PyTorch")[0]
    assert "| not reached |" in line_of(full, "Chainer")[0]
    assert "| 12.3 s |  | 7.0 s |" in line_of(full, "Flax")[0]


def test_accuracy_across_seeds_and_frameworks(page):
    section = "### Accuracy across seeds and frameworks"
    assert section not in page(make(), make("flax"))
    others = *seeds(0.58, name="flax"), *seeds(0.7, 0.3, name="chainer"), *seeds(0.9, name="mlx")
    text = page(*seeds(0.5, 0.6, 0.55), *others)
    table = text[text.index(section) :]
    assert "| PyTorch | 3 | 55.00 % | 50.00 % | 60.00 % | inside |" in table
    assert "| Flax | 1 | 58.00 % | 58.00 % | 58.00 % | inside |" in table
    assert "| MLX | 1 | 90.00 % | 90.00 % | 90.00 % | **outside: above all of them** |" in table
    assert "no other row" in page(*seeds(0.5, 0.6, machine=HERE.model_copy(update={"name": "alone"})))


def test_blocks_name_what_they_show(monkeypatch, tmp_path):
    every = read_results(CATALOG, checkout.results)
    column = next(column for task in every for column in task.columns if len(column.runs) > 2)
    names = list(column.runs)[:2]
    text = f"[//]: # (main)\n[//]: # (end)\n[//]: # (rows {column.folder} {' '.join(names)})\n[//]: # (end)\n"
    (tmp_path / "page.md").write_text(text)
    monkeypatch.setattr(pages, "BY_HAND", (tmp_path / "page.md",))
    ((_, made),) = pages.make_blocks(CATALOG).items()
    main, named = made.split("[//]: # (end)\n")[:2]
    assert main.count("\n| [") == 25 and named.count("\n| [") == 2
    assert " ".join(named.split()).count(column.about()) == 1  # wherever its lines are broken
    (tmp_path / "page.md").write_text("[//]: # (slowest)\n[//]: # (end)\n")
    with pytest.raises(RosettaError, match="there is no table 'slowest'"):
        pages.make_blocks(CATALOG)


EVIL = "<b>|a\n# b\r[x](javascript:1)`*_c_*`\x1b[31m$d$"
WORDS = "<b>|a # b [x](javascript:1)`*_c_*`$d$"


@fault("markup in a machine's name", "pipes, line ends, HTML and a link of `javascript:` in each text of a record")
def test_text_of_a_record_is_no_markup(tmp_path):
    """A machine, its GPU, data, versions, an error, what was changed: read as Markdown, the pages show their words."""
    gpu = Gpu(name=EVIL, memory=2**30, driver=EVIL, cuda="13", capability="9.0")
    machine = HERE.model_copy(update={"cpu": EVIL, "os": EVIL, "gpus": [gpu]})
    evil = {
        "machine": machine,
        "versions": {EVIL: EVIL},
        "changed": {"WHAT": EVIL},
        "device": EVIL,
        "cuda": {"x": EVIL},
    }
    evil["dataset"] = Dataset(name=EVIL)
    records.write(make("pytorch", **evil), tmp_path)
    records.write(make("flax", status="failed", error=EVIL, **evil), tmp_path)
    at = {"BATCHSIZE": 64, "steps": 1, EVIL: EVIL}
    points = [Point(at=at | {"program": program}, values=[0.5]) for program in ("notebook", "fastest")]
    measured = make("pytorch", preset="fastest", points=points, title=EVIL, **evil)
    speed = measured_tables.text(CATALOG, [measured], tmp_path)
    for name, text in {**pages.make(CATALOG, tmp_path), "speed": speed}.items():
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        shown = [token.children for token in tokens if token.type == "inline"]
        for children in shown:
            words = "".join(" " if child.type == "softbreak" else child.content for child in children)
            assert words.count("javascript") == words.count(WORDS) + words.count(WORDS.replace("`", "'")), name
        assert not {token.type for token in tokens} & {"html_block", "fence", "code_block"}, name
        assert "html_inline" not in {child.type for children in shown for child in children}, name
        of_another_task = str(name).removesuffix(".md").rpartition("/")[2] in set(CATALOG.tasks) - {TASK}
        assert ("javascript" in text) != of_another_task and not re.search(r"[\x1b\r]", text), name
    return "the same characters on the page, as text", "everything"


@pytest.mark.parametrize("cpu", ["# CPU", "- CPU", "1. CPU", "    CPU", "> CPU", "---", "==="])
def test_paragraph_begins_with_no_mark(cpu):
    text = markdown.wrapped(markdown.escape(f"{cpu} {'x ' * 58}{cpu}"))
    tokens = MarkdownIt("commonmark").parse(text)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
