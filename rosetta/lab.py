"""What ``run_all.py lab`` does: JupyterLab with a kernel for every framework, each listed by its name."""

import os
import shutil
import subprocess
from pathlib import Path

from rosetta import catalog
from rosetta.catalog import Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.paths import DATA, ROOT, SYNTHETIC
from rosetta.run import environments, machine
from rosetta.run.kernels import Kernels, write_kernelspec

ENVIRONMENT = "lab"
FOLDER = ROOT / ".jupyter"  # made anew each time; JUPYTER_PATH leads there


def lab(names: list[str], task: str | None, kernels: Kernels, arguments: list[str], synthetic: bool = False) -> int:
    """Make the environments that the rows and JupyterLab need, register their kernels, run JupyterLab until it ends; its exit code.

    arguments: for JupyterLab. synthetic: notebooks get generated data, so no data set is needed. A row that this machine
    cannot run is told and left out; raises RosettaError if none is left.
    """
    if os.pathsep in str(FOLDER):
        raise RosettaError(f"JupyterLab finds no kernels in a path with {os.pathsep!r}: move this checkout, {ROOT}")
    rows = one_a_kernel(catalog.load().select(names, task))
    registered = register(rows, kernels, FOLDER, {DATA: SYNTHETIC} if synthetic else {})
    if not registered:
        raise RosettaError("none of these rows can run on this machine")
    print(f"kernels: {', '.join(registered)}; choose one by the name of the notebook's framework")
    if synthetic:
        print("all of them get synthetic data")
    jupyter = environments.load(ENVIRONMENT)  # its own: what it brings would slow down the start of every run
    jupyter.provision(FOLDER / "install.log")
    command = [str(jupyter.python), "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}", *arguments]
    path = os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("JUPYTER_PATH"))))
    try:
        return subprocess.call(command, cwd=ROOT, env=os.environ | {"JUPYTER_PATH": path})
    except KeyboardInterrupt:  # JupyterLab has had it too
        return 0


def one_a_kernel(rows: list[Row]) -> list[Row]:
    """Of a framework's rows in the same environment the first: one kernel serves every task and variant."""
    return list({(row.framework, row.environment): row for row in reversed(rows)}.values())[::-1]


def register(rows: list[Row], kernels: Kernels, folder: Path, variables: dict[str, str]) -> list[str]:
    """A kernelspec for each row, where ``folder`` is on JUPYTER_PATH; returns the titles of those that could be had.

    variables: of the environment that notebooks see.
    """
    titles = []
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier call has registered
    folder.mkdir()
    gpus = [device.gpu for device in machine.devices()[:1]]  # its notebooks take the first
    for row in rows:
        print(f"{row.title}: environment {row.environment}", flush=True)
        try:
            kernel = kernels.get(row, folder / "install.log", print, gpus if kernels.has_build(row, gpus) else ())
        except Unavailable as reason:
            print(f"{row.title}: left out: {reason}")
            continue
        write_kernelspec(folder, kernel, variables, name=f"rosetta-{row.stem}".lower(), title=row.title)
        titles.append(row.title)
    return titles
