"""What a run of a row costs, roughly, measured and written down: ``cost`` of its line in ``task.toml``."""

import tomlkit

from rosetta import files
from rosetta.catalog import Row
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.tasks import Cost, Task

CORES = 2  # that costs are for
NOISE = 1.5  # times: a figure that is nearer to the written one than that is not written again


def measured(plan: Plan, record: Record) -> Cost:
    """From one run without a GPU: the time of an item, and what is left of the run's time."""
    rate = getattr(record.metrics, "examples_per_s", None)
    item_ms = 1000 / rate if rate else Cost().item_ms
    start_s = max(record.metrics.wall_s - plan.kind.items(plan.constants) * item_ms / 1000, 1)
    return Cost(start_s=float(f"{start_s:.2g}"), item_ms=float(f"{item_ms:.2g}"))


def write(task: Task, row: Row, cost: Cost) -> bool:
    """Write a row's cost into the task's file, unless that has one that is near. Whether it was written."""
    file, old = task.folder / "task.toml", row.facts.cost
    near = all(
        max(mine, given) <= NOISE * min(mine, given)
        for mine, given in ((cost.start_s, old.start_s), (cost.item_ms, old.item_ms))
    )
    if near and "cost" in row.facts.model_fields_set:
        return False
    new = tomlkit.parse(f"row = {{ cost = {{ start_s = {cost.start_s:g}, item_ms = {cost.item_ms:g} }} }}\n")["row"]
    content = tomlkit.parse(files.text(file))
    rows = content.setdefault("rows", tomlkit.table())
    if row.name not in rows:
        rows[row.name] = new
    elif "cost" in rows[row.name]:
        rows[row.name]["cost"].update(new["cost"])  # what it has of a GPU stays
    else:
        rows[row.name]["cost"] = new["cost"]
    files.write_atomically(file, tomlkit.dumps(content))
    return True
