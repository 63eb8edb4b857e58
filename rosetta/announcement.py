"""What a batch is going to do, before it does: where it runs, how to run less, each row with its estimate, what is installed."""

import shlex
from collections import Counter

from rich.console import Console

from rosetta.catalog import Catalog
from rosetta.figures import clock
from rosetta.plan import Plan
from rosetta.records import Machine
from rosetta.run import environments
from rosetta.run.devices import Slot
from rosetta.run.kernels import Kernels

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

    def tell(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    if whole:
        some = dict.fromkeys(shlex.quote(catalog.label(planned.row)) for planned, _ in ordered[:2])
        tell(LESS.format(" ".join(some)))
    for machine, titles in _columns(slots):
        tell(f"{machine.cpu}, {machine.cores} cores, {', '.join(titles)}; results as {machine.name}")
    repeats = Counter((planned.row.full_name, planned.column) for planned, _ in ordered)
    for planned, seconds in ordered:
        seeds = repeats.pop((planned.row.full_name, planned.column), 0)
        if not seeds:  # another seed of a row that is named already
            continue
        label = catalog.label(planned.row)
        title = f"{label}, {seeds} seeds" if seeds > 1 else label
        note = f"  ({planned.note})" if planned.note else ""
        size = planned.kind.size(planned.constants) + (", synthetic data" if planned.synthetic else "")
        each = " each" if seeds > 1 else ""
        tell(f"  {title:<20} {planned.preset:<6} {size}, about {clock(seconds)}{each}{note}")
    total = max(max(seconds for _, seconds in ordered), sum(seconds for _, seconds in ordered) / len(slots))
    side = f", {len(slots)} at a time" if len(slots) > 1 else ""
    runs = "1 run" if len(ordered) == 1 else f"{len(ordered)} runs"
    tell(f"{runs}{side}, about {clock(total)}{_installations(ordered, kernels)}")


def _installations(ordered: list[tuple[Plan, float]], kernels: Kernels) -> str:
    """What has to be installed before, with its size."""
    names = sorted({planned.row.environment for planned, _ in ordered})
    recipes = [environments.load(name) for name in names if kernels.interpreter(name) is None]
    missing = [recipe for recipe in recipes if not recipe.is_ready() and recipe.obstacle() is None]
    if not missing:
        return ""
    disk, download = (sum(getattr(one.recipe, field) for one in missing) for field in ("disk_gb", "download_gb"))
    several = f"{len(missing)} environments" if len(missing) > 1 else "an environment"
    return (
        f"; before, {several} will be installed ({', '.join(one.name for one in missing)}): "
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
