"""One row through all levels of its kind; the file that keeps what was found, ``results/conformance/<task>.json``; and its page."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Literal

from pydantic import Field

from rosetta import files, identity
from rosetta.catalog import Catalog, Row
from rosetta.files import Strict
from rosetta.markdown import escape, joined, link, table
from rosetta.paths import checkout
from rosetta.records import Commit, Gpu, Machine, Named
from rosetta.run.kernels import Kernels
from rosetta.run.processes import error_line
from rosetta.tasks import Task
from rosetta.verify import entries, infer, speed, train
from rosetta.verify.infer import Agreement
from rosetta.verify.proof import UNITS, Crossing, Finding, Prober, Reference
from rosetta.verify.speed import in_zoo, output_of
from rosetta.verify.train import Matrix

# How each kind is proven. The first lines of its module say what parameters it sets in a notebook, what files the notebook then
# saves in SAVE_TO, and what the task's reference must offer. It has
# - PROOF, LEVELS (number -> name), COLUMNS (level -> the quantities that pages show), TOLERANCES (quantity -> the largest difference
#   allowed) and Reference (made of a task, a flavour, and whether data is synthetic);
# - judge(row, probe, reference, gpu): the findings, and what the first run left;
# - where mistakes can be named, diagnose(findings, what the first run left, reference, row): failed level -> sentence;
# - where rows can exchange weights, cross(rows, reference, bench, note, changed), which returns a ``Crossing``, and
#   same_network(one, other): whether two references compute the same from the same weights.
PROOFS: dict[str, ModuleType] = {"train": train, "infer": infer, "speed": speed, "entries": entries}
SCHEMA = 2
FROM_RECORD = {"task", "framework", "variant", "commit", "machine", "device", "versions"}  # of the first run


class Conformance(Named, Strict):
    """What was found of one row."""

    task: str
    framework: str
    variant: str | None
    digest: str  # of what decides the proof: ``identity.proof``
    verified: datetime
    seconds: float  # that it took
    commit: Commit
    machine: Machine
    device: str | None
    versions: dict[str, str]
    synthetic: bool
    findings: list[Finding] = []  # one a level; none where the row was skipped
    diagnosis: dict[int, str] = {}  # by failed level: what computes the notebook's numbers
    skipped: str | None = None  # why this machine cannot run the row
    stale: bool = Field(False, exclude=True)  # whether the row has changed since then

    @property
    def passed(self) -> bool:
        return bool(self.findings) and all(finding.passed for finding in self.findings) and not self.stale

    def failures(self, names: dict[int, str]) -> Iterator[tuple[str, str, list[str]]]:
        """Of each reason why levels failed: ``level 4 (training)``, or the numbers alone of several; the reason; their diagnoses."""
        by_reason: dict[str, list[int]] = {}
        for finding in self.findings:
            if not finding.passed:
                by_reason.setdefault(finding.reason or "", []).append(finding.level)
        for reason, levels in by_reason.items():
            of_one = f"level {levels[0]} ({names[levels[0]]})"
            told = of_one if len(levels) == 1 else f"levels {', '.join(map(str, levels))}"
            yield told, reason, [self.diagnosis[level] for level in levels if level in self.diagnosis]


class Report(Strict):
    """Everything that was verified of a task, by row; the matrix of the weights that its rows evaluated, or what they agree in."""

    version: Literal[SCHEMA] = Field(SCHEMA, alias="schema")
    rows: list[Conformance] = []
    matrix: Matrix | None = None
    agreements: list[Agreement] = []  # one for each way of the user to give inputs

    def add(self, new: Conformance | Crossing) -> None:
        """Keep what was found, in the place of what was there: of the row, of the task, of the way to give inputs."""
        if isinstance(new, Conformance):
            self.rows = [old for old in self.rows if old.name != new.name] + [new]
        elif isinstance(new, Matrix):
            self.matrix = new
        else:
            self.agreements = [old for old in self.agreements if old.own != new.own] + [new]


def verify(row: Row, probe: Prober, reference: Reference, digest: str, gpu: bool) -> Conformance:
    """Run a row's probes and judge them. Whatever the notebook does is a finding, never an exception."""
    started, proof = datetime.now(UTC), PROOFS[reference.task.kind_name]
    findings, outputs = proof.judge(row, probe, reference, gpu)
    diagnosis, failing = {}, [finding.level for finding in findings if not finding.passed]
    if failing and hasattr(proof, "diagnose"):
        try:
            diagnosis = proof.diagnose(findings, outputs, reference, row)
        except Exception as error:  # a notebook may leave numbers that nobody has thought of: the proof counts
            diagnosis = {failing[0]: f"no diagnosis: {error_line(type(error).__name__, error)}"}
    return Conformance(
        **outputs.record.model_dump(include=FROM_RECORD),
        digest=digest,
        verified=started.replace(microsecond=0),
        seconds=round((datetime.now(UTC) - started).total_seconds(), 1),
        synthetic=reference.synthetic,
        findings=findings,
        diagnosis=diagnosis,
        skipped=outputs.record.error if outputs.skipped else None,
    )


def digest(row: Row, task: Task, kernels: Kernels, gpus: Sequence[Gpu], synthetic: bool) -> str:
    """What decides the proof of a row as it is today, on a machine with these GPUs: ``identity.proof``."""
    environment, number = kernels.fingerprint(row, gpus), PROOFS[task.kind_name].PROOF
    return identity.proof(row, task, number, environment, synthetic, bool(gpus))


def read(results: Path, task: str) -> Report:
    """The report of a task below a results folder; an empty one where there is none yet."""
    return files.load(Report, file_of(results, task), missing=Report())


def file_of(results: Path, task: str, suffix: str = ".json") -> Path:
    """Where the report of a task lies, or another file of it."""
    return results / "conformance" / f"{task}{suffix}"


# ---- The page: a pure function of the catalog and of what was verified and cross-loaded

INTRODUCTION = """\
Does every notebook compute what the reference in NumPy does? `run_all.py verify` writes this page from {task}.json: do not edit it.
[Same network, how we know]({levels}) says what the levels are and how they are measured.

A figure is the largest difference from the reference. With σ it is a distance in standard errors. "ok" means that the
level passes and has no figure. A commit with a + had changed files.
"""
STALE = "the row has changed since it was verified on {:%Y-%m-%d}: `run_all.py verify` proves it again"
OUTPUTS = "Level 3 of each network: how far a row's outputs are from the reference's."
NONE = "A cell says *none* where the framework cannot compute the network:"
ZOO = """\
Some frameworks have a network of that name in their own zoo. A notebook takes it with `SOURCE="zoo"`. It is the same
network where it computes the reference's outputs from the same weights. The figure is the difference.
"""

Line = tuple[Row, Conformance]


def write_page(catalog: Catalog, task: str, results: Path, kernels: Kernels | None = None) -> Path:
    """Write the page of a task below the results folder; returns its path. kernels: those of the environments by default."""
    target = file_of(results, task, ".md")
    files.write_atomically(target, page(catalog, task, results, kernels))
    return target


def lines(catalog: Catalog, task: str, report: Report, kernels: Kernels | None = None) -> list[Line]:
    """The rows of a task that were verified, in the catalog's order; those whose digest is another one today are stale."""
    of_task, verified, kernels = catalog.task(task), {line.name: line for line in report.rows}, kernels or Kernels()
    pairs = [(row, verified[row.name]) for row in catalog.rows(task) if row.name in verified]
    for row, line in pairs:
        line.stale = line.digest != digest(row, of_task, kernels, line.machine.gpus, line.synthetic)
    return pairs


def page(catalog: Catalog, task: str, results: Path, kernels: Kernels | None = None) -> str:
    report, of_task, rows = read(results, task), catalog.task(task), catalog.rows(task)
    shown = lines(catalog, task, report, kernels)
    parts = [
        f"# Conformance: {of_task.title}",
        INTRODUCTION.format(task=task, levels=link(checkout.docs / "same-network.md", results / "conformance")),
    ]
    parts += _verified(of_task, shown, len(rows)) if shown else ["Nothing is verified yet."]
    for crossed in filter(None, (report.matrix, *report.agreements)):
        parts += crossed.section({row.name: escape(row.title) for row in rows})
    return joined(parts)


def tabled(kind: str, shown: list[Line]) -> tuple[list[str], list[list[str]]]:
    """The headings of the columns, and the cells of each row.

    A cell is "ok", a figure (with an asterisk where the tolerance is looser), or "FAILED"; "stale" where the row has changed since.
    A column is a quantity of a level, or a level without. A quantity that no row has is left out where the level has others:
    which there are depends on what is random in a task.
    """
    measured = {(finding.level, name) for _, line in shown for finding in line.findings for name in finding.measured}
    headings, columns = [], []
    for level, quantities in PROOFS[kind].COLUMNS.items():
        names = [name for name in quantities if (level, name) in measured] or quantities or (None,)
        columns += [(level, name) for name in names]
        first = f"{level} {PROOFS[kind].LEVELS[level]}"
        headings += [first if names[0] is None else f"{first}: {names[0]}", *names[1:]]
    body = []
    for row, line in shown:
        findings = {} if line.stale else {finding.level: finding for finding in line.findings}
        otherwise = "skipped" if line.skipped else "stale" if line.stale else ""
        body.append([_cell(findings[level], name, row) if level in findings else otherwise for level, name in columns])
    return headings, body


def _cell(finding: Finding, quantity: str | None, row: Row) -> str:
    value = finding.measured.get(quantity) if quantity else None
    if value is None:
        return "ok" if finding.passed else "**FAILED**"
    text = f"{value:.1f}{UNITS[quantity]}" if quantity in UNITS else f"{value:.0e}"
    text += "\\*" if quantity in row.facts.looser else ""
    return text if value <= finding.tolerances[quantity] else f"**{text}**"


def _verified(task: Task, shown: list[Line], expected: int) -> list[str]:
    proof, (headings, body) = PROOFS[task.kind_name], tabled(task.kind_name, shown)
    passed, synthetic = sum(line.passed for _, line in shown), sum(line.synthetic for _, line in shown)
    data = f"on {'SYNTHETIC' if synthetic else 'real'} data" if task.data else "on inputs that the task makes itself"
    share = f" ({synthetic} of {len(shown)} rows)" if task.data and 0 < synthetic < len(shown) else ""
    facts = [
        [
            _title(row, line),
            escape(", ".join(f"{name} {version}" for name, version in line.versions.items())),
            escape(f"{line.machine.name}, {line.device or ''}"),
            f"{line.verified:%Y-%m-%d}",
            str(line.commit),
            f"{line.seconds:.0f} s",
        ]
        for row, line in shown
    ]
    return [
        f"**{passed} of {expected} rows pass all {len(proof.LEVELS)} levels**, {data}{share}.",
        table(["framework", *headings], [[_title(*line), *cells] for line, cells in zip(shown, body)]),
        *_tolerances(task, shown),
        *_looser(shown),
        *_networks(shown),
        *_failures(shown, proof.LEVELS),
        "## What was verified",
        table(["framework", "versions", "on", "when", "commit", "took"], facts, figures=False),
    ]


def _title(row: Row, line: Conformance) -> str:
    return escape(row.title) + (" (SYNTHETIC data)" if line.synthetic else "")


def _tolerances(task: Task, shown: list[Line]) -> list[str]:
    body = []
    for quantity, allowed in (PROOFS[task.kind_name].TOLERANCES | task.tolerances).items():
        unit, values = UNITS.get(quantity, ""), []
        for row, line in shown:
            if not line.stale and quantity not in row.facts.looser:
                measured = (finding.measured.get(quantity) for finding in line.findings)
                values += [(value, escape(row.title)) for value in measured if value is not None]
        if values:
            largest, title = max(values)
            times = f"{allowed / largest:.0f}" if largest else ""
            size = f"{largest:.1f}{unit}" if unit else f"{largest:.1e}" if largest else "0"
            body.append([quantity, size, title if largest else "every row", f"{allowed:g}{unit}", times])
    introduction = "The largest difference that a row without a looser tolerance has, and what is allowed:"
    heading = ["quantity", "largest", "of", "allowed", "times"]
    return ["## Tolerances", introduction, table(heading, body)] if body else []


def _looser(shown: list[Line]) -> list[str]:
    body = []
    for row, line in shown:
        for quantity, looser in () if line.stale else row.facts.looser.items():
            values = [value for finding in line.findings if (value := finding.measured.get(quantity)) is not None]
            measured = f"{max(values):.1e}" if values else ""
            body.append([_title(row, line), quantity, measured, f"{looser.tolerance:g}", escape(looser.reason)])
    heading = ["framework", "quantity", "measured", "allowed", "reason"]
    return ["\\* Looser tolerances, and why:", table(heading, body, figures=False)] if body else []


def _failures(shown: list[Line], levels: dict[int, str]) -> list[str]:
    body = [
        [_title(row, line), failing, escape("; ".join([reason, *known]))]
        for row, line in shown
        for failing, reason, known in line.failures(levels)
    ]
    body += [[_title(row, line), "skipped", escape(line.skipped)] for row, line in shown if line.skipped]
    body += [[_title(row, line), "stale", STALE.format(line.verified)] for row, line in shown if line.stale]
    heading = ["framework", "level", "reason"]
    return ["## Failed, skipped or stale", table(heading, body, figures=False)] if body else []


def _networks(shown: list[Line]) -> list[str]:
    """What the page of a task with several networks has besides: the outputs of each, and those of the frameworks' own zoos.

    Rows that are stale are left out.
    """
    start, lines = output_of(""), []  # of rows: the differences of their outputs by network, and what they may be
    for row, line in shown:
        for finding in [] if line.stale else line.findings:
            measured = finding.measured.items()
            outputs = {name.removeprefix(start): value for name, value in measured if name.startswith(start)}
            if outputs:
                lines.append((row, outputs, finding.tolerances["output"]))
    if not lines:
        return []
    body, reasons, of_zoo = [], [], []
    zoo = {in_zoo(name) for row, _, _ in lines for name in row.facts.zoo}
    names = list(dict.fromkeys(name for _, outputs, _ in lines for name in outputs if name not in zoo))
    for row, outputs, tolerance in lines:
        title, lacking = escape(row.title), row.facts.lacking(gpu=False)  # the machine of the proof may compute some
        lacking = {name: why for name, why in lacking.items() if name not in outputs}
        body.append([title, *(_figure(outputs.get(name), "none" if name in lacking else "") for name in names)])
        reasons += [[title, f"`{name}`", escape(why)] for name, why in lacking.items()]
        for name, other in row.facts.zoo.items():
            value = outputs.get(in_zoo(name))
            same = "" if value is None else "yes" if value <= tolerance else "**no**"
            of_zoo.append([title, f"`{name}`", f"another one: {other}" if other else same, _figure(value)])
    parts = ["## Outputs of each network", OUTPUTS, table(["framework", *(f"`{name}`" for name in names)], body)]
    if reasons:
        parts += [NONE, table(["framework", "has no", "reason"], reasons, figures=False)]
    if of_zoo:
        heading = ["framework", "network", "the same", "difference"]
        parts += ["## From the frameworks' zoos", ZOO, table(heading, of_zoo, figures=False)]
    return parts


def _figure(value: float | None, otherwise: str = "") -> str:
    return otherwise if value is None else f"{value:.0e}"
