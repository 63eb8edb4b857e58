"""Which runs are one experiment: the same conditions, several seeds."""

import json
from collections.abc import Iterable

from rosetta.records import Record


def condition(record: Record) -> tuple:
    """What decides the outcome of a run but for the seed: records of a row that have it in common are one experiment."""
    params = {name: value for name, value in record.params.items() if name != "SEED"}
    return (
        record.kind,
        record.notebook.sha256,
        json.dumps([params, record.versions, record.cuda], sort_keys=True),
        record.threads,
    )


def current(records: Iterable[Record]) -> list[Record]:
    """Of a row's records in one column, the newest and those of the same experiment, by their seeds.

    What was left by another notebook, other versions or other parameters does not count any more.
    """
    records = list(records)
    today = condition(max(records, key=lambda record: (record.started, -(record.seed or 0))))
    same = [record for record in records if condition(record) == today]
    return sorted(same, key=lambda record: record.params.get("SEED", 0))
