"""What ``run_all.py lab`` does: JupyterLab on copies of the notebooks, each of which opens with its framework's kernel."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from rosetta import catalog, files
from rosetta.catalog import Row
from rosetta.errors import RosettaError, Unavailable
from rosetta.notebook import links
from rosetta.paths import DATA, SYNTHETIC, checkout, from_root
from rosetta.run import environments, kernels, machine
from rosetta.run.environments import events
from rosetta.run.kernels import Kernels, write_kernelspec
from rosetta.where import Where

ENVIRONMENT = "lab"
# Folders of the checkout that take no copies
PARTS = ("common", "docs", "environments", "programs", "results", "rosetta", "tests")


def lab(where: Where, arguments: list[str], folder: Path | None = None) -> int:
    """Make the environments that the rows and JupyterLab need, register their kernels, run JupyterLab; returns its exit code.

    arguments: for JupyterLab. folder: where the copies go; the checkout, or its ``notebooks/``, opens the notebooks
    themselves. A row that this machine cannot run is named and left out. Raises RosettaError if none is left, or where the
    folder cannot take copies.
    """
    chosen, opened = catalog.load().select(where.names, where.task), place(folder)
    variables = {DATA: SYNTHETIC} if where.synthetic else {}
    registered = register(one_a_kernel(chosen), kernels.chosen(where.python, where.build), checkout.kernels, variables)
    if not registered:
        raise RosettaError("none of these rows can run on this machine")
    print(f"kernels: {', '.join(row.title for row in registered)}")
    if opened == checkout.root:
        print("these are the checkout's own notebooks; choose each kernel by the name of its framework")
    else:
        copy(chosen, registered, opened)
    if where.synthetic:
        print("all of them get synthetic data")
    jupyter = environments.load(ENVIRONMENT)  # its own: what it brings would slow down the start of every run
    jupyter.provision(checkout.kernels / "install.log")
    command = [str(jupyter.python), "-m", "jupyterlab", f"--ServerApp.root_dir={opened}", *arguments]
    path = os.pathsep.join(filter(None, (str(checkout.kernels), os.environ.get("JUPYTER_PATH"))))
    try:
        return subprocess.call(command, cwd=opened, env=os.environ | {"JUPYTER_PATH": path})
    except KeyboardInterrupt:  # JupyterLab has had it too
        return 0


def place(folder: Path | None) -> Path:
    """The folder that JupyterLab opens, made ready for copies; that of the checkout if the checkout's own notebooks are meant."""
    folder = Path(os.path.realpath(os.path.expanduser(folder or checkout.root / "lab")))
    if folder == checkout.root or folder.is_relative_to(checkout.notebooks):
        return checkout.root
    if folder.is_relative_to(checkout.root) and folder.relative_to(checkout.root).parts[0] in PARTS:
        raise RosettaError(f"--in {from_root(folder)} is a part of the project: name a folder of your own")
    try:
        (folder / checkout.notebooks.name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RosettaError(f"--in {folder} takes no copies: {error.strerror}; name another folder") from None
    return folder


def one_a_kernel(rows: list[Row]) -> list[Row]:
    """Of a framework's rows in the same environment the first: one kernel serves every task and variant."""
    return list({served(row): row for row in reversed(rows)}.values())[::-1]


def served(row: Row) -> tuple[str, str]:
    """What rows of one kernel share."""
    return row.framework, row.environment


def kernel_name(row: Row) -> str:
    return f"rosetta-{row.stem}".lower()


def register(rows: list[Row], interpreters: Kernels, folder: Path, variables: dict[str, str]) -> list[Row]:
    """A kernelspec for each row, where ``folder`` is on JUPYTER_PATH; returns the rows whose kernel could be had.

    variables: of the environment that notebooks see.
    """
    registered = []
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier call has registered
    folder.mkdir()
    gpus = [device.gpu for device in machine.devices()[:1]]  # its notebooks take the first
    for row in rows:
        print(f"{row.title}: environment {row.environment}", flush=True)
        try:
            computes_on = gpus if interpreters.has_build(row, gpus) else ()
            kernel = interpreters.get(row, folder / "install.log", events(print), computes_on)
        except Unavailable as reason:
            print(f"{row.title}: left out: {reason}")
            continue
        write_kernelspec(folder, kernel, variables, name=kernel_name(row), title=row.title)
        registered.append(row)
    return registered


def copy(rows: list[Row], registered: list[Row], folder: Path) -> None:
    """The notebooks of the rows that have a kernel, and the pages that they link, in a folder of the same order.

    A notebook opens with the kernel of its first row. What is there already is the user's and stays.
    """
    by_kernel = {served(row): row for row in registered}
    first = {row.notebook: by_kernel[served(row)] for row in reversed(rows) if served(row) in by_kernel}
    made = 0
    for notebook in sorted(first):
        content, row = json.loads(files.text(notebook)), first[notebook]
        spec = {"display_name": row.title, "language": "python", "name": kernel_name(row)}
        content["metadata"]["kernelspec"] = spec
        made += _write(folder, notebook, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        for page in sorted(links(notebook)):
            if page.suffix == ".md" and page.is_relative_to(checkout.root) and page.is_file():
                _write(folder, page, files.text(page))
    kept = len(first) - made
    there = f" (already there, and left as they are: {kept})" if kept else ""
    print(f"notebooks copied to {folder}: {made}{there}; each opens with its kernel")


def _write(folder: Path, source: Path, text: str) -> bool:
    """Write what a file of the checkout becomes in a folder; returns False where it is there."""
    target = folder / source.relative_to(checkout.root)
    if os.path.lexists(target):
        return False
    files.write_atomically(target, text)
    return True
