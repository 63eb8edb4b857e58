"""All records of a task as one file, for a spreadsheet or a program."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from rosetta.records import Record
from rosetta.site import addresses
from rosetta.site.content import TaskContent
from rosetta.site.pages import Pages


def write(pages: Pages, content: TaskContent) -> None:
    """``results/<task>.csv``, a line a record, and ``results/<task>.json``, which has lists such as the loss of each epoch too."""
    entries = [_entry(record) for record in content.results.records]
    pages.save(addresses.download(content.key, "json"), json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
    pages.save(addresses.download(content.key, "csv"), _csv(entries))


def _entry(record: Record) -> dict[str, Any]:
    """What a run was, then its metrics under their own names: times in seconds, memory in bytes."""
    return {
        "row": record.name,
        "framework": record.framework,
        "title": record.title,
        "machine": record.machine.name,
        "gpus": [gpu.name for gpu in record.machine.gpus],
        "device": record.device,
        "preset": record.preset,
        "changed": record.changed,
        "synthetic": record.dataset.synthetic,
        "seed": record.seed,
        "status": record.status,
        "started": record.started.isoformat(),
        "versions": record.versions,
        **record.metrics.model_dump(mode="json"),
        "record": addresses.record(record),
    }


def _csv(entries: list[dict[str, Any]]) -> str:
    names = dict.fromkeys(name for entry in entries for name in entry)
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _flat(value) for name, value in entry.items()} for entry in entries)
    return text.getvalue()


def _flat(value: Any) -> Any:
    """What one field of a spreadsheet can hold."""
    if isinstance(value, dict):
        return _flat(f"{name} {inside}" for name, inside in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "; ".join(str(inside) for inside in value)
    return value
