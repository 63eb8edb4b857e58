"""Which runs are one experiment: the same conditions, several seeds."""

import json
import re
from collections.abc import Iterable

from rosetta.records import Record

CPU = re.compile(r"cpu|numpy", re.IGNORECASE)  # in a device as the frameworks name it; Chainer calls the CPU @numpy


def on_cpu_despite_gpu(record: Record) -> bool:
    """Whether the run had a GPU, and the framework computed on the CPU."""
    return bool(record.machine.gpus and record.device and CPU.search(record.device))


def condition(record: Record) -> tuple:
    """What decides the outcome of a run but for the seed: records of a row that have it in common are one experiment."""
    params = {name: value for name, value in record.params.items() if name != "SEED"}
    return (
        record.notebook.sha256,
        json.dumps([params, record.versions, record.cuda], sort_keys=True),
        record.threads,
        on_cpu_despite_gpu(record),
    )


def current(records: Iterable[Record]) -> list[Record]:
    """Of a row's records in one column, the newest and those of the same experiment, by their seeds.

    What was left by another notebook, other versions or other parameters does not count any more.
    """
    records = list(records)
    today = condition(max(records, key=lambda record: (record.started, -(record.seed or 0))))
    same = [record for record in records if condition(record) == today]
    return sorted(same, key=lambda record: record.params.get("SEED", 0))
