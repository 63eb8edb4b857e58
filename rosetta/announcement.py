"""What a batch is going to do, before it does: how much it is, where it runs, and what is installed and downloaded first."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from rosetta.catalog import Catalog, Row
from rosetta.errors import Unavailable
from rosetta.figures import clock
from rosetta.paths import portable
from rosetta.plan import Plan
from rosetta.records import Machine
from rosetta.run.devices import Slot
from rosetta.run.environments import Environment
from rosetta.run.kernels import Kernels
from rosetta.terminal import Console

FEW = 8  # rows that are told one by one
NO_BUILD = "for want of a build for this GPU (run_all.py doctor says why)"

Timed = list[tuple[Plan, float]]  # plans with their estimates in seconds, in the order of the batch


def announce(
    catalog: Catalog,
    ordered: Timed,
    slots: list[Slot],
    kernels: Kernels,
    console: Console,
    results: Path,
    to_download: Iterable[str] = (),
    whole: bool = False,
    rows: bool = False,
) -> None:
    """Tell the plan: the sums first, then tasks and environments, or each row where ``rows`` asks for them or they are few.

    to_download: lines about data sets. whole: nobody has chosen rows, so how to run less is told, too.
    """
    environments = list(_environments(ordered, slots, kernels))
    skipped = _skipped(environments)
    left_out = {row.full_name for rows in skipped.values() for row in rows}
    due = [(planned, seconds) for planned, seconds in ordered if planned.row.full_name not in left_out]
    console.say(f"results: {portable(str(results / 'results.md'))}, from the first run's end on")
    console.say(_sums(due, slots, [found for _, found in environments if found]))
    for machine, titles in _columns(slots):
        console.say(f"{machine.cpu}, {machine.cores} cores, {', '.join(titles)}; results as {machine.name}")
    for line in to_download:
        console.say(line)
    each = rows or len({planned.row.full_name for planned, _ in due}) <= FEW
    for line in _rows(due, catalog) if each else _summary(due, catalog, environments):
        console.say(line)
    for line in _besides(catalog, due, skipped, environments, on_gpu=any(slot.on_gpu for slot in slots), whole=whole):
        console.say(line)
    if whole:
        plain_first = sorted((planned.row for planned, _ in due or ordered), key=lambda row: row.variant is not None)
        some = list(dict.fromkeys(shlex.quote(row.name) for row in plain_first))[:2]
        console.say(
            f"To run less, name rows (run_all.py run {' '.join(some)}) or use --preset smoke. --plan --rows lists all rows."
        )
        console.say("Ctrl-C stops: what is finished is kept, and run_all.py resume goes on.")


def _sums(due: Timed, slots: list[Slot], environments: list[Environment]) -> str:
    """Runs, time, and what is installed before."""
    times = [seconds for _, seconds in due] or [0.0]
    missing = list({found.title: found for found in environments if _is_missing(found)}.values())
    installed_s = sum(found.install_s for found in missing)
    total = max(max(times), sum(times) / len(slots)) + installed_s
    side = f", {len(slots)} at a time" if len(slots) > 1 else ""
    text = f"{'1 run' if len(due) == 1 else f'{len(due)} runs'}{side}, about {clock(total)}"
    if not missing:
        return text
    what = f"{len(missing)} environments" if len(missing) > 1 else f"the environment {missing[0].title}"
    sizes = _sizes(sum(found.holds.disk_gb for found in missing), sum(found.holds.download_gb for found in missing))
    return f"{text} ({clock(installed_s)} to install {what}: {sizes})"


def _sizes(disk_gb: float, download_gb: float) -> str:
    disk, download = (f"{size:.1f}" if size >= 0.1 else f"{size:.2f}" for size in (disk_gb, download_gb))
    return f"{disk} GB of disk, {download} GB to download"


def _skipped(environments: list[tuple[Plan, Environment | None]]) -> dict[str, list[Row]]:
    """Rows that this machine cannot hold, by the reason."""
    reasons: dict[str, dict[str, Row]] = {}
    served = {planned.row.full_name for planned, found in environments if found and not _obstacle(found)}
    for planned, found in environments:
        if planned.row.full_name not in served:
            reason = _obstacle(found) if found else NO_BUILD
            reasons.setdefault(reason, {})[planned.row.full_name] = planned.row
    return {reason: list(rows.values()) for reason, rows in reasons.items()}


def _obstacle(environment: Environment) -> str | None:
    return None if environment.is_ready() else environment.obstacle()


def _is_missing(environment: Environment) -> bool:
    return not environment.is_ready() and environment.obstacle() is None  # else its rows are skipped


def _summary(due: Timed, catalog: Catalog, environments: list[tuple[Plan, Environment | None]]) -> Iterator[str]:
    """One line a task, and one an environment in the order of the batch."""
    yield f"  {'task':<26} {'rows':>4}  {'about':>9}  each"
    for key in dict.fromkeys(planned.row.task for planned, _ in due):
        own = [(planned, seconds) for planned, seconds in due if planned.row.task == key]
        usual, _ = Counter((planned.preset, _size(planned)) for planned, _ in own).most_common(1)[0]
        yield _line(catalog.task(key).title, own, ": ".join(usual))
    found = {}
    for planned, environment in environments:
        found.setdefault(planned.row.environment, []).append(environment)
    yield f"  {'environment':<26} {'rows':>4}  {'about':>9}  first"
    for name in dict.fromkeys(planned.row.environment for planned, _ in due):
        own = [(planned, seconds) for planned, seconds in due if planned.row.environment == name]
        missing = {each.title: each.holds for each in found.get(name, []) if each and _is_missing(each)}
        sizes = [f"install {title}: {_sizes(held.disk_gb, held.download_gb)}" for title, held in missing.items()]
        yield _line(name, own, "; ".join(sizes) or "ready")


def _line(title: str, own: Timed, what: str) -> str:
    rows, seconds = {planned.row.full_name for planned, _ in own}, sum(seconds for _, seconds in own)
    return f"  {title:<26} {len(rows):>4}  {clock(seconds):>9}  {what}".rstrip()


def _size(planned: Plan) -> str:
    return planned.kind.size(planned.constants) + (", synthetic data" if planned.synthetic else "")


def _rows(due: Timed, catalog: Catalog) -> Iterator[str]:
    """One line a row and column, with its estimate."""
    repeats = Counter((planned.row.full_name, planned.column) for planned, _ in due)
    for planned, seconds in due:
        seeds = repeats.pop((planned.row.full_name, planned.column), 0)
        if not seeds:  # another seed of a row that is named already
            continue
        label = catalog.label(planned.row)
        title = f"{label}, {seeds} seeds" if seeds > 1 else label
        note = f"  ({planned.note})" if planned.note else ""
        each = " each" if seeds > 1 else ""
        refused = f"refused: {planned.refused}" if planned.refused else None
        yield f"  {title:<20} {planned.preset:<6} {refused or f'{_size(planned)}, about {clock(seconds)}{each}{note}'}"


def _besides(
    catalog: Catalog,
    due: Timed,
    skipped: dict[str, list[Row]],
    environments: list[tuple[Plan, Environment | None]],
    on_gpu: bool,
    whole: bool,
) -> Iterator[str]:
    """Which rows do less or nothing, and why; which builds compute on the GPU."""

    rows = [planned.row for planned, _ in due] + [row for rows in skipped.values() for row in rows]
    tasks = dict.fromkeys(row.task for row in rows)

    def names(rows: Iterable[Row]) -> str:
        return ", ".join(dict.fromkeys(row.name if len(tasks) == 1 else row.full_name for row in rows))

    left_out = [row for task in tasks for row in catalog.rows(task) if row.facts.gpu_only]
    if whole and left_out and not on_gpu:
        yield f"left out, for they gain nothing without a GPU (name them to run them): {names(left_out)}"
    if capped := [planned for planned, _ in due if planned.note]:
        yield f"at {capped[0].preset} only, for want of a GPU: {names(planned.row for planned in capped)}"
    if refused := [planned.row for planned, _ in due if planned.refused]:
        yield f"refused (--plan --rows says why): {names(refused)}"
    builds = {found.title: found.gpu_build.note for _, found in environments if found and found.gpu_build}
    if builds:
        told = ", ".join(f"{title}: {note}" if note else title for title, note in sorted(builds.items()))
        yield f"builds for the GPU: {told}"
    for reason, rows in skipped.items():
        yield f"skipped, {reason}: {names(rows)}"


def _environments(ordered: Timed, slots: list[Slot], kernels: Kernels) -> Iterator[tuple[Plan, Environment | None]]:
    """What each run gets, unless that is an interpreter of the user's; None where there is no build."""
    for planned in {planned.row.full_name: planned for planned, _ in ordered}.values():
        for gpus in {slot.machine.name: slot.machine.gpus for slot in slots}.values():
            if kernels.interpreter(planned.row.environment) is None:
                try:
                    yield planned, kernels.environment(planned.row, gpus)
                except Unavailable:
                    yield planned, None


def _columns(slots: list[Slot]) -> list[tuple[Machine, list[str]]]:
    """The machines that the slots make, each with its slots' titles."""
    columns: dict[str, tuple[Machine, list[str]]] = {}
    for slot in slots:
        gpus = ", ".join(gpu.name for gpu in slot.machine.gpus) or "no GPU"
        title = f"{slot.title}: {gpus}" if slot.machine.gpus else gpus
        columns.setdefault(slot.machine.name, (slot.machine, []))[1].append(title)
    return [(machine, list(dict.fromkeys(titles))) for machine, titles in columns.values()]
