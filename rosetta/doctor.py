"""What this machine has and can run: ``list``, ``doctor``, and ``doctor --check``, which computes a convolution in every environment."""

import json
import os
import shutil
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.version import Version
from rich.text import Text

from common.check import ALLOWED, MARK
from rosetta import catalog, data, plan
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.figures import GIBIBYTES, Cell, Heading, Table
from rosetta.journal import STYLES
from rosetta.kinds.kind import Metrics
from rosetta.notebook import changed, changes, program
from rosetta.paths import checkout
from rosetta.records import Gpu
from rosetta.run import devices, environments, machine, scripts
from rosetta.run.devices import Slot
from rosetta.run.environments import Environment, Tell, events
from rosetta.run.execute import on_the_cpu
from rosetta.run.kernels import Kernels, chosen
from rosetta.run.telemetry import RunMeter
from rosetta.tasks import UNTIMED
from rosetta.terminal import Console
from rosetta.where import Where

PROGRAMS = "check"  # below programs/
INPUTS = "from common import check\nfrom common.check import tell\n\nx, w = check.inputs()"
TIMEOUT_S = 600


def list_rows(where: Where) -> None:
    """Print one line a row: name, environment, state here, years."""
    known, cards, kernels = catalog.load(), machine.cards(), chosen(where.python, where.build)
    rows = []
    for row in known.shown(where.task):
        framework = known.frameworks[row.framework]
        name = known.label(row) if len(known.tasks) == 1 else row.full_name
        state = f"cannot exist: {row.facts.absent}" if row.facts.absent else kernels.state(row, cards)
        rows.append([name, row.environment, state, str(framework.released), str(framework.retired or "")])
    _print_table(["row", "environment", "state here", "released", "ended"], rows)


def _print_table(headings: list[str], rows: list[list[str]]) -> None:
    Console().table(Table([*map(Heading, headings)], [[*map(Cell, row)] for row in rows]))


def tell(where: Where) -> int:
    """Print what this machine has; exit code 1 if the data or an environment cannot be had here. Nothing is changed."""
    known, cards, here, kernels = catalog.load(), machine.cards(), machine.describe(), chosen(where.python, where.build)
    gpus = [
        f"{one.id}: {one.gpu.name}, {one.gpu.memory / 2**30:.0f} GiB, compute capability {one.gpu.capability}, "
        f"driver {one.gpu.driver}, CUDA up to {one.gpu.cuda}"
        for one in machine.devices()
    ]
    needed = _environments(known, kernels, cards)
    free, disk = shutil.disk_usage(checkout.root).free, sum(environment.holds.disk_gb for environment in needed)
    rows = [
        ["machine", f"{here.cpu}, {here.cores} cores, {here.memory / 2**30:.0f} GiB; {here.os}"],
        ["GPU", "; ".join(gpus) or "none found"],
        ["disk", f"{free / 1e9:.0f} GB free" + ("" if free > 1e9 * disk else f"; all environments take {disk:.0f} GB")],
    ]
    for version in sorted({environment.python_version for environment in needed}, key=Version):
        rows.append([f"Python {version}", str(environments.find_python(version) or "not found")])
    own = [environment for environment in needed if kernels.interpreter(environment.name) is None]
    lacking = any(environment.obstacle() for environment in own if not environment.is_ready())
    for name in dict.fromkeys(task.data for task in known.tasks.values() if task.data):
        try:
            state = str(data.locate(name, fetch=False))
        except RosettaError as error:
            state, lacking = str(error), True
        rows.append([f"data {name}", state])
    for name in environments.names():
        rows += [[f"environment {name}", state] for state in _states(name, known, kernels, cards)]
    _print_table(["what", "state"], rows)
    return int(lacking)


def _environments(known: Catalog, kernels: Kernels, cards: list[Gpu]) -> list[Environment]:
    """All that rows get on these cards, each once, and those that no row has."""
    used = {row.environment for row in known.rows()}
    needed = {name: environments.load(name) for name in environments.names() if name not in used}
    for row in known.rows():
        for gpus in [[card] for card in cards] or [[]]:
            with suppress(Unavailable):
                environment = kernels.environment(row, gpus)
                needed[environment.title] = environment
    return list(needed.values())


def _states(name: str, known: Catalog, kernels: Kernels, cards: list[Gpu]) -> list[str]:
    """The states of an environment, each with the rows that it is of where there are several."""
    rows = defaultdict(list)
    for row in known.rows():
        if row.environment == name:
            rows[kernels.state(row, cards)].append(known.label(row))
    if len(rows) > 1:
        return [f"{state} ({', '.join(labels)})" for state, labels in rows.items()]
    return list(rows) or [environments.load(name).state()]


def check(where: Where) -> int:
    """Compute one convolution for each framework in each environment, on each model of GPU or on the CPU, a line each.

    Exit code 1 if one fails. A row that this machine cannot hold is skipped; that counts as a failure only if the row was
    asked for by name.
    """
    known, console, kernels = catalog.load(), Console(), chosen(where.python, where.build)
    slots = {slot.machine.name: slot for slot in devices.timed(where.gpus, threads=None)}
    asked = known.select(where.names, where.task)
    rows = {(row.framework, row.environment, row.imports[0]): row for row in reversed(asked)}
    bad = False
    for slot in slots.values():
        console.say(f"on {slot.machine.about}")
        for row in reversed(rows.values()):
            status, said = _check(row, known, slot, kernels, lambda text: console.say(f"  {text}", "dim"))
            bad |= status == "failed" or status == "skipped" and bool(where.names)
            text = Text(f"  {known.label(row):<20} ").append(f"{status:<8}", STYLES[status])
            console.print(text.append(said), soft_wrap=True)
    return int(bad)


def _check(row: Row, known: Catalog, slot: Slot, kernels: Kernels, tell: Tell) -> tuple[str, str]:
    """Let a row's framework compute on a slot; returns "ok", "failed" or "skipped", and what is said of it."""
    started = time.monotonic()
    try:
        with TemporaryDirectory(prefix="rosetta-") as folder:
            kernels.get(row, Path(folder) / "install.log", events(tell), slot.machine.gpus)
            if kernels.interpreter(row.environment) is None:
                kernels.environment(row, slot.machine.gpus).check_files()
            facts, memory = _compute(row, known, Path(folder), slot, kernels)
    except Unavailable as reason:
        return "skipped", str(reason)
    except RosettaError as error:
        return "failed", str(error)
    about = [facts["device"], f"off by {facts['off']:.0e}" if facts["off"] is not None else "not finite"]
    about += [GIBIBYTES.one(memory)] if memory else []
    about += [f"{name} {version}" for name, version in facts["cuda"].items()]
    about += ["no cuDNN"] if slot.on_gpu and "cudnn" not in facts["cuda"] else []
    about += [f"{time.monotonic() - started:.0f} s"]
    trouble = []
    if elsewhere := on_the_cpu(slot.machine.gpus, facts["device"], memory):
        trouble = [f"computed on the CPU: {elsewhere}"]
    elif facts["off"] is None:
        trouble = ["the result is not finite"]
    elif facts["off"] > ALLOWED:
        trouble = [f"not FP32: off by more than {ALLOWED:.0e} of the largest value, as with TF32"]
    return "failed" if trouble else "ok", "; ".join([*trouble, ", ".join(about)])


def _compute(row: Row, known: Catalog, folder: Path, slot: Slot, kernels: Kernels) -> tuple[dict, int | None]:
    """What the notebook's cells up to its setup and the program's convolution tell, and the GPU memory that they took, in bytes.

    Raises RosettaError if they tell nothing.
    """
    cells = row.code
    first = {"parameters": cells["parameters"], "setup": f"{cells['setup']}\n\n{INPUTS}"}
    code = changed(first, *changes(program(PROGRAMS, row.task, row.framework), tuple(first)))
    planned = plan.make(known, [row], UNTIMED, {}, gpu=slot.on_gpu)[0]
    script = scripts.write(planned, code, folder / "check.py", kernels, slot)
    metrics, meter = Metrics(), RunMeter(os.getpid(), slot.gpus)
    with meter:
        output = script.run(slot, TIMEOUT_S)
    meter.fill(metrics)
    facts = [line[len(MARK) :] for line in output.splitlines() if line.startswith(MARK)]
    if not facts:
        raise RosettaError("its script ended without an answer")
    return json.loads(facts[-1]), metrics.peak_gpu_memory
