"""What a batch is going to do, before it does: where it runs, how to run less, each row with its estimate, what is installed."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator

from rosetta.catalog import Catalog
from rosetta.errors import Unavailable
from rosetta.figures import clock
from rosetta.plan import Plan
from rosetta.records import Machine
from rosetta.run.devices import Slot
from rosetta.run.environments import Environment
from rosetta.run.kernels import Kernels
from rosetta.terminal import Console

LESS = (
    "To run less: name rows (run_all.py run {}), or --task TASK, or --preset smoke. "
    "Ctrl-C stops, what is finished is kept, and run_all.py resume goes on."
)


def announce(
    catalog: Catalog,
    ordered: list[tuple[Plan, float]],
    slots: list[Slot],
    kernels: Kernels,
    console: Console,
    whole: bool = False,
) -> None:
    """Tell the plan and its estimate. whole: nobody has chosen rows, so how to choose comes first."""

    environments = list(_environments(ordered, slots, kernels))
    served = {planned.row.full_name for planned, found in environments if found}
    without = {planned.row.full_name: planned.row for planned, found in environments if not found}
    skipped = [catalog.label(row) for name, row in without.items() if name not in served]
    due = [(planned, seconds) for planned, seconds in ordered if catalog.label(planned.row) not in skipped]
    if whole:
        some = dict.fromkeys(shlex.quote(catalog.label(planned.row)) for planned, _ in (due or ordered)[:2])
        console.say(LESS.format(" ".join(some)))
    for machine, titles in _columns(slots):
        console.say(f"{machine.cpu}, {machine.cores} cores, {', '.join(titles)}; results as {machine.name}")
    for line in _lines(due, catalog):
        console.say(line)
    times = [seconds for _, seconds in due] or [0.0]
    total = max(max(times), sum(times) / len(slots))
    side = f", {len(slots)} at a time" if len(slots) > 1 else ""
    tasks = dict.fromkeys(planned.row.task for planned, _ in ordered)
    left_out = [catalog.label(row) for task in tasks for row in catalog.rows(task) if row.facts.gpu_only]
    if whole and left_out and not any(slot.on_gpu for slot in slots):
        console.say(f"left out, for they gain nothing without a GPU (name them to run them): {', '.join(left_out)}")
    builds = {found.title: found.gpu_build.note for _, found in environments if found and found.gpu_build}
    if builds:
        told = ", ".join(f"{title}: {note}" if note else title for title, note in sorted(builds.items()))
        console.say(f"builds for the GPU: {told}")
    if skipped:
        console.say(f"skipped, for want of a build for this GPU (run_all.py doctor says why): {', '.join(skipped)}")
    runs = "1 run" if len(due) == 1 else f"{len(due)} runs"
    console.say(f"{runs}{side}, about {clock(total)}{_installations(found for _, found in environments if found)}")


def _lines(due: list[tuple[Plan, float]], catalog: Catalog) -> Iterator[str]:
    """One a row and column, with its estimate."""
    repeats = Counter((planned.row.full_name, planned.column) for planned, _ in due)
    for planned, seconds in due:
        seeds = repeats.pop((planned.row.full_name, planned.column), 0)
        if not seeds:  # another seed of a row that is named already
            continue
        label = catalog.label(planned.row)
        title = f"{label}, {seeds} seeds" if seeds > 1 else label
        note = f"  ({planned.note})" if planned.note else ""
        size = planned.kind.size(planned.constants) + (", synthetic data" if planned.synthetic else "")
        each = " each" if seeds > 1 else ""
        what = f"refused: {planned.refused}" if planned.refused else f"{size}, about {clock(seconds)}{each}{note}"
        yield f"  {title:<20} {planned.preset:<6} {what}"


def _environments(
    ordered: list[tuple[Plan, float]], slots: list[Slot], kernels: Kernels
) -> Iterator[tuple[Plan, Environment | None]]:
    """What each run gets, unless that is an interpreter of the user's; None where there is no build."""
    for planned in {planned.row.full_name: planned for planned, _ in ordered}.values():
        for gpus in {slot.machine.name: slot.machine.gpus for slot in slots}.values():
            if kernels.interpreter(planned.row.environment) is None:
                try:
                    yield planned, kernels.environment(planned.row, gpus)
                except Unavailable:
                    yield planned, None


def _installations(needed: Iterable[Environment]) -> str:
    """What has to be installed before, with its size."""
    each = {found.title: found for found in needed}
    missing = [each[title] for title in sorted(each)]
    missing = [found for found in missing if not found.is_ready() and found.obstacle() is None]
    if not missing:
        return ""
    disk, download = (sum(getattr(found.holds, field) for found in missing) for field in ("disk_gb", "download_gb"))
    several = f"{len(missing)} environments" if len(missing) > 1 else "an environment"
    return (
        f"; before, {several} will be installed ({', '.join(found.title for found in missing)}): "
        f"{disk:.1f} GB of disk, {download:.1f} GB to download"
    )


def _columns(slots: list[Slot]) -> list[tuple[Machine, list[str]]]:
    """The machines that the slots make, each with its slots' titles."""
    columns: dict[str, tuple[Machine, list[str]]] = {}
    for slot in slots:
        gpus = ", ".join(gpu.name for gpu in slot.machine.gpus) or "no GPU"
        title = f"{slot.title}: {gpus}" if slot.machine.gpus else gpus
        columns.setdefault(slot.machine.name, (slot.machine, []))[1].append(title)
    return [(machine, list(dict.fromkeys(titles))) for machine, titles in columns.values()]
