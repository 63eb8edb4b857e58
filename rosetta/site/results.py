"""The results page: the same figures as ``results.md``, as cells that sort and that lead to their records."""

from dataclasses import dataclass, field

from rosetta.catalog import Row
from rosetta.paths import ROOT
from rosetta.records import Record
from rosetta.report import charts, pictures
from rosetta.report.columns import Column, columns, train_time
from rosetta.report.details import AFTER_TRAIN, SCATTER, scatter, to_target, versions
from rosetta.report.figures import PERCENT, SECONDS
from rosetta.report.published import Published, published
from rosetta.report.samples import Sample, sample
from rosetta.report.tables import FAIRNESS, limits
from rosetta.site import addresses
from rosetta.site.pages import Pages
from rosetta.site.task import Task
from rosetta.verify.conformance import Conformance
from rosetta.verify.levels import LEVELS

PAGE = "results.html"


@dataclass(frozen=True)
class Cell:
    text: str
    value: float | None = None  # what it sorts by, of a figure
    href: str | None = None
    badge: str | None = None  # "good" or "bad"


@dataclass(frozen=True)
class Table:
    title: str
    headings: list[str]
    rows: list[list[Cell]] = field(default_factory=list)


def write(pages: Pages, tasks: list[Task]) -> None:
    fairness = pages.markup(FAIRNESS, ROOT / "results.md", PAGE)
    pages.write(
        PAGE, "results.html", "Results", "Results", fairness=fairness, tasks=[_task(pages, one) for one in tasks]
    )


def _task(pages: Pages, task: Task) -> dict:
    shown, reference = columns(task.records), published(task.key)
    sources = [f"[{one.source}]({one.url}): {one.conditions}; {one.unit}." for one in reference]
    return {
        "key": task.key,
        "title": task.title,
        "overview": overview(task.rows, shown, reference, task.verified),
        "notes": [pages.markup(note, ROOT / "README.md", PAGE) for note in [*limits(task.rows), *sources]],
        "columns": [_column(pages, task, column) for column in shown],
        "unfinished": unfinished(task.rows, task.records),
    }


def _column(pages: Pages, task: Task, column: Column) -> dict:
    drawn = []
    for picture in charts.draw(task.rows, column):
        src = f"pictures/{pictures.file_name(task.key, column, picture.kind)}"
        pages.save(src, picture.svg)
        drawn.append({"src": src, "alt": picture.alt, "caption": pictures.CAPTIONS[picture.kind]})
    return {
        "title": column.title,
        "about": column.about(),
        "table": details(task.rows, column),
        "spread": spread(task.rows, column),
        "pictures": drawn,
    }


def overview(
    rows: list[Row], shown: list[Column], reference: list[Published], verified: dict[str, Conformance]
) -> Table:
    """A row each: accuracy and training time on every machine, conformance, and what was published."""
    headings = ["framework", "conformance"]
    for column in shown:
        headings += [f"{column.title}: accuracy", "train"]
    headings += [f"{title} ({source.year})" for source in reference for title in source.columns]
    body = []
    for row in rows:
        cells = [Cell(row.title, href=addresses.framework(row.task, row.framework)), badge(verified.get(row.name))]
        for column in shown:
            runs = column.runs.get(row.name, [])
            cells += [_accuracy(runs), _train(runs)]
        for source in reference:
            for figures in source.columns.values():
                cells.append(_figure(figures.get(row.name), SECONDS.one(figures.get(row.name)), source.url))
        body.append(cells)
    return Table("Accuracy and training time", headings, body)


def details(rows: list[Row], column: Column) -> Table:
    """Every figure of one column."""
    after = [quantity for quantity in AFTER_TRAIN if quantity.always or quantity.of(column.records)]
    tested = any(record.metrics.epoch_accuracy for record in column.records)
    headings = ["framework", "versions", "device", "accuracy", "train", *(["to target"] if tested else [])]
    headings += [quantity.heading for quantity in after] + ["record"]
    body = []
    for row in rows:
        runs = column.runs.get(row.name)
        if not runs:
            continue
        cells = [
            Cell(row.title, href=addresses.executed(runs[0]) or addresses.framework(row.task, row.framework)),
            Cell(versions(runs[0])),
            Cell(runs[0].device or ""),
            _accuracy(runs),
            _train(runs),
        ]
        if tested:
            reached = sample(runs, lambda record: record.metrics.target_s)
            cells.append(_figure(reached and reached.median, to_target(runs)))
        for quantity in after:
            found = quantity.of(runs)
            cells.append(_figure(found and found.median, quantity.cell(runs)))
        cells.append(Cell("record" if len(runs) == 1 else f"first of {len(runs)}", href=addresses.record(runs[0])))
        body.append(cells)
    return Table(column.title, headings, body)


def spread(rows: list[Row], column: Column) -> Table | None:
    """How accuracy scatters across seeds and frameworks; None unless a row has several seeds."""
    body = [
        [
            Cell(one.row.title),
            _figure(len(one.accuracy), str(len(one.accuracy))),
            *(
                _figure(value, PERCENT.one(value))
                for value in (one.accuracy.median, one.accuracy.low, one.accuracy.high)
            ),
            Cell(one.place, badge="bad" if one.outside else None),
        ]
        for one in scatter(rows, column)
    ]
    return Table(f"{column.title}: accuracy across seeds", SCATTER, body) if body else None


def unfinished(rows: list[Row], found: list[Record]) -> Table | None:
    """Rows that were skipped or failed, with the reason."""
    titles = {row.name: row.title for row in rows}
    body = [
        [
            Cell(titles[record.name] + ("" if record.seed is None else f", seed {record.seed}")),
            Cell(f"{record.machine.name}, {record.preset}"),
            Cell(record.status, href=addresses.record(record)),
            Cell(record.error or ""),
        ]
        for record in found
        if record.status != "ok" and record.name in titles
    ]
    return Table("Not finished", ["framework", "where", "status", "reason"], body) if body else None


def badge(verified: Conformance | None) -> Cell:
    """How many levels of conformance a row passes."""
    if verified is None:
        return Cell("not verified")
    passed = sum(finding.passed for finding in verified.findings)
    return Cell(
        f"{passed} of {len(LEVELS)} levels",
        href=addresses.CONFORMANCE,
        badge="good" if verified.passed else "bad",
    )


def _accuracy(runs: list[Record]) -> Cell:
    return _link(sample(runs, lambda record: record.metrics.accuracy), PERCENT.all, runs)


def _train(runs: list[Record]) -> Cell:
    found = sample(runs, lambda record: record.metrics.train_s)
    return _link(found, lambda _: train_time(runs), runs)


def _link(found: Sample | None, write, runs: list[Record]) -> Cell:
    return Cell("") if found is None else Cell(write(found), found.median, addresses.record(runs[0]))


def _figure(value: float | None, text: str, href: str | None = None) -> Cell:
    return Cell(text, value, href if text else None)
