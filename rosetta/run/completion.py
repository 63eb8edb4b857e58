"""The end of a run: its record is filled in from the executed notebook, and its status decided."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rosetta.files import reason
from rosetta.paths import portable
from rosetta.plan import Plan
from rosetta.records import Dataset, Gpu, Point, Record
from rosetta.run.child import Outcome, ending
from rosetta.run.executed import ExecutedNotebook, make_portable

HOSTS = ("cpu", "numpy")  # in a framework's name for the device that is none of its GPUs
NO_RECORD = "the notebook ended without a record"
LEAST_GPU_MEMORY = 16 * 2**20  # bytes: a process that only opens a GPU takes more


@dataclass(frozen=True)
class Ending:
    """How a run's process ended. ``last``: the last line that it printed. marked_j: energy between its progress lines."""

    timed_out: bool
    code: int
    last: str
    marked_j: float | None = None


class Payload(BaseModel):
    """What a notebook hands over (``common.record.emit``); ``metrics`` are those of the task's kind."""

    metrics: dict[str, Any]
    points: list[Point] = []
    device: str | None = None
    versions: dict[str, str] = {}
    cuda: dict[str, str] = {}
    thread_pools: dict[str, int] = {}
    dataset: Dataset | None = None


def complete(record: Record, plan: Plan, folder: Path, executed: Path, how: Ending, launched: datetime) -> None:
    """Fill the record and decide how the run ended; folder: where its process has left its outcome."""
    notebook = _read(executed)
    where, wrong = None, NO_RECORD
    if notebook:
        make_portable(executed)
        where = notebook.stopped_in()
        wrong = _fill(record, plan, notebook, how.marked_j)
        began = notebook.began()
        record.metrics.start_s = round((began - launched).total_seconds(), 4) if began else None
    record.status, record.error = _ended(record, plan, Outcome.read(folder), how, where, wrong)


def _fill(record: Record, plan: Plan, notebook: ExecutedNotebook, marked_j: float | None) -> str | None:
    """Move what the notebook reported into the record; returns what of it is not as it must be."""
    measured = record.metrics.model_dump(exclude_unset=True, exclude_none=True) | notebook.seconds(plan.kind.timed)
    record.metrics = plan.kind.metrics.model_validate(measured)
    payload = notebook.payload()
    if payload is None:
        return NO_RECORD
    try:
        facts = Payload.model_validate(payload)
        record.metrics = plan.kind.metrics.model_validate(facts.metrics | measured)
    except ValidationError as error:
        return f"the notebook's record is not one of kind {plan.kind.name}: {reason(error)}"
    record.device, record.versions, record.cuda = facts.device, facts.versions, facts.cuda
    record.thread_pools, record.points = facts.thread_pools, facts.points
    record.dataset = facts.dataset or record.dataset
    plan.kind.complete(record.metrics, record.params, marked_j)
    return None


def _ended(
    record: Record,
    plan: Plan,
    outcome: Outcome | None,
    how: Ending,
    where: str | None,
    wrong: str | None,
) -> tuple[str, str | None]:
    """Status and error of a run."""
    if how.timed_out:
        return "timeout", f"stopped after {plan.timeout_s:g} s, its limit (--timeout sets another)"
    if outcome is None:
        words = _last_words(how.last) if how.code >= 0 else ""  # who is killed has no say
        return "crashed", f"the run's process ended: {ending(how.code)}{words}"
    if outcome.status != "ok":
        return outcome.status, (outcome.error or "no message") + (f" (in the cell {where})" if where else "")
    if wrong:
        return "failed", wrong
    differing = [
        f"{name} is {_text(getattr(record.metrics, name))}, expected {_text(value)}"
        for name, value in plan.expected.items()
        if getattr(record.metrics, name) != value
    ]
    if differing:
        return "failed", "not the network of this task: " + "; ".join(differing)
    elsewhere = on_the_cpu(record.machine.gpus, record.device, record.metrics.peak_gpu_memory)
    if elsewhere:
        return "failed", f"computed on the CPU: {elsewhere}"
    trouble = plan.kind.trouble(record.metrics, record.params)
    return (trouble.status, trouble.error) if trouble else ("ok", None)


def on_the_cpu(gpus: list[Gpu], device: str | None, memory: int | None) -> str | None:
    """What shows that a run which had GPUs did not compute on them. memory: by how much what is in use there grew, in bytes."""
    if not gpus:
        return None
    if any(name in (device or "").lower() for name in HOSTS):
        return f"its device is {device}"
    if memory is not None and memory < LEAST_GPU_MEMORY:
        return f"the GPU's memory was never used (device: {device or 'not told'})"
    return None


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _read(file: Path) -> ExecutedNotebook | None:
    try:
        return ExecutedNotebook(file)
    except (OSError, ValueError, KeyError):  # the child ended before or while it wrote
        return None


def _last_words(line: str) -> str:
    """The last line that a process printed before it ended by itself without telling why."""
    return f" ({portable(line)[:200]})" if line else ""
