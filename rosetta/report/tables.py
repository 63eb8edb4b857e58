"""The tables of a task's results, for Markdown and the site."""

from dataclasses import dataclass
from pathlib import Path

from rosetta import records
from rosetta.catalog import Row
from rosetta.figures import Cell, Heading, Sample, Table
from rosetta.identity import is_todays
from rosetta.kinds.kind import BATCH, BUSY, STARTING, Quantity
from rosetta.records import Record
from rosetta.report.results import Column, TaskResults, title
from rosetta.run import machine
from rosetta.tasks import Task

VIEWS = ("score and time", "start and memory")
GPU_FACTS = ["examples come", "waits every", "of FP32 peak"]


@dataclass(frozen=True)
class Executed:
    """The executed notebook of a run, as what a cell leads to."""

    record: Record

    def file(self, results: Path) -> Path | None:
        """Where it is below a results folder; None where the run has left none."""
        name = self.record.notebook.executed
        return records.path(self.record, results).with_name(name) if name else None


def overview(results: TaskResults, columns: list[Column] | None = None) -> Table:
    """The main figures of all rows, with what was published. columns: instead of those of presets."""
    columns = results.presets if columns is None else columns
    headings = _headings("framework")
    for column in columns:
        first, *others = results.task.main
        headings += [Heading(f"{column.title}: {first.heading}", first.better), *_headings(*others)]
    reference = [(source, name) for source in results.published for name in source.columns]
    headings += [Heading(f"{name} ({source.year})") for source, name in reference]
    rows = []
    for row in results.rows:
        figures = [
            _figure(quantity, column.of(row), results.task) for column in columns for quantity in results.task.main
        ]
        rows.append([_head(row, to=row), *figures, *_published(results, row)])
    return Table(headings, rows, f"{results.task.title}: main figures")


def choice(results: TaskResults, badges: dict[str, Cell]) -> Table:
    """The figures of all rows, of each column and each of ``VIEWS``: the reader chooses one of both. badges: by row name, how far
    each is proven.

    Shares and published figures are not compared, so they say no way that is better. An empty place has its reason.
    """
    asked = zip(VIEWS, (results.task.main + results.task.kind.beside, STARTING), strict=True)
    shown = [
        (column, view, one)
        for view, quantities in asked
        for column in results.presets
        for one in quantities
        if one.cell(column.records)
    ]
    headings = _headings("framework", "conformance")
    headings += [
        Heading(one.heading, None if one.share_of else one.better, column.title, view) for column, view, one in shown
    ]
    published = [f"{name} ({source.year})" for source in results.published for name in source.columns]
    headings += [Heading(name, view=VIEWS[0]) for name in published]
    rows = []
    for row in results.rows:
        cells = [_head(row, to=row), badges.get(row.name, Cell("absent" if row.facts.absent else "not verified"))]
        for column, _, quantity in shown:
            cell = _figure(quantity, column.of(row), results.task)
            cells.append(cell if cell.text else Cell(_reason(row, column)))
        rows.append([*cells, *_published(results, row)])
    return Table(headings, rows, f"{results.task.title}: main figures")


def _reason(row: Row, column: Column) -> str:
    """Why a row has no figure in a column."""
    if column.of(row):
        return "not measured"
    if row.facts.absent:
        return "cannot exist"
    return "needs a GPU" if row.facts.gpu_only and not column.machine.gpus else "not run"


def _published(results: TaskResults, row: Row) -> list[Cell]:
    clocked, cells = results.task.kind.clocked, []
    for source in results.published:
        for figures in source.columns.values():
            value = figures.get(row.name)
            text = clocked.unit.one(value) if clocked else str(value or "")
            cells.append(Cell(text, value, source.url if text else None))
    return cells


def headline(results: TaskResults) -> list[str]:
    """How near to each other the rows come, of a main figure that is a share: a sentence of the first column of GPUs and of CPUs."""
    quantity = results.task.main[0]
    sentences: dict[bool, str] = {}
    for column in results.presets if quantity.share_of else []:
        samples = [quantity.sample(runs) for runs in column.runs.values() if not results.task.verdict(quantity, runs)]
        reached = [sample.median for sample in samples if sample]
        if len(reached) > 1 and not column.records[0].dataset.synthetic:
            low, high = quantity.unit.number(min(reached)), quantity.unit.one(max(reached))
            text = f"{len(reached)} implementations, one network: {low} to {high} {quantity.heading} ({column.title})."
            sentences.setdefault(bool(column.machine.gpus), text)
    return list(sentences.values())


def details(results: TaskResults, column: Column) -> Table:
    """Every figure of one column."""
    every = results.task.main + results.task.kind.details
    shown = [quantity for quantity in every if quantity.has_column(column.records)]
    gpu_facts, rows = GPU_FACTS if column.machine.gpus else [], []
    for row in results.rows:
        if runs := column.of(row):
            facts = [_head(row, to=Executed(runs[0])), Cell(versions(runs[0])), Cell(device(runs[0]))]
            figures = [_figure(quantity, runs, results.task) for quantity in shown]
            figures += _gpu_facts(row, runs, results.task) if gpu_facts else []
            which = "record" if len(runs) == 1 else f"first of {len(runs)}"
            earlier = "" if is_todays(runs[0], row) else ", of an earlier notebook"
            rows.append([*facts, *figures, Cell(which + earlier, to=runs[0])])
    return Table(_headings("framework", "versions", "device", *shown, *gpu_facts, "record"), rows, column.title)


def across_seeds(results: TaskResults, column: Column) -> Table | None:
    """Whether a row's first main figure lies outside what all other rows reach; None unless a row has several seeds."""
    quantity = results.task.main[0]
    samples = [(row, sample) for row in results.rows if (sample := quantity.sample(column.of(row)))]
    if not any(len(sample) > 1 for _, sample in samples):
        return None
    rows = []
    for row, sample in samples:
        others = [value for other, values in samples if other is not row for value in values.values]
        figures = [Cell(quantity.unit.one(value), value) for value in (sample.median, sample.low, sample.high)]
        if not others:
            among = Cell("no other row")
        elif min(others) <= sample.median <= max(others):
            among = Cell("inside")
        else:
            side = "above" if sample.median > max(others) else "below"
            among = Cell(f"outside: {side} all of them", badge="bad")
        rows.append([_head(row), Cell(str(len(sample)), len(sample)), *figures, among])
    headings = _headings("framework", "n", "median", "min", "max", "median among the values of all other rows")
    return Table(headings, rows, f"{quantity.heading.capitalize()} across seeds and frameworks")


def unfinished(results: TaskResults) -> Table | None:
    """Runs that were skipped or failed, with the reason; a finished record of the same column stays in its table."""
    rows = [
        [_head(row, _seed(record)), Cell(title(record)), Cell(record.status, to=record), Cell(record.error or "")]
        for row in results.rows
        for record in results.records
        if record.status != "ok" and record.name == row.name
    ]
    return Table(_headings("framework", "where", "status", "reason"), rows, "Not finished") if rows else None


def of_framework(results: TaskResults, framework: str) -> Table:
    """Every record of a framework with its main figures."""
    main, rows = results.task.main, []
    for record in results.records:
        if record.framework == framework:
            facts = [Cell(record.title + _seed(record)), Cell(title(record)), Cell(record.status)]
            figures = [_figure(quantity, [record], results.task) for quantity in main]
            notebook = Cell("notebook", to=Executed(record)) if record.notebook.executed else Cell("")
            rows.append([*facts, *figures, notebook, Cell("record", to=record)])
    figures = (quantity.heading for quantity in main)
    return Table(_headings("row", "where", "status", *figures, "executed", "record"), rows, "Records")


def notes(results: TaskResults) -> list[str]:
    """What a reader of the main table must know: rows that do less or cannot exist."""
    titles: dict[str, list[str]] = {}
    for row in results.rows:
        without = row.facts.gpu_only and f"without a GPU a batch leaves it out, because {row.facts.gpu_only}"
        for reason in filter(None, (without or row.facts.slow_on_cpu, row.facts.absent)):
            titles.setdefault(reason, []).append(row.title)
    return [f"{' and '.join(rows)}: {reason}." for reason, rows in titles.items()]


def sources(results: TaskResults) -> list[str]:
    """Where the published figures are from, Markdown."""
    return [f"Reference columns: [{one.source}]({one.url}); {one.conditions}; {one.unit}." for one in results.published]


def versions(record: Record) -> str:
    """Of the framework, of Python, and of what the GPU was driven with."""
    packages = [f"{name} {version}" for name, version in record.versions.items() if name not in ("python", "numpy")]
    packages += [f"Python {record.versions['python']}"] if "python" in record.versions else []
    return ", ".join(packages + [f"{name} {version}" for name, version in record.cuda.items()])


def device(record: Record) -> str:
    """What it computed on, in a word: frameworks write ``cuda:0``, ``Device(gpu, 0)``, ``/device:CPU:0``."""
    written = (record.device or "").lower()
    kinds = {"cuda": "GPU", "gpu": "GPU", "cpu": "CPU"}
    return next((kind for word, kind in kinds.items() if word in written), record.device or "")


def _head(row: Row, after: str = "", to: Row | Executed | None = None) -> Cell:
    """The row's title, with the flavour of the layer that it is bound to."""
    flavour = f" ({row.facts.flavour})" if row.facts.flavour else ""
    return Cell(row.title + flavour + after, to=to, framework=row.framework)


def _seed(record: Record) -> str:
    return "" if record.seed is None else f", seed {record.seed}"


def _headings(*columns: str | Quantity) -> list[Heading]:
    return [Heading(one) if isinstance(one, str) else Heading(one.heading, one.better) for one in columns]


def _figure(quantity: Quantity, runs: list[Record], task: Task) -> Cell:
    """A figure leads to the executed notebook that it is from, which links the record; to the record where there is none."""
    sample, first = quantity.sample(runs), runs[0] if runs else None
    target = Executed(first) if first and first.notebook.executed else first
    verdict = task.verdict(quantity, runs) if runs else None
    if verdict:
        return Cell(verdict.text, float(verdict.good), target, badge=None if verdict.good else "bad")
    text = quantity.cell(runs)
    return Cell(text, sample and sample.median, target if sample or text.endswith(BUSY) else None)


def _gpu_facts(row: Row, runs: list[Record], task: Task) -> list[Cell]:
    """What decides a figure on a GPU: how examples come there, how often Python waits, and the share of the card's peak that is left."""
    gpu, *other_gpus = runs[0].machine.gpus
    sample = Sample.of(getattr(run.metrics, "examples_per_s", None) for run in runs)
    card, flop = machine.card_facts().get(gpu.name), task.flop(runs[0].params | {BATCH: 1})
    share = sample.median * flop / (1e12 * card.peak_fp32) if sample and flop and card and not other_gpus else None
    # An earlier notebook may have done it otherwise
    facts = [Cell(fact if fact and is_todays(runs[0], row) else "") for fact in (row.facts.feeds, row.facts.waits)]
    return [*facts, Cell("" if share is None else f"{share:.1%}", share)]
