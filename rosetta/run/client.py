"""Executes a notebook's cells as papermill does, but keeps no more of what they show than a reader can use."""

import asyncio
import json
from typing import Any

from jupyter_client import AsyncKernelClient
from nbformat import NotebookNode
from nbformat.v4 import new_output, output_from_msg
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine

from common.record import MIME

KEPT = 4 * 2**20  # characters of all outputs together; a record may have as many of its own
LINE = 2000  # characters of a line of an error
LINES = 200  # of its traceback
READ_S = 600  # seconds to read what a cell has printed, after its end: the 4 of nbclient are too few on a busy machine
OUTPUTS = ("stream", "display_data", "update_display_data", "execute_result")
LEFT_OUT = f"[output beyond {KEPT // 2**20} MiB is left out of this notebook; the run's log holds the end of what was printed]\n"


class SteadyClient(AsyncKernelClient):
    """Gives a kernel its time to start by the monotonic clock: jupyter's own limit ends when the clock of the day is set."""

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout):
                await super().wait_for_ready()
        except TimeoutError:
            raise RuntimeError(f"Kernel didn't respond in {timeout:g} seconds") from None


class Client(PapermillNotebookClient):
    """Shows all that is printed, and keeps outputs as long as there is room."""

    room, told = KEPT, False

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        content = msg["content"]
        if msg["msg_type"] == "error":
            content["evalue"] = shortened(content["evalue"], LINE)
            content["traceback"] = [shortened(line, LINE) for line in content["traceback"][-LINES:]]
        elif msg["msg_type"] in OUTPUTS and not self._fits(content):
            if msg["msg_type"] == "stream":
                self.log_output_message(output_from_msg(msg))
            if not self.told:
                cell.outputs.append(new_output("stream", name="stderr", text=LEFT_OUT))
                self.told = True
            return None
        return super().process_message(msg, cell, cell_index)

    def _fits(self, content: dict[str, Any]) -> bool:
        size = len(json.dumps(content))
        if MIME in content.get("data", {}):
            return size <= KEPT
        if size > self.room:
            return False
        self.room -= size
        return True


class Cells(Engine):
    """For papermill: what executes a notebook."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, start_timeout: int, stdout_file: Any, stderr_file: Any, km: Any, **_: Any
    ) -> NotebookNode:
        return Client(
            nb_man,
            km=km,
            kernel_name=kernel_name,
            startup_timeout=start_timeout,
            iopub_timeout=READ_S,
            stdout_file=stdout_file,
            stderr_file=stderr_file,
        ).execute()


def shortened(text: str, longest: int) -> str:
    """The text up to so many characters."""
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text):,} characters)"
