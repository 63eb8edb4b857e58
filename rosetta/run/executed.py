"""Reads what an executed notebook holds: its record output, seconds of each cell, where it stopped."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from common.record import MIME
from rosetta.paths import portable

# Cells by role, and the field of the record that their seconds add up to
TIMED_ROLES = {
    "setup": "setup_s",
    "data": "data_s",
    "model": "build_s",
    "weights": "build_s",
    "optimizer": "build_s",
    "evaluate": "evaluate_s",
}


class ExecutedNotebook:
    def __init__(self, file: Path):
        self.cells = [
            cell for cell in json.loads(file.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
        ]

    def facts(self) -> dict[str, Any] | None:
        """The payload of the record output; None when the notebook did not get that far."""
        payloads = [
            output["data"][MIME] for cell in self.cells for output in cell["outputs"] if MIME in output.get("data", {})
        ]
        return payloads[-1] if payloads else None

    def seconds(self) -> dict[str, float]:
        """Seconds of the cells of each timed field."""
        found: dict[str, float] = {}
        for cell in self.cells:
            field = TIMED_ROLES.get(role(cell))
            duration = cell["metadata"].get("papermill", {}).get("duration")
            if field and duration is not None:
                found[field] = round(found.get(field, 0.0) + duration, 4)
        return found

    def began(self) -> datetime | None:
        """When the kernel took the first cell."""
        times = [cell["metadata"].get("papermill", {}).get("start_time") for cell in self.cells]
        return min((datetime.fromisoformat(time) for time in times if time), default=None)

    def stopped_in(self) -> str | None:
        """The role of the cell that raised, or that never got its reply because the kernel ended."""
        for cell in self.cells:
            started = cell["metadata"].get("papermill", {}).get("start_time")
            replied = "shell.execute_reply" in cell["metadata"].get("execution", {})
            if started and not replied or cell["metadata"].get("papermill", {}).get("exception"):
                return role(cell)
        return None


def role(cell: dict[str, Any]) -> str | None:
    tags = cell["metadata"].get("tags", [])
    return tags[0] if tags else None


def make_portable(file: Path) -> None:
    """Take the paths of this machine out of an executed notebook."""
    notebook = json.loads(portable(file.read_text(encoding="utf-8")))
    for name in ("input_path", "output_path"):
        notebook["metadata"].get("papermill", {}).pop(name, None)
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
