"""What ``run_all.py doctor --check`` does: in every environment that fits, one convolution on the device, as a notebook sets it up."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.text import Text

from common.check import ALLOWED, MARK
from rosetta import catalog, plan
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.figures import GIBIBYTES
from rosetta.journal import STYLES
from rosetta.kinds.kind import Metrics
from rosetta.measure import scripts
from rosetta.run import devices
from rosetta.run.completion import on_the_cpu
from rosetta.run.devices import Slot
from rosetta.run.installer import Tell, events
from rosetta.run.kernels import Kernels
from rosetta.run.telemetry import RunMeter
from rosetta.tasks import UNTIMED
from rosetta.terminal import Console

PROGRAMS = "check"  # below programs/
ROLES = ("parameters", "setup")  # cells of a notebook that a check begins with
INPUTS = "from common import check\nfrom common.check import tell\n\nx, w = check.inputs()"
TIMEOUT_S = 600


@dataclass(frozen=True)
class Checked:
    status: str  # "ok", "failed" or "skipped"
    text: str


def main(names: list[str], task: str | None, kernels: Kernels, gpus: str | None) -> int:
    """One line for each framework in each environment, on each model of GPU or on the CPU. Exit code 1 if one fails.

    A row that this machine cannot hold is skipped; that counts as a failure only if the row was asked for by name.
    """
    known, console = catalog.load(), Console()

    def tell(text: str) -> None:
        console.say(f"  {text}", "dim")

    slots = {slot.machine.name: slot for slot in devices.timed(gpus, threads=None)}
    rows = {(row.framework, row.environment, row.imports[0]): row for row in reversed(known.select(names, task))}
    bad = 0
    for slot in slots.values():
        console.say(f"on {slot.machine.about}")
        for row in reversed(rows.values()):
            checked = _check(row, known, slot, kernels, tell)
            bad += checked.status == "failed" or checked.status == "skipped" and bool(names)
            text = Text(f"  {known.label(row):<20} ").append(f"{checked.status:<8}", STYLES[checked.status])
            console.print(text.append(checked.text), soft_wrap=True)
    return 1 if bad else 0


def _check(row: Row, known: Catalog, slot: Slot, kernels: Kernels, tell: Tell) -> Checked:
    """Let a row's framework compute on a slot."""
    started = time.monotonic()
    try:
        with TemporaryDirectory(prefix="rosetta-") as folder:
            kernels.get(row, Path(folder) / "install.log", events(tell), slot.machine.gpus)
            if kernels.interpreter(row.environment) is None:
                kernels.environment(row, slot.machine.gpus).check_files()
            script = _script(row, known, Path(folder), slot, kernels)
            facts, memory = _run(script, slot)
    except Unavailable as reason:
        return Checked("skipped", str(reason))
    except RosettaError as error:
        return Checked("failed", str(error))
    about = [facts["device"], f"off by {facts['off']:.0e}" if facts["off"] is not None else "not finite"]
    about += [GIBIBYTES.one(memory)] if memory else []
    about += [f"{name} {version}" for name, version in facts["cuda"].items()]
    about += ["no cuDNN"] if slot.on_gpu and "cudnn" not in facts["cuda"] else []
    about += [f"{time.monotonic() - started:.0f} s"]
    trouble = _trouble(facts, memory, slot)
    return Checked("failed" if trouble else "ok", "; ".join(filter(None, [trouble, ", ".join(about)])))


def _script(row: Row, known: Catalog, folder: Path, slot: Slot, kernels: Kernels) -> scripts.Script:
    """The notebook's cells up to its setup, and the program's convolution."""
    cells, change = scripts.cells(row.notebook), scripts.changes(scripts.program(PROGRAMS, row), ROLES)
    first = {role: cells[role] for role in ROLES}
    first["setup"] += f"\n\n{INPUTS}"
    code = scripts.changed(first, change)
    planned = plan.make(known, [row], UNTIMED, {}, gpu=slot.on_gpu)[0]
    return scripts.write(planned, code, folder / "check.py", kernels, slot)


def _run(script: scripts.Script, slot: Slot) -> tuple[dict, int | None]:
    """The facts that a script tells, and the GPU memory that it took, in bytes. Raises RosettaError if it does not."""
    metrics, meter = Metrics(), RunMeter(os.getpid(), slot.gpus)
    with meter:
        output = script.run(slot, TIMEOUT_S)
    meter.fill(metrics)
    facts = [line[len(MARK) :] for line in output.splitlines() if line.startswith(MARK)]
    if not facts:
        raise RosettaError("its script ended without an answer")
    return json.loads(facts[-1]), metrics.peak_gpu_memory


def _trouble(facts: dict, memory: int | None, slot: Slot) -> str | None:
    """What is wrong with what was computed, in a few words."""
    elsewhere = on_the_cpu(slot.machine.gpus, facts["device"], memory)
    if elsewhere:
        return f"computed on the CPU: {elsewhere}"
    if facts["off"] is None:
        return "the result is not finite"
    if facts["off"] > ALLOWED:
        return f"not FP32: off by more than {ALLOWED:.0e} of the largest value, as with TF32"
    return None
