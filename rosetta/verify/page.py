"""Writes ``results/conformance/<task>.md``: a pure function of the catalog and of what was verified and cross-loaded."""

from pathlib import Path

from rosetta import files, identity
from rosetta.catalog import Catalog, Row
from rosetta.markdown import escape, link, table
from rosetta.paths import ROOT
from rosetta.run.kernels import Kernels
from rosetta.tasks import Task
from rosetta.verify import conformance, several
from rosetta.verify.conformance import Conformance, Report
from rosetta.verify.diagnosis import Cause, causes
from rosetta.verify.kinds import proof
from rosetta.verify.levels import UNITS, Finding

LEVELS = ROOT / "docs" / "same-network.md"
INTRODUCTION = """\
Does every notebook compute what the reference in NumPy does? `run_all.py verify` writes this page from {task}.json: do not edit it.
[Same network, how we know]({levels}) says what the levels are and how they are measured.

A figure is the largest difference from the reference. With σ it is a distance in standard errors. With x it is a
multiple of what another order of the same sums makes. "ok" means that the level passes and has no figure. A commit with
a + had changed files.
"""

STALE = "the row has changed since it was verified on {:%Y-%m-%d}: `run_all.py verify` proves it again"

Line = tuple[Row, Conformance]
Column = tuple[int, str | None]  # level, quantity


def write(catalog: Catalog, task: str, results: Path, kernels: Kernels | None = None) -> Path:
    """Write the page of a task below the results folder; returns its path. kernels: those of the environments by default."""
    target = results / "conformance" / f"{task}.md"
    files.write_atomically(target, page(catalog, task, results, kernels))
    return target


def found(catalog: Catalog, task: str, report: Report, kernels: Kernels | None = None) -> list[Line]:
    """The rows of a task that were verified, in the catalog's order; those whose digest is another one today are stale."""
    verified, known, kernels = {line.name: line for line in report.rows}, catalog.task(task), kernels or Kernels()
    lines = [(row, verified[row.name]) for row in catalog.rows(task) if row.name in verified]
    for row, line in lines:
        number, gpus = proof(known.kind_name).PROOF, line.machine.gpus
        environment = kernels.fingerprint(row, gpus)
        line.stale = line.digest != identity.proof(row, known, number, environment, line.synthetic, bool(gpus))
    return lines


def page(catalog: Catalog, task: str, results: Path, kernels: Kernels | None = None) -> str:
    report, known, rows = conformance.read(results, task), catalog.task(task), catalog.rows(task)
    lines = found(catalog, task, report, kernels)
    parts = [
        f"# Conformance: {known.title}",
        INTRODUCTION.format(task=task, levels=link(LEVELS, results / "conformance")),
    ]
    parts += _verified(known, lines, len(rows)) if lines else ["Nothing is verified yet."]
    for crossed in filter(None, (report.matrix, *report.agreements)):
        parts += crossed.section({row.name: escape(row.title) for row in rows})
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _verified(task: Task, lines: list[Line], expected: int) -> list[str]:
    proven = proof(task.kind_name)
    shown = columns(task.kind_name, lines)
    tolerances = ", ".join(
        f"{quantity} {proven.TOLERANCES[quantity]:g}{UNITS.get(quantity, '')}" for _, quantity in shown if quantity
    )
    passed = sum(line.passed for _, line in lines)
    return [
        f"**{passed} of {expected} rows pass all {len(proven.LEVELS)} levels**, {_data(task, lines)}.",
        table(
            ["framework", *headings(task.kind_name, shown)], [[_title(*line), *cells(shown, *line)] for line in lines]
        ),
        f"Tolerances: {tolerances}.",
        *_looser(lines),
        *several.sections(lines),
        *_failures(lines, proven.LEVELS),
        "## What was verified",
        table(["framework", "versions", "on", "when", "commit", "took"], map(_facts, lines), figures=False),
    ]


def columns(kind: str, lines: list[Line]) -> list[Column]:
    """Those of a kind: a quantity of a level each, or None for a level without. A quantity that no row has is left out where the
    level has others: which there are depends on what is random in a task."""
    measured = {name for _, line in lines for finding in line.findings for name in finding.measured}
    shown = []
    for level, quantities in proof(kind).COLUMNS.items():
        of_rows = [name for name in quantities if name in measured]
        shown += [(level, name) for name in of_rows or quantities or (None,)]
    return shown


def headings(kind: str, shown: list[Column]) -> list[str]:
    """The first of a level has its number and name."""
    names = []
    for place, (level, quantity) in enumerate(shown):
        first = f"{level} {proof(kind).LEVELS[level]}" if place == 0 or shown[place - 1][0] != level else ""
        names.append(": ".join(filter(None, (first, quantity))))
    return names


def cells(shown: list[Column], row: Row, line: Conformance) -> list[str]:
    """What the levels found, by column: "ok", a figure (with an asterisk where the tolerance is looser), or "FAILED"; "stale"
    where the row has changed since."""
    findings = {} if line.stale else {finding.level: finding for finding in line.findings}
    otherwise = "skipped" if line.skipped else "stale" if line.stale else ""
    return [_cell(findings.get(level), quantity, row, otherwise) for level, quantity in shown]


def _cell(finding: Finding | None, quantity: str | None, row: Row, otherwise: str) -> str:
    if finding is None:
        return otherwise
    value = finding.measured.get(quantity) if quantity else None
    if value is None:
        return "ok" if finding.passed else "**FAILED**"
    text = f"{value:.1f}{UNITS[quantity]}" if quantity in UNITS else f"{value:.0e}"
    text += "\\*" if quantity in row.facts.looser else ""
    return text if value <= finding.tolerances[quantity] else f"**{text}**"


def _data(task: Task, lines: list[Line]) -> str:
    if task.data is None:
        return "on inputs that the task makes itself"
    synthetic = sum(line.synthetic for _, line in lines)
    share = "" if synthetic == len(lines) else f" ({synthetic} of {len(lines)} rows)"
    return f"on SYNTHETIC data{share}" if synthetic else "on real data"


def _title(row: Row, line: Conformance) -> str:
    return escape(row.title) + (" (SYNTHETIC data)" if line.synthetic else "")


def _looser(lines: list[Line]) -> list[str]:
    body = [
        [_title(row, line), quantity, _measured(line, quantity), f"{looser.tolerance:g}", escape(looser.reason)]
        for row, line in lines
        for quantity, looser in row.facts.looser.items()
    ]
    heading = ["framework", "quantity", "measured", "allowed", "reason"]
    return ["\\* Looser tolerances, and why:", table(heading, body, figures=False)] if body else []


def _measured(line: Conformance, quantity: str) -> str:
    values = [value for finding in line.findings if (value := finding.measured.get(quantity)) is not None]
    return f"{max(values):.1e}" if values else ""


def _failures(lines: list[Line], levels: dict[int, str]) -> list[str]:
    body = [
        [_title(row, line), _numbered(cause, levels), escape(_with_diagnosis(cause, line))]
        for row, line in lines
        for cause in causes(line.findings)
    ]
    body += [[_title(row, line), "skipped", escape(line.skipped)] for row, line in lines if line.skipped]
    body += [[_title(row, line), "stale", STALE.format(line.verified)] for row, line in lines if line.stale]
    heading = ["framework", "level", "reason"]
    return ["## Failed, skipped or stale", table(heading, body, figures=False)] if body else []


def _numbered(cause: Cause, levels: dict[int, str]) -> str:
    return cause.numbers if len(cause.levels) > 1 else f"{cause.numbers} {levels[cause.levels[0]]}"


def _with_diagnosis(cause: Cause, line: Conformance) -> str:
    return "; ".join([cause.reason, *(line.diagnosis[level] for level in cause.levels if level in line.diagnosis)])


def _facts(of: Line) -> list[str]:
    row, line = of
    versions = escape(", ".join(f"{name} {version}" for name, version in line.versions.items()))
    where, when = escape(f"{line.machine.name}, {line.device or ''}"), f"{line.verified:%Y-%m-%d}"
    return [_title(row, line), versions, where, when, str(line.commit), f"{line.seconds:.0f} s"]
