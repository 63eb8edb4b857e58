"""What a batch is going to do, before it does: how much it is, where it runs, and what is installed and downloaded first."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from rosetta.catalog import Catalog, Row
from rosetta.errors import Unavailable
from rosetta.figures import clock
from rosetta.paths import checkout, portable
from rosetta.plan import Plan
from rosetta.run.devices import Slot
from rosetta.run.environments import Environment
from rosetta.run.kernels import Kernels
from rosetta.tasks import UNTIMED

FEW = 8  # rows that have a line each
NO_BUILD = "for want of a build for this GPU (run_all.py doctor says why)"


def announced(
    catalog: Catalog,
    ordered: list[Plan],
    slots: list[Slot],
    kernels: Kernels,
    results: Path,
    to_download: Iterable[str] = (),
    whole: bool = False,
    rows: bool = False,
) -> Iterator[str]:
    """The lines that tell the plan: the sums first, then tasks and environments, or each row where ``rows`` asks for them or they are few.

    to_download: lines about data sets. whole: nobody has chosen rows, so how to run less is told, too.
    """
    machines = {slot.machine.name: slot.machine.gpus for slot in slots}
    usable: dict[
        str, list[Environment]
    ] = {}  # by row; none where it runs in an interpreter of the user's, or is skipped
    skipped: dict[str, list[Row]] = {}  # by the reason
    for row in {planned.row.full_name: planned.row for planned in ordered}.values():
        obstacles, usable[row.full_name] = {}, []
        for gpus in machines.values() if kernels.interpreter(row.environment) is None else ():
            try:
                choice = kernels.environment(row, gpus)
                obstacle = None if choice.is_ready() else choice.obstacle()
            except Unavailable:
                obstacle = NO_BUILD
            if obstacle:
                obstacles[obstacle] = None
            else:
                usable[row.full_name].append(choice)
        for reason in obstacles if not usable[row.full_name] else ():
            skipped.setdefault(reason, []).append(row)
    left_out = {row.full_name for rows_of_a_reason in skipped.values() for row in rows_of_a_reason}
    due = [planned for planned in ordered if planned.row.full_name not in left_out]
    environments = {choice.title: choice for choices in usable.values() for choice in choices}
    missing = [choice for choice in environments.values() if not choice.is_ready()]

    yield f"results: {portable(str(checkout.overview(results)))}, from the first run's end on"
    yield _sums(due, slots, missing)
    yield from _machines(slots)
    yield from to_download
    each = rows or len({planned.row.full_name for planned in due}) <= FEW
    yield from _rows(due, catalog) if each else _tasks_and_environments(due, catalog, usable)
    on_gpu = any(slot.on_gpu for slot in slots)
    tasks = dict.fromkeys(planned.row.task for planned in ordered)

    def names(rows: Iterable[Row]) -> str:
        return ", ".join(dict.fromkeys(row.name if len(tasks) == 1 else row.full_name for row in rows))

    gpu_only = [row for task in tasks for row in catalog.rows(task) if row.facts.gpu_only]
    asked = [planned.row for planned in due if planned.row.facts.gpu_only]
    if whole and gpu_only and not on_gpu:
        yield f"left out, for they gain nothing without a GPU (name them to run them): {names(gpu_only)}"
    elif not on_gpu:
        for reason in dict.fromkeys(row.facts.gpu_only for row in asked):
            yield f"on the CPU, where it gains nothing ({reason}): {names(row for row in asked if row.facts.gpu_only == reason)}"
    if capped := [planned for planned in due if planned.note]:
        yield f"at {capped[0].preset} only, for want of a GPU: {names(planned.row for planned in capped)}"
    if refused := [planned.row for planned in due if planned.refused]:
        yield f"refused (--plan --rows says why): {names(refused)}"
    if builds := {title: choice.gpu_build.note for title, choice in sorted(environments.items()) if choice.gpu_build}:
        noted = ", ".join(f"{title}: {note}" if note else title for title, note in builds.items())
        yield f"builds for the GPU: {noted}"
    for reason, skipped_rows in skipped.items():
        yield f"skipped, {reason}: {names(skipped_rows)}"
    if whole:
        plain_first = sorted((planned.row for planned in due or ordered), key=lambda row: row.variant is not None)
        some = list(dict.fromkeys(shlex.quote(row.name) for row in plain_first))[:2]
        shorter = "" if {planned.preset for planned in due} == {UNTIMED} else " or use --preset smoke"
        yield f"To run less, name rows (run_all.py run {' '.join(some)}){shorter}. --plan --rows lists all rows."
        yield "Ctrl-C stops: what is finished is kept, and run_all.py resume goes on."


def _sums(due: list[Plan], slots: list[Slot], missing: list[Environment]) -> str:
    """Runs, time, and what is installed before."""
    times = [planned.estimate_s() for planned in due] or [0.0]
    installed_s = sum(environment.install_s for environment in missing)
    total = max(max(times), sum(times) / len(slots)) + installed_s
    side = f", {len(slots)} at a time" if len(slots) > 1 else ""
    text = f"{'1 run' if len(due) == 1 else f'{len(due)} runs'}{side}, about {clock(total)}"
    if not missing:
        return text
    what = f"{len(missing)} environments" if len(missing) > 1 else f"the environment {missing[0].title}"
    return f"{text} ({clock(installed_s)} to install {what}: {_sizes(missing)})"


def _sizes(environments: list[Environment]) -> str:
    sums = [sum(getattr(one.holds, size) for one in environments) for size in ("disk_gb", "download_gb")]
    disk, download = (f"{size:.1f}" if size >= 0.1 else f"{size:.2f}" for size in sums)
    return f"{disk} GB of disk, {download} GB to download"


def _machines(slots: list[Slot]) -> Iterator[str]:
    """One line a machine that the slots make, with its slots."""
    for machine in {slot.machine.name: slot.machine for slot in slots}.values():
        titles = {}
        for slot in (slot for slot in slots if slot.machine.name == machine.name):
            gpus = ", ".join(gpu.name for gpu in slot.machine.gpus)
            titles[f"{slot.title}: {gpus}" if gpus else "no GPU"] = None
        yield f"{machine.cpu}, {machine.cores} cores, {', '.join(titles)}; results as {machine.name}"


def _rows(due: list[Plan], catalog: Catalog) -> Iterator[str]:
    """One line a row and column, with its estimate."""
    repeats = Counter((planned.row.full_name, planned.column) for planned in due)
    for planned in due:
        seeds = repeats.pop((planned.row.full_name, planned.column), 0)
        if not seeds:  # another seed of a row that is named already
            continue
        label = catalog.label(planned.row)
        title = f"{label}, {seeds} seeds" if seeds > 1 else label
        each, note = " each" if seeds > 1 else "", f"  ({planned.note})" if planned.note else ""
        refused = f"refused: {planned.refused}" if planned.refused else None
        yield f"  {title:<20} {planned.preset:<6} {refused or f'{_size(planned)}, about {clock(planned.estimate_s())}{each}{note}'}"


def _size(planned: Plan) -> str:
    return planned.kind.size(planned.constants) + (", synthetic data" if planned.synthetic else "")


def _tasks_and_environments(due: list[Plan], catalog: Catalog, usable: dict[str, list[Environment]]) -> Iterator[str]:
    """One line a task, and one an environment in the order of the batch."""

    def line(title: str, runs: list[Plan], what: str) -> str:
        rows, seconds = {planned.row.full_name for planned in runs}, sum(planned.estimate_s() for planned in runs)
        return f"  {title:<26} {len(rows):>4}  {clock(seconds):>9}  {what}".rstrip()

    yield f"  {'task':<26} {'rows':>4}  {'about':>9}  each"
    for key in dict.fromkeys(planned.row.task for planned in due):
        runs = [planned for planned in due if planned.row.task == key]
        usual, _ = Counter((planned.preset, _size(planned)) for planned in runs).most_common(1)[0]
        yield line(catalog.task(key).title, runs, ": ".join(usual))
    yield f"  {'environment':<26} {'rows':>4}  {'about':>9}  first"
    for name in dict.fromkeys(planned.row.environment for planned in due):
        runs = [planned for planned in due if planned.row.environment == name]
        choices = {choice.title: choice for planned in runs for choice in usable[planned.row.full_name]}.values()
        sizes = [f"install {choice.title}: {_sizes([choice])}" for choice in choices if not choice.is_ready()]
        yield line(name, runs, "; ".join(sizes) or "ready")
