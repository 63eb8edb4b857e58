"""One row through all five levels, and the file that keeps what was found: ``results/conformance.json``."""

import json
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rosetta import records
from rosetta.catalog import Looser, Row
from rosetta.errors import RosettaError
from rosetta.naming import Named
from rosetta.records import Commit, Machine
from rosetta.verify import levels, probes
from rosetta.verify.levels import TOLERANCES, Finding, failed
from rosetta.verify.probes import Outputs, Prober, Reference, Size

FILE = "conformance.json"
SCHEMA = 1


class Conformance(Named, BaseModel):
    """What was found of one row."""

    model_config = ConfigDict(extra="forbid")

    task: str
    framework: str
    variant: str | None
    title: str
    environment: str
    verified: datetime
    commit: Commit
    notebook_sha256: str
    machine: Machine
    device: str | None
    versions: dict[str, str]
    synthetic: bool
    n_test: int
    seconds: float
    findings: list[Finding] = []  # one a level; none where the row was skipped
    looser: dict[str, Looser] = {}
    skipped: str | None = None  # why this machine cannot run the row

    @property
    def passed(self) -> bool:
        return bool(self.findings) and all(finding.passed for finding in self.findings)


class Report(BaseModel):
    """Everything that was verified, by row; a row that is verified again takes the place of what was there."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    version: int = Field(SCHEMA, alias="schema")
    rows: list[Conformance] = []

    def add(self, new: Conformance) -> None:
        self.rows = [old for old in self.rows if (old.task, old.name) != (new.task, new.name)] + [new]


def judge(row: Row, probe: Prober, reference: Reference, size: Size) -> tuple[list[Finding], Outputs]:
    """The findings of all levels, and what the first probe left. No findings where the row cannot be run here."""
    trained = probes.trained(probe, reference, size)
    if trained.record.status == "skipped":
        return [], trained
    dropped = probes.dropped(probe, reference, size)
    tolerances = TOLERANCES | {quantity: looser.tolerance for quantity, looser in row.looser.items()}
    findings = of_trained(trained, reference, tolerances, size) + of_dropped(dropped, reference, tolerances, size)
    return sorted(findings, key=lambda finding: finding.level), trained


def of_trained(outputs: Outputs, reference: Reference, tolerances: dict, size: Size) -> list[Finding]:
    """Levels 1, 3 and 4."""
    if outputs.error:
        return [failed(level, outputs.error) for level in (1, 3, 4)]
    metrics = outputs.record.metrics
    first = levels.weights(outputs.weights, metrics.parameters, reference.shapes)
    if not first.passed:
        return [first] + [failed(level, "the weights are not those of this network") for level in (3, 4)]
    expected, losses = reference.trained()
    probabilities, labels = reference.tested(outputs.weights, probes.BATCH, size.n_test)
    return [
        first,
        levels.forward(outputs.probabilities, probabilities, labels, metrics.accuracy, tolerances),
        levels.training(outputs.weights, metrics.loss, reference.start, expected, losses, tolerances),
    ]


def of_dropped(outputs: Outputs, reference: Reference, tolerances: dict, size: Size) -> list[Finding]:
    """Levels 2 and 5."""
    if outputs.error:
        return [failed(level, outputs.error) for level in (2, 5)]
    if not levels.weights(outputs.weights, outputs.record.metrics.parameters, reference.shapes).passed:
        return [failed(level, "the weights are not those of this network") for level in (2, 5)]
    losses = reference.dropped_losses(outputs.weights)
    probabilities, _ = reference.tested(outputs.weights, probes.DROP_BATCH, size.n_drop_test)
    return [
        levels.initial(outputs.weights, reference.network.glorot_bound),
        levels.dropout(outputs.record.metrics.loss, losses, outputs.probabilities, probabilities, tolerances),
    ]


def verify(row: Row, probe: Prober, reference: Reference, gpu: bool) -> Conformance:
    """Run a row's probes and judge them. Whatever the notebook does is a finding, never an exception."""
    started = datetime.now(UTC)
    size = Size.of(row, gpu)
    findings, outputs = judge(row, probe, reference, size)
    record = outputs.record
    return Conformance(
        task=row.task,
        framework=row.framework,
        variant=row.variant,
        title=row.title,
        environment=row.environment,
        verified=started.replace(microsecond=0),
        commit=record.commit,
        notebook_sha256=record.notebook.sha256,
        machine=record.machine,
        device=record.device,
        versions=record.versions,
        synthetic=reference.synthetic,
        n_test=size.n_test,
        seconds=round((datetime.now(UTC) - started).total_seconds(), 1),
        findings=findings,
        looser=row.looser,
        skipped=record.error if record.status == "skipped" else None,
    )


def read(results: Path) -> Report:
    """The report below a results folder; an empty one where there is none yet."""
    file = results / FILE
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Report()
    except (OSError, ValueError) as error:
        raise RosettaError(f"{file} is not valid: {str(error).splitlines()[0]}; mend or delete it") from None
    try:
        return Report.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RosettaError(f"{file} is not valid: {where}: {first['msg']}; mend or delete it") from None


def write(report: Report, results: Path) -> None:
    records.write_atomically(results / FILE, report.model_dump_json(by_alias=True, indent=1) + "\n")
