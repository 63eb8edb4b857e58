"""Reads what an executed notebook holds: its record output, seconds of each cell, where it stopped."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from common.record import MIME
from rosetta.paths import portable

COLOUR = re.compile(r"\x1b\[[\d;]*m")
# A cell's own place in IPython's traceback: of IPython 8 and newer, and of the older ones, where an arrow shows the line
PLACE = re.compile(
    r"^(?:Cell In ?\[\d+\], line |(?:<ipython-input-.*> in <module>|Input In ?\[\d+\], in <.*)\n(?:.*\n)*?-+> )(\d+)\b(?!, in)",
    re.MULTILINE,
)


class ExecutedNotebook:
    def __init__(self, file: Path):
        self.cells = [
            cell for cell in json.loads(file.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
        ]

    def payload(self) -> dict[str, Any] | None:
        """What the notebook handed over as its record; None when it did not get that far."""
        payloads = [
            output["data"][MIME] for cell in self.cells for output in cell["outputs"] if MIME in output.get("data", {})
        ]
        return payloads[-1] if payloads else None

    def seconds(self, fields: dict[str, str]) -> dict[str, float]:
        """Seconds of the cells, added up: fields maps roles to the names they are added up under."""
        sums: dict[str, float] = {}
        for cell in self.cells:
            field = fields.get(role(cell))
            duration = cell["metadata"].get("papermill", {}).get("duration")
            if field and duration is not None:
                sums[field] = round(sums.get(field, 0.0) + duration, 4)
        return sums

    def began(self) -> datetime | None:
        """When the kernel took the first cell."""
        times = [cell["metadata"].get("papermill", {}).get("start_time") for cell in self.cells]
        return min((datetime.fromisoformat(time) for time in times if time), default=None)

    def stopped_in(self) -> str | None:
        """The cell that raised, or that never got its reply because the kernel ended: its role, and the line where that is known."""
        for cell in self.cells:
            started = cell["metadata"].get("papermill", {}).get("start_time")
            replied = "shell.execute_reply" in cell["metadata"].get("execution", {})
            if started and not replied or cell["metadata"].get("papermill", {}).get("exception"):
                line = _raised_in(cell)
                return f"{role(cell)}, line {line}" if role(cell) and line else role(cell)
        return None


def role(cell: dict[str, Any]) -> str | None:
    tags = cell["metadata"].get("tags", [])
    return tags[0] if tags else None


def _raised_in(cell: dict[str, Any]) -> int | None:
    """The line of a cell that raised."""
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            found = PLACE.search(COLOUR.sub("", "\n".join(output["traceback"])))
            return int(found[1]) if found else None
    return None


def make_portable(file: Path) -> None:
    """Take the paths of this machine out of an executed notebook."""
    notebook = _portable(json.loads(file.read_text(encoding="utf-8")))
    for name in ("input_path", "output_path"):
        notebook["metadata"].get("papermill", {}).pop(name, None)
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _portable(part: Any) -> Any:
    """A part of a notebook, each of its texts as it reads: in JSON, an escaped character may stand before a path."""
    if isinstance(part, dict):
        return {name: _portable(value) for name, value in part.items()}
    if isinstance(part, list):
        return [_portable(value) for value in part]
    return portable(part) if isinstance(part, str) else part
