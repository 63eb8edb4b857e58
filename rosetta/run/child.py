"""The child process of one run: papermill executes the notebook, its output streams to this process's own.

``python -m rosetta.run.child FOLDER``: reads FOLDER/job.json, writes FOLDER/executed.ipynb and FOLDER/outcome.json.
Its standard input is a pipe from the runner: when that ends, the runner is gone and so is this process.
"""

import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rosetta.paths import ROOT, portable
from rosetta.run.processes import end_all, end_with_the_runner

LONGEST_SOCKET = 100  # characters of the path; systems take 104 or 108, of which the number of the socket needs a few
KERNEL_NAME = "rosetta"  # of the kernelspec that the runner has written for this run
LONGEST_ERROR = 500  # characters


@dataclass(frozen=True)
class Job:
    """What the child is told: paths from the repository's root where they can be."""

    notebook: str
    parameters: dict
    processors: tuple[int, ...] | None = None  # that the run may use; None leaves the choice to the framework
    clock: float = 0.0  # Unix time less the monotonic clock, both in seconds, when the run began
    start_timeout_s: int = 120  # for the kernel to answer

    @classmethod
    def read(cls, folder: Path) -> "Job":
        return cls(**json.loads((folder / "job.json").read_text()))

    def write(self, folder: Path) -> None:
        (folder / "job.json").write_text(json.dumps(asdict(self)))


@dataclass(frozen=True)
class Outcome:
    """What the child found: status "ok", "failed" (an exception) or "crashed" (the kernel died)."""

    status: str
    error: str | None = None

    @classmethod
    def read(cls, folder: Path) -> "Outcome | None":
        try:
            return cls(**json.loads((folder / "outcome.json").read_text()))
        except (OSError, ValueError):
            return None

    def write(self, folder: Path) -> None:
        (folder / "outcome.json").write_text(json.dumps(asdict(self)))


def main(folder: Path) -> int:
    end_with_the_runner()
    try:
        return _main(folder)
    finally:
        end_all()


def _main(folder: Path) -> int:
    job = Job.read(folder)
    if job.processors and hasattr(os, "sched_setaffinity"):  # the kernel inherits it
        os.sched_setaffinity(0, job.processors)
    outcome = execute(job, folder / "executed.ipynb")
    try:
        outcome.write(folder)
    except OSError as error:  # a full disk: the runner takes the last line instead
        print(f"{outcome.error or outcome.status}; the outcome could not be written: {error.strerror}")
        return 1
    return 0 if outcome.status == "ok" else 1


def execute(job: Job, executed: Path) -> Outcome:
    """Run the notebook as it would run in Jupyter: from its own folder, cell by cell."""
    import papermill
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_core.utils import run_sync
    from nbclient.exceptions import DeadKernelError
    from papermill.engines import NotebookExecutionManager, papermill_engines
    from papermill.exceptions import PapermillExecutionError

    from rosetta.run.client import Cells, SteadyClient

    papermill_engines.register("rosetta", Cells)
    # Papermill takes the seconds of cells from the clock of the day, which may be set meanwhile.
    # The monotonic clock is the system's: it goes on from where the runner has read it
    NotebookExecutionManager.now = lambda _: datetime.fromtimestamp(job.clock + time.monotonic(), UTC)
    notebook = Path(job.notebook)
    kernel = AsyncKernelManager(  # our own, to ask it afterwards how the kernel ended
        kernel_name=KERNEL_NAME,
        client_factory=SteadyClient,
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(executed.with_name("kernels"))]),
        connection_file=str(executed.with_name("connection.json")),  # of its own choice it would outlive a killed child
        **_connection(sockets(executed.parent) / "kernel"),
    )
    try:
        papermill.execute_notebook(
            str(notebook),
            str(executed).replace("{", "{{").replace("}", "}}"),  # papermill takes a path for a template
            job.parameters,
            engine_name="rosetta",
            kernel_name=KERNEL_NAME,
            cwd=str(ROOT / notebook.parent),
            stdout_file=sys.stdout,
            stderr_file=sys.stderr,
            progress_bar=False,
            start_timeout=job.start_timeout_s,
            km=kernel,
        )
    except PapermillExecutionError as error:
        print(*error.traceback, sep="\n")  # for the log
        return Outcome("failed", told(error.ename, error.evalue))
    except DeadKernelError:
        return Outcome("crashed", f"the kernel died: {ending(kernel.provisioner.process.returncode)}")
    except Exception as error:  # a kernel that does not start, a notebook that is none: all end as one line
        return Outcome("failed", told(type(error).__name__, error))
    finally:
        run_sync(kernel.shutdown_kernel)(now=True)  # all outputs are there by then
    return Outcome("ok")


def told(name: str, said: object) -> str:
    """An exception as one line of a length that a table can show."""
    line = (str(said).strip() or "no message").splitlines()[0]
    return portable(f"{name[:LONGEST_ERROR]}: {line[:LONGEST_ERROR]}{'…' if len(line) > LONGEST_ERROR else ''}")


def sockets(folder: Path) -> Path:
    """Where the kernel of a run has its sockets: not in the run's own folder, since their paths must be short."""
    return Path(tempfile.gettempdir()) / f"{folder.name}.sockets"


def _connection(path: Path) -> dict[str, str]:
    """How to reach a kernel: by files, since of runs that start together two may be given the same free port, and then one
    of their kernels dies. Only where the temporary folder has a long name it has to be ports."""
    return {"transport": "ipc", "ip": str(path)} if len(str(path)) <= LONGEST_SOCKET else {}


def ending(code: int | None) -> str:
    """How a process ended, for a reader: its exit code, or the signal and what usually sends it."""
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return name + {signal.SIGKILL: ", as the system sends it when memory runs out"}.get(-code, "")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
