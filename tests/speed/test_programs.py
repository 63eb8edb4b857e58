"""The programs of benchmarks/ train the same network as the notebooks they are measured against, and their phases are its phases."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest

from rosetta import catalog
from rosetta.batch.workers import Workers
from rosetta.catalog import Row
from rosetta.paths import ROOT
from rosetta.run import devices
from rosetta.run.kernels import Kernels
from rosetta.speed import scripts
from rosetta.verify import conformance, probes
from rosetta.verify.levels import TOLERANCES
from rosetta.verify.probes import Bench, Reference, Size

KNOWN = catalog.load()
TASK = KNOWN.tasks["cifar10_cnn"]
ROWS = KNOWN.rows("cifar10_cnn")
KINDS = ("fastest", "as_in_2018")
# Their programs are those of other rows here, with nothing that depends on the variant
LEFT_OUT = {
    ("fastest", "pytorch[compiled]"),
    ("fastest", "pytorch[torch1]"),
    ("as_in_2018", "pytorch[compiled]"),
    ("as_in_2018", "pytorch"),
    ("as_in_2018", "keras2[theano]"),
    ("as_in_2018", "keras2[cntk]"),
}
SIZE = Size(n_test=20, drop_steps=0, n_drop_test=0)
CASES = [
    (kind, row.name)
    for kind in KINDS
    for row in ROWS
    if scripts.program(kind, row).is_file() and (kind, row.name) not in LEFT_OUT
]
REAL = bool(os.environ.get("ROSETTA_DATA"))


class Changed(Row):
    """A row whose notebook is a copy elsewhere, with a program's cells."""

    path: Path

    @property
    def notebook(self) -> Path:
        return self.path


def rewritten(row: Row, kind: str, folder: Path) -> Changed:
    """Write the notebook into a checkout of its own, which has the real ``common``."""
    notebook = nbformat.read(row.notebook, as_version=4)
    code = scripts.changed(scripts.cells(row.notebook), scripts.changes(scripts.program(kind, row)))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = code[cell.metadata.tags[0]]
    path = folder / "notebooks" / row.task / row.notebook.name
    path.parent.mkdir(parents=True)
    shutil.copytree(ROOT / "common", folder / "common", ignore=shutil.ignore_patterns("__pycache__"))
    nbformat.write(notebook, path)
    return Changed(**row.model_dump(), path=path)


@pytest.fixture(scope="module")
def findings(request, tmp_path_factory) -> dict:
    """What levels 1, 3 and 4 found of every program that is asked for, or why it could not run here; two at a time."""
    reference = Reference(TASK, synthetic=not REAL)
    bench = Bench(Kernels(), Workers(devices.shared(gpus=None, jobs=None)))

    def judge(case: tuple[str, str]):
        kind, name = case
        (row,) = KNOWN.select("cifar10_cnn", [name])
        own = rewritten(row, kind, tmp_path_factory.mktemp("program"))
        outputs = probes.trained(bench.prober(own, TASK, reference.synthetic), reference, SIZE)
        if outputs.record.status == "skipped":
            return case, outputs.error
        tolerances = TOLERANCES | {quantity: looser.tolerance for quantity, looser in row.looser.items()}
        return case, conformance.of_trained(outputs, reference, tolerances, SIZE)

    asked = [item.callspec.params for item in request.session.items if item.originalname == "test_trains_the_network"]
    return dict(bench.workers.each(judge, [(params["kind"], params["name"]) for params in asked]))


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind, name", CASES)
def test_trains_the_network(findings, missing, kind, name):
    found = findings[kind, name]
    if isinstance(found, str):
        missing(found)
    assert [finding.level for finding in found] == [1, 3, 4]
    assert all(finding.passed for finding in found), [finding.reason for finding in found if not finding.passed]
