"""The check is checked: every mistake of ``mutations``, planted in copies of three notebooks, fails the level meant to see it."""

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
from rosetta.verify import conformance, probes
from rosetta.verify.levels import TOLERANCES, Finding
from rosetta.verify.probes import Bench, Reference, Size
from tests.verify.mutations import MUTATIONS, NOTEBOOKS

KNOWN = catalog.load()
TASK = KNOWN.tasks["cifar10_cnn"]
USUAL = Size(n_test=510, drop_steps=100, n_drop_test=100)
SMALL = Size(n_test=20, drop_steps=50, n_drop_test=20)  # is enough for the other mistakes
CASES = [(name, mistake) for name in NOTEBOOKS for mistake in MUTATIONS]


class Mutant(Row):
    """A row whose notebook is a changed copy elsewhere."""

    path: Path

    @property
    def notebook(self) -> Path:
        return self.path


def plant(name: str, mistake: str, folder: Path) -> Mutant:
    """Write the changed notebook into a checkout of its own, which has the real ``common``."""
    (row,) = KNOWN.select("cifar10_cnn", [name])
    notebook = nbformat.read(row.notebook, as_version=4)
    cells = {cell.metadata.tags[0]: cell for cell in notebook.cells if cell.cell_type == "code"}
    for role, before, after in getattr(MUTATIONS[mistake], name):
        assert before in cells[role].source, f"{name}: the cell {role} no longer holds {before}"
        cells[role].source = cells[role].source.replace(before, after)
    path = folder / "notebooks" / "cifar10_cnn" / row.notebook.name
    path.parent.mkdir(parents=True)
    shutil.copytree(ROOT / "common", folder / "common", ignore=shutil.ignore_patterns("__pycache__"))
    nbformat.write(notebook, path)
    return Mutant(**row.model_dump(), path=path)


@pytest.fixture(scope="module")
def findings(tmp_path_factory) -> dict[tuple[str, str], list[Finding] | str]:
    """What the levels found of every mutant, or why one could not run here; two at a time."""
    reference = Reference(TASK, synthetic=not os.environ.get("ROSETTA_DATA"))
    bench = Bench(Kernels(), Workers(devices.shared(gpus=None, jobs=None)))

    def judge(case: tuple[str, str]):
        name, mistake = case
        mutant = plant(name, mistake, tmp_path_factory.mktemp("mutant"))
        probe = bench.prober(mutant, TASK, reference.synthetic)
        size = USUAL if mistake == "last test batch dropped" else SMALL
        if MUTATIONS[mistake].level in (2, 5):  # one probe is enough to see it
            outputs = probes.dropped(probe, reference, size)
            found = conformance.of_dropped
        else:
            outputs = probes.trained(probe, reference, size)
            found = conformance.of_trained
        if outputs.record.status == "skipped":
            return case, outputs.error
        return case, found(outputs, reference, TOLERANCES, size)

    return dict(bench.workers.each(judge, CASES))


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name, mistake", CASES)
def test_mistake_fails_its_level(findings, missing, name, mistake):
    found = findings[name, mistake]
    if isinstance(found, str):
        missing(found)
    level = MUTATIONS[mistake].level
    failed = {finding.level: finding.reason for finding in found if not finding.passed}
    assert level in failed, f"only {failed} failed"
    print(f"{name}, {mistake}: level {level}: {failed[level]}")
