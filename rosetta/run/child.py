"""The process of one run: papermill executes the notebook, its output streams to this process's own.

``python -m rosetta.run.child FOLDER`` reads the job in FOLDER and writes executed.ipynb and the outcome there.
"""

import asyncio
import json
import logging
import os
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import papermill
from jupyter_client import AsyncKernelClient, AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output, output_from_msg
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError
from traitlets import Instance, Type

from common.record import MIME
from rosetta.paths import checkout
from rosetta.run import processes
from rosetta.run.processes import Job, Outcome, ending, error_line, sockets

NAME = "rosetta"  # of the kernel and of papermill's engine
LONGEST_SOCKET = 100  # characters of the path; systems take 104 or 108, of which the number of the socket needs a few
KEPT = 4 * 2**20  # characters of all outputs together; a record may have as many of its own
LINE = 2000  # characters of a line of an error
LINES = 200  # of its traceback
READ_S = 600  # seconds to read what a cell has printed, after its end: the 4 of nbclient are too few on a busy machine
OUTPUTS = ("stream", "display_data", "update_display_data", "execute_result")
LEFT_OUT = f"[output beyond {KEPT // 2**20} MiB is left out of this notebook; the run's log holds the end of what was printed]\n"


def main(folder: Path) -> int:
    job = Job(**json.loads((folder / processes.JOB).read_text()))
    if job.processors and hasattr(os, "sched_setaffinity"):  # the kernel inherits it
        os.sched_setaffinity(0, job.processors)
    outcome = execute(job, folder / "executed.ipynb")
    try:
        (folder / processes.OUTCOME).write_text(json.dumps(asdict(outcome)))
    except OSError as error:  # a full disk: the runner takes the last line instead
        print(f"{outcome.error or outcome.status}; the outcome could not be written: {error.strerror}")
        return 1
    return 0 if outcome.status == "ok" else 1


def execute(job: Job, executed: Path) -> Outcome:
    """Run the notebook as it would run in Jupyter: from its folder, cell by cell."""
    papermill_engines.register(NAME, Cells)
    logging.getLogger("papermill").setLevel(logging.ERROR)  # it does not know the parameters that a notebook imports
    # Papermill takes the seconds of cells from the clock of the day, which may be set meanwhile.
    # The monotonic clock is the system's: it goes on from where the runner has read it
    NotebookExecutionManager.now = lambda _: datetime.fromtimestamp(job.clock + time.monotonic(), UTC)
    socket = sockets(executed.parent) / "kernel"
    # By files, since of runs that start together two may be given the same free port, and then one of their kernels dies.
    # Only where the temporary folder has a long name it has to be ports
    by_files = {"transport": "ipc", "ip": str(socket)} if len(str(socket)) <= LONGEST_SOCKET else {}
    argv = [job.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = JobKernel(  # our own, to ask it afterwards how the kernel ended
        kernel_name=NAME,
        kernel_spec=KernelSpec(argv=argv, display_name=NAME, language="python", env=job.variables),
        connection_file=str(executed.with_name("connection.json")),  # of its own choice it would outlive a killed child
        **by_files,
    )
    try:
        papermill.execute_notebook(
            job.notebook,
            str(executed).replace("{", "{{").replace("}", "}}"),  # papermill takes a path for a template
            job.parameters,
            engine_name=NAME,
            kernel_name=NAME,
            language="python",  # a notebook need not name it
            cwd=str(checkout.root / job.folder),
            stdout_file=sys.stdout,
            stderr_file=sys.stderr,
            progress_bar=False,
            start_timeout=job.start_timeout_s,
            km=kernel,
        )
    except PapermillExecutionError as error:
        print(*error.traceback, sep="\n")  # for the log
        return Outcome("failed", error_line(error.ename, error.evalue))
    except DeadKernelError:
        return Outcome("crashed", f"the kernel died: {ending(kernel.provisioner.process.returncode)}")
    except Exception as error:  # a kernel that does not start, a notebook that is none: all end as one line
        return Outcome("failed", error_line(type(error).__name__, error))
    finally:
        run_sync(kernel.shutdown_kernel)(now=True)  # all outputs are there by then
    return Outcome("ok")


class SteadyClient(AsyncKernelClient):
    """Gives a kernel its time to start by the monotonic clock: jupyter's own limit ends when the clock of the day is set."""

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout):
                await super().wait_for_ready()
        except TimeoutError:
            raise RuntimeError(f"Kernel didn't respond in {timeout:g} seconds") from None


class JobKernel(AsyncKernelManager):
    """Starts the kernel that it is given, whatever Jupyter has installed under its name."""

    kernel_spec = Instance(KernelSpec)
    client_factory = Type(SteadyClient)


class Client(PapermillNotebookClient):
    """Executes cells as papermill does: shows all that is printed, but keeps outputs only as long as there is room."""

    room, left_out = KEPT, False

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        content = msg["content"]
        if msg["msg_type"] == "error":
            content["evalue"] = shortened(content["evalue"])
            content["traceback"] = [shortened(line) for line in content["traceback"][-LINES:]]
        elif msg["msg_type"] in OUTPUTS:
            size, is_record = len(json.dumps(content)), MIME in content.get("data", {})
            if size > (KEPT if is_record else self.room):
                if msg["msg_type"] == "stream":
                    self.log_output_message(output_from_msg(msg))
                if not self.left_out:
                    cell.outputs.append(new_output("stream", name="stderr", text=LEFT_OUT))
                    self.left_out = True
                return None
            self.room -= 0 if is_record else size
        return super().process_message(msg, cell, cell_index)


class Cells(Engine):
    """For papermill: what executes a notebook."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, start_timeout: int, **options: Any
    ) -> NotebookNode:
        options = {name: options[name] for name in ("km", "stdout_file", "stderr_file")}
        return Client(
            nb_man, kernel_name=kernel_name, startup_timeout=start_timeout, iopub_timeout=READ_S, **options
        ).execute()


def shortened(text: str) -> str:
    """A part of an error, up to so many characters: its beginning, and its end, where the trace of another process has its cause."""
    if len(text) <= LINE:
        return text
    return f"{text[: LINE // 2]} … ({len(text):,} characters) … {text[-LINE // 2 :]}"


if __name__ == "__main__":
    processes.end_with_the_runner()
    try:
        sys.exit(main(Path(sys.argv[1])))
    finally:
        processes.end_all()
