"""The tables of a task's results. Each is made once; Markdown and the site write its cells and resolve what they lead to."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rosetta.catalog import Row
from rosetta.figures import Sample
from rosetta.identity import content
from rosetta.kinds.kind import BATCH, Quantity
from rosetta.records import Record
from rosetta.report.columns import Column, TaskResults, title
from rosetta.run import machine
from rosetta.tasks import Task

GPU_FACTS = ["examples come", "waits every", "of FP32 peak"]


@dataclass(frozen=True)
class Executed:
    """The executed notebook of a run, as what a cell leads to."""

    record: Record


@dataclass(frozen=True)
class Cell:
    """``to`` is what it leads to: a row, a record, an executed notebook, or an address on the web."""

    text: str
    value: float | None = None  # what it sorts by, of a figure
    to: Row | Record | Executed | str | None = None
    badge: str | None = None  # "good" or "bad"
    framework: str | None = None  # of the row that this cell heads


@dataclass(frozen=True)
class Table:
    """Each row begins with what it is about.

    better: by the number of a column, "less" or "more" where its figures are better that way.
    """

    title: str
    headings: list[str]
    rows: list[list[Cell]]
    better: dict[int, str] = field(default_factory=dict)


def overview(results: TaskResults, badges: dict[str, Cell] | None = None, columns: list[Column] | None = None) -> Table:
    """The main figures of all rows, with what was published.

    badges: by row name, how far each is proven. columns: instead of those of presets.
    """
    kind, rows, better = results.task.kind, [], {}
    columns = results.presets if columns is None else columns
    headings = ["framework", *(["conformance"] if badges is not None else [])]
    for column in columns:
        better |= _better(kind.main, len(headings))
        headings.append(f"{column.title}: {kind.main[0].heading}")
        headings += [quantity.heading for quantity in kind.main[1:]]
    reference = [(source, name) for source in results.published for name in source.columns]
    if kind.clocked:
        better |= _better([kind.clocked] * len(reference), len(headings))
    headings += [f"{name} ({source.year})" for source, name in reference]
    for row in results.rows:
        cells = [Cell(name(row), to=row, framework=row.framework)]
        if badges is not None:
            cells.append(badges.get(row.name, Cell("absent" if row.facts.absent else "not verified")))
        for column in columns:
            cells += [_figure(quantity, column.of(row), results.task) for quantity in kind.main]
        for source, key in reference:
            value = source.columns[key].get(row.name)
            text = kind.clocked.unit.one(value) if kind.clocked else str(value or "")
            cells.append(Cell(text, value, source.url if text else None))
        rows.append(cells)
    return Table(f"{results.task.title}: main figures", headings, rows, better)


def headline(results: TaskResults) -> list[str]:
    """How near to each other the rows come, of a main figure that is a share: a sentence of the first column of GPUs and of CPUs."""
    quantity = results.task.kind.main[0]
    found: dict[bool, str] = {}
    for column in results.presets if quantity.share_of else []:
        samples = [quantity.sample(runs) for runs in column.runs.values() if not results.task.verdict(quantity, runs)]
        reached = [sample.median for sample in samples if sample]
        if len(reached) > 1 and not column.records[0].dataset.synthetic:
            low, high = quantity.unit.number(min(reached)), quantity.unit.one(max(reached))
            said = f"{len(reached)} implementations, one network: {low} to {high} {quantity.heading} ({column.title})."
            found.setdefault(bool(column.machine.gpus), said)
    return list(found.values())


def details(results: TaskResults, column: Column) -> Table:
    """Every figure of one column."""
    kind, rows = results.task.kind, []
    shown = [quantity for quantity in kind.quantities if quantity.has_column(column.records)]
    on_gpu = bool(column.machine.gpus)
    for row in results.rows:
        runs = column.of(row)
        if runs:
            head = Cell(name(row), to=Executed(runs[0]), framework=row.framework)
            facts = [head, Cell(versions(runs[0])), Cell(device(runs[0]))]
            figures = [_figure(quantity, runs, results.task) for quantity in shown]
            figures += _gpu_facts(row, runs, results.task) if on_gpu else []
            which = "record" if len(runs) == 1 else f"first of {len(runs)}"
            earlier = "" if is_todays(row, runs[0]) else ", of an earlier notebook"
            rows.append([*facts, *figures, Cell(which + earlier, to=runs[0])])
    headings = ["framework", "versions", "device"]
    better = _better(shown, len(headings))
    headings += [*(quantity.heading for quantity in shown), *(GPU_FACTS if on_gpu else []), "record"]
    return Table(column.title, headings, rows, better)


def across_seeds(results: TaskResults, column: Column) -> Table | None:
    """Whether a row's first main figure lies outside what all other rows reach; None unless a row has several seeds."""
    quantity = results.task.kind.main[0]
    samples = [(row, quantity.sample(column.of(row))) for row in results.rows]
    samples = [(row, sample) for row, sample in samples if sample]
    if not any(len(sample) > 1 for _, sample in samples):
        return None
    rows = []
    for row, sample in samples:
        others = [value for other, values in samples if other is not row for value in values.values]
        figures = [Cell(quantity.unit.one(value), value) for value in (sample.median, sample.low, sample.high)]
        head = Cell(name(row), framework=row.framework)
        rows.append([head, Cell(str(len(sample)), len(sample)), *figures, _place(sample, others)])
    headings = ["framework", "n", "median", "min", "max", "median among the values of all other rows"]
    return Table(f"{quantity.heading.capitalize()} across seeds and frameworks", headings, rows)


def unfinished(results: TaskResults) -> Table | None:
    """Runs that were skipped or failed, with the reason; a finished record of the same column stays in its table."""
    rows = []
    for row in results.rows:
        for record in results.records:
            if record.status != "ok" and record.name == row.name:
                seed = "" if record.seed is None else f", seed {record.seed}"
                facts = [Cell(title(record)), Cell(record.status, to=record), Cell(record.error or "")]
                rows.append([Cell(name(row) + seed, framework=row.framework), *facts])
    return Table("Not finished", ["framework", "where", "status", "reason"], rows) if rows else None


def of_framework(results: TaskResults, framework: str) -> Table:
    """Every record of a framework with its main figures."""
    kind, rows = results.task.kind, []
    for record in results.records:
        if record.framework == framework:
            seed = "" if record.seed is None else f", seed {record.seed}"
            figures = [_figure(quantity, [record], results.task) for quantity in kind.main]
            ways = [
                Cell("notebook", to=Executed(record)) if record.notebook.executed else Cell(""),
                Cell("record", to=record),
            ]
            rows.append([Cell(record.title + seed), Cell(title(record)), Cell(record.status), *figures, *ways])
    headings = ["row", "where", "status", *(quantity.heading for quantity in kind.main), "executed", "record"]
    return Table("Records", headings, rows)


def notes(results: TaskResults) -> list[str]:
    """What a reader of the main table must know: rows that do less or cannot exist, and where the published figures are from."""
    titles: dict[str, list[str]] = {}
    for row in results.rows:
        without = row.facts.gpu_only and f"without a GPU a batch leaves it out, because {row.facts.gpu_only}"
        for reason in filter(None, (without or row.facts.slow_on_cpu, row.facts.absent)):
            titles.setdefault(reason, []).append(row.title)
    return [f"{' and '.join(rows)}: {reason}." for reason, rows in titles.items()]


def sources(results: TaskResults) -> list[str]:
    """Where the published figures are from, Markdown."""
    return [f"Reference columns: [{one.source}]({one.url}); {one.conditions}; {one.unit}." for one in results.published]


def name(row: Row) -> str:
    """The row's title, with the flavour of the layer that it is bound to."""
    return row.title + (f" ({row.facts.flavour})" if row.facts.flavour else "")


def is_todays(row: Row, record: Record) -> bool:
    """Whether a run's notebook is the one that the checkout has now."""
    return record.notebook.sha256 == content(row.notebook)


def versions(record: Record) -> str:
    """Of the framework, of Python, and of what the GPU was driven with."""
    own = [f"{name} {version}" for name, version in record.versions.items() if name not in ("python", "numpy")]
    own += [f"Python {record.versions['python']}"] if "python" in record.versions else []
    return ", ".join(own + [f"{name} {version}" for name, version in record.cuda.items()])


def device(record: Record) -> str:
    """What it computed on, in a word: frameworks write ``cuda:0``, ``Device(gpu, 0)``, ``/device:CPU:0``."""
    written = (record.device or "").lower()
    kinds = {"cuda": "GPU", "gpu": "GPU", "cpu": "CPU"}
    return next((kind for word, kind in kinds.items() if word in written), record.device or "")


def _better(quantities: Iterable[Quantity], first: int) -> dict[int, str]:
    """Which way the columns from ``first`` on should go."""
    return {place: one.better for place, one in enumerate(quantities, first) if one.better}


def _figure(quantity: Quantity, runs: list[Record], task: Task) -> Cell:
    """A figure leads to the executed notebook that it is from, which links the record; to the record where there is none."""
    sample, first = quantity.sample(runs), runs[0] if runs else None
    target = Executed(first) if first and first.notebook.executed else first
    verdict = task.verdict(quantity, runs) if runs else None
    if verdict:
        return Cell(verdict.text, float(verdict.good), target, badge=None if verdict.good else "bad")
    return Cell(quantity.cell(runs), sample and sample.median, target if sample else None)


def _gpu_facts(row: Row, runs: list[Record], task: Task) -> list[Cell]:
    """What decides a figure on a GPU: how examples come there, how often Python waits, and the share of the card's peak that is left."""
    (card, *others), sample = (
        runs[0].machine.gpus,
        Sample.of(getattr(run.metrics, "examples_per_s", None) for run in runs),
    )
    known, flop = machine.card_facts().get(card.name), task.flop(runs[0].params | {BATCH: 1})
    share = sample.median * flop / (1e12 * known.peak_fp32) if sample and flop and known and not others else None
    # An earlier notebook may have done it otherwise
    facts = [Cell(fact if fact and is_todays(row, runs[0]) else "") for fact in (row.facts.feeds, row.facts.waits)]
    return [*facts, Cell("" if share is None else f"{share:.1%}", share)]


def _place(sample: Sample, others: list[float]) -> Cell:
    if not others:
        return Cell("no other row")
    if min(others) <= sample.median <= max(others):
        return Cell("inside")
    return Cell(f"outside: {'above' if sample.median > max(others) else 'below'} all of them", badge="bad")
