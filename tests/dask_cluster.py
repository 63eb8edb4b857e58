"""A real Dask cluster for the tests: a scheduler and worker processes, on ports that the system chooses."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

START_S = 60


class DaskCluster:
    """Its files lie below ``folder``. Use as a context: whatever it has started ends with it."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", **variables: str):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.workers: list[subprocess.Popen] = []
        folder.mkdir(parents=True)
        options = ("--port", "0", "--host", host, "--no-dashboard", "--scheduler-file", str(self.file))
        # Without PYTHONPATH: a scheduler has no checkout
        self.scheduler = self._start("scheduler", "distributed.cli.dask_scheduler", options, variables)
        _wait(lambda: self.file.is_file() and self.file.read_text().endswith("}"), "no scheduler", self.folder)

    def __enter__(self) -> "DaskCluster":
        return self

    def __exit__(self, *_) -> None:
        for process in [*self.workers, self.scheduler]:
            for child in _tree(process.pid):
                child.kill()
            process.wait()

    @property
    def address(self) -> str:
        return json.loads(self.file.read_text())["address"]

    def worker(
        self,
        checkout: Path | None,
        *options: str,
        nanny: bool = False,
        address: str | None = None,
        before: tuple[str, ...] = (),
        **variables: str,
    ) -> subprocess.Popen:
        """Start a worker that finds the checkout; call ``wait`` once all are started. before: a command that starts it."""
        name = f"worker-{len(self.workers)}"
        nanny_option = "--nanny" if nanny else "--no-nanny"
        options = (address or self.address, "--no-dashboard", nanny_option, *options)
        options += ("--local-directory", str(self.folder), "--death-timeout", "120")
        if "--nthreads" not in options:
            options += ("--nthreads", "1")
        own = {"PYTHONPATH": str(checkout)} if checkout else {}
        process = self._start(name, "distributed.cli.dask_worker", options, own | variables, before)
        self.workers.append(process)
        return process

    def wait(self) -> "DaskCluster":
        """Until the scheduler knows all workers that were started."""

        def registered() -> bool:
            logs = [self.folder / f"worker-{number}.log" for number in range(len(self.workers))]
            return all("Registered to" in log.read_text() for log in logs)

        _wait(registered, "not all workers have come", self.folder)
        return self

    def _start(self, name: str, module: str, options, variables, before=()) -> subprocess.Popen:
        env = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"} | variables
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*before, sys.executable, "-m", module, *options],
                cwd=self.folder,
                env=env,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


def kill(process: subprocess.Popen) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _wait(there, what: str, folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while not there():
        if time.monotonic() > deadline:
            logs = "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in folder.glob("*.log"))
            raise TimeoutError(f"{what} in {START_S} s\n{logs}")
        time.sleep(0.1)
