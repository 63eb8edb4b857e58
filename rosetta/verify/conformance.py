"""One row through all levels of its kind, and the file that keeps what was found: ``results/conformance/<task>.json``."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field

from rosetta import files
from rosetta.catalog import Row
from rosetta.files import Strict
from rosetta.naming import Named
from rosetta.records import Commit, Machine
from rosetta.run.processes import error_line
from rosetta.verify import replay
from rosetta.verify.cross.infer import Agreement
from rosetta.verify.cross.train import Matrix
from rosetta.verify.kinds import proof
from rosetta.verify.levels import Finding
from rosetta.verify.probes import Outputs, Prober, Reference

SCHEMA = 2
FROM_RECORD = {"task", "framework", "variant", "commit", "machine", "device", "versions"}  # of the first probe


class Conformance(Named, Strict):
    """What was found of one row."""

    task: str
    framework: str
    variant: str | None
    digest: str  # of what decides the proof: rosetta/verify/digest.py
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
    def failed(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.passed]

    @property
    def passed(self) -> bool:
        return bool(self.findings) and not self.failed and not self.stale


class Report(Strict):
    """Everything that was verified of a task, by row; the matrix of the weights that its rows evaluated, or what they agree in."""

    version: Literal[SCHEMA] = Field(SCHEMA, alias="schema")
    rows: list[Conformance] = []
    matrix: Matrix | None = None
    agreements: list[Agreement] = []  # one for each way of the user to give inputs

    def add(self, new: Conformance) -> None:
        """A row that is verified again takes the place of what was there."""
        self.rows = [old for old in self.rows if old.name != new.name] + [new]

    def cross(self, new: Matrix | Agreement) -> None:
        """What is crossed again likewise."""
        if isinstance(new, Matrix):
            self.matrix = new
        else:
            self.agreements = [old for old in self.agreements if old.own != new.own] + [new]


def verify(row: Row, probe: Prober, reference: Reference, digest: str, gpu: bool) -> Conformance:
    """Run a row's probes and judge them. Whatever the notebook does is a finding, never an exception."""
    started = datetime.now(UTC)
    left: list[Outputs] = []

    def keeping(parameters: dict) -> Outputs:
        left.append(probe(parameters))
        return left[-1]

    findings, outputs = proof(reference.task.kind_name).judge(row, keeping, reference, gpu)
    record = outputs.record
    return Conformance(
        **record.model_dump(include=FROM_RECORD),
        digest=digest,
        verified=started.replace(microsecond=0),
        seconds=round((datetime.now(UTC) - started).total_seconds(), 1),
        synthetic=reference.synthetic,
        findings=findings,
        diagnosis=_diagnosis(findings, left, reference, row),
        skipped=record.error if outputs.skipped else None,
    )


def _diagnosis(findings: list[Finding], left: list[Outputs], reference: Reference, row: Row) -> dict[int, str]:
    """Never at the cost of the proof: a notebook may leave numbers that nobody has thought of."""
    failed = [finding.level for finding in findings if not finding.passed]
    if not failed:
        return {}
    try:
        return replay.of(findings, left, reference, row)
    except Exception as error:
        return {failed[0]: f"no diagnosis: {error_line(type(error).__name__, error)}"}


def read(results: Path, task: str) -> Report:
    """The report of a task below a results folder; an empty one where there is none yet."""
    return files.load(Report, _file(results, task), missing=Report())


def write(report: Report, results: Path, task: str) -> None:
    files.write(_file(results, task), report)


def _file(results: Path, task: str) -> Path:
    return results / "conformance" / f"{task}.json"
