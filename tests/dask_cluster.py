"""A real Dask cluster for the tests: a scheduler and worker processes, on ports that the system chooses."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

START_S = 150


class DaskCluster:
    """Its files lie below ``folder``. Use as a context: whatever it has started ends with it."""

    def __init__(self, folder: Path):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.workers: list[subprocess.Popen] = []
        folder.mkdir(parents=True)
        # Without PYTHONPATH: a scheduler has no checkout
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(self.file))
        self._wait(lambda: self.file.is_file() and self.file.read_text().endswith("}"))

    def __enter__(self) -> "DaskCluster":
        return self

    def __exit__(self, *_) -> None:
        for process in [*self.workers, self.scheduler]:
            if process.poll() is None:
                for child in [*psutil.Process(process.pid).children(recursive=True), process]:
                    child.kill()
            process.wait()

    @property
    def address(self) -> str:
        return json.loads(self.file.read_text())["address"]

    def worker(self, checkout: Path | None, *options: str, nanny: bool = False, **variables: str) -> subprocess.Popen:
        """Start a worker that finds the checkout; call ``wait`` once all are started."""
        options += ("--local-directory", str(self.folder), "--death-timeout", "120")
        options += () if "--nthreads" in options else ("--nthreads", "1")
        variables |= {"PYTHONPATH": str(checkout)} if checkout else {}
        options = (self.address, "--nanny" if nanny else "--no-nanny", *options)
        self.workers.append(self._start("worker", *options, **variables))
        return self.workers[-1]

    def wait(self) -> "DaskCluster":
        """Until the scheduler knows all workers that were started."""
        self._wait(lambda: all("Registered to" in log.read_text() for log in self.folder.glob("worker-*.log")))
        return self

    def _start(self, what: str, *options: str, **variables: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--host", "127.0.0.1", "--no-dashboard"]
        env = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"} | variables
        with (self.folder / f"{what}-{len(self.workers)}.log").open("wb") as log:
            return subprocess.Popen(
                [*command, *options], cwd=self.folder, env=env, stdout=log, stderr=subprocess.STDOUT
            )

    def _wait(self, ready) -> None:
        deadline = time.monotonic() + START_S
        while not ready():
            logs = (f"{log.name}: {log.read_text()[-2000:]}" for log in self.folder.glob("*.log"))
            assert time.monotonic() < deadline, "\n".join(logs)
            time.sleep(0.1)
