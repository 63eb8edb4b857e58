"""How well a batch spreads over the workers of a Dask cluster: a notebook that sleeps, in a small checkout of its own."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat

from rosetta import records
from rosetta.errors import RosettaError
from rosetta.measure import keep, scripts
from rosetta.measure.turns import timed
from rosetta.paths import ROOT
from rosetta.records import Point
from rosetta.run.machine import describe
from rosetta.where import numbers, results_folder

FILES = {
    "catalog.toml": 'schema = 2\n[frameworks.sleeps]\ntitle = "Sleeps"\nenvironment = "own"\nimports = []\n'
    'released = 2026\nhomepage = "https://example.org"\n',
    "environments/own/environment.toml": f'python = "{sys.version_info.major}.{sys.version_info.minor}"\n',
    "environments/own/requirements.in": "",
    "environments/own/requirements.txt": "",
    "common/params/sleep.py": "SEED = 0\n",
    "notebooks/sleep/task.toml": 'title = "Sleep"\nkind = "entries"\n[presets]\nfull = {}\nquick = {}\nsmoke = {}\n',
}
CELLS = {
    "parameters": "SEED = 0",
    "setup": 'import sys, time; sys.path.append("../..")\nfrom common.record import emit',
    "answers": "time.sleep({seconds})",
    "record": 'emit({{"answers": 1}}, [], "cpu", "slept")',
}
WITHOUT_GPU = os.environ | {"CUDA_VISIBLE_DEVICES": ""}  # who sleeps computes nowhere, and a run on a GPU must
# Scheduler and workers, until a line comes; they import the checkout in which they start
CLUSTER = (
    "import sys; from distributed import LocalCluster; "
    "cluster = LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, memory_limit=0, dashboard_address=None); "
    "print(cluster.scheduler_address, flush=True); input(); cluster.close()"
)


def cluster(workers: str, runs: int, seconds: float, out: Path | None) -> int:
    """For each number of workers: seconds of the command, efficiency (the first time over the others', a worker) and overhead.

    Sleeping needs no processor, but each run starts an interpreter and a kernel.
    """
    asked, machine = numbers("--workers", workers), describe()
    print(f"{'workers':>7}{'time, s':>10}{'efficiency':>12}{'overhead a run, s':>19}")
    first_s = None  # worker seconds of the first line, which should be that of one worker
    for number in asked:
        took_s = _measured(number, runs, seconds)
        first_s = first_s or number * took_s
        overhead_s = number * took_s / runs - seconds
        print(f"{number:>7}{took_s:>10.1f}{first_s / (number * took_s):>12.3f}{overhead_s:>19.2f}", flush=True)
        at = {"workers": number, "runs": runs, "seconds": seconds}
        keep.machine("cluster", machine, [Point(at=at, values=[took_s])], results_folder(out))
    return 0


def _measured(workers: int, runs: int, seconds: float) -> float:
    """Seconds of the command for a batch on so many workers, which are ready before."""
    with tempfile.TemporaryDirectory() as name:
        checkout, out = Path(name, "checkout"), Path(name, "out")
        _write(checkout, seconds)
        with _started(checkout, workers) as address:
            command = [sys.executable, "run_all.py", "run", "--preset", "smoke", "--seeds", str(runs)]
            command += [f"--python=all={sys.executable}", "--out", str(out), "--cluster", address]
            took_s = timed(lambda: scripts.run("the batch", command, checkout, WITHOUT_GPU))
        finished = [record for _, record in records.read_all(out) if record.status == "ok"]
        if len(finished) != runs:
            raise RosettaError(f"{len(finished)} of {runs} runs finished")
        return took_s


def _write(checkout: Path, seconds: float) -> None:
    """A checkout with one row."""
    for name in ("common", "rosetta"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "run_all.py", checkout)
    for name, text in FILES.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    made = [nbformat.v4.new_markdown_cell("# Sleeps")]
    for role, code in CELLS.items():
        made.append(nbformat.v4.new_markdown_cell(f"## {role.title()}"))
        made.append(nbformat.v4.new_code_cell(code.format(seconds=seconds), metadata={"tags": [role]}))
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": kernelspec})
    nbformat.write(notebook, checkout / "notebooks" / "sleep" / "sleeps.ipynb")


@contextmanager
def _started(checkout: Path, workers: int) -> Iterator[str]:
    """The address of a cluster on this machine."""
    command = [sys.executable, "-c", CLUSTER, str(workers)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, cwd=checkout, env=WITHOUT_GPU, **pipes) as process:
        address = process.stdout.readline().strip()
        if not address:
            raise RosettaError("no cluster has started: python3 run_all.py measure cluster")
        try:
            yield address
        finally:
            process.communicate("\n")
