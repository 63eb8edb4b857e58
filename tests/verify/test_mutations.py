"""The check is checked: a mistake of ``mutations``, planted in a copy of a notebook, fails the level meant to see it and is named."""

import os
from pathlib import Path

import pytest

from rosetta import catalog
from rosetta.batch.workers import Workers
from rosetta.measure import scripts
from rosetta.run import devices
from rosetta.run.kernels import Kernels
from rosetta.verify import replay, train
from rosetta.verify.levels import Finding
from rosetta.verify.probes import Bench
from rosetta.verify.train import TOLERANCES, USUAL, Reference, Size
from tests.verify.copies import Copy, copied
from tests.verify.mutations import MUTATIONS, NOTEBOOKS

KNOWN = catalog.load()
TASK = KNOWN.task("cifar10_cnn")
SMALL = Size(n_test=20, drop_steps=50, n_drop_test=20)  # is enough for the other mistakes
OF_BATCHES = ("last test batch dropped", "outputs of a recorded step read late")  # need as many test batches as usual
TEST = "test_mistake_fails_its_level_and_is_named"
CASES = [(name, mistake) for name in NOTEBOOKS for mistake in MUTATIONS if getattr(MUTATIONS[mistake], name)]


def plant(name: str, mistake: str, folder: Path) -> Copy:
    """The row's notebook with the mistake."""
    (row,) = KNOWN.select([name], TASK.key)
    return copied(row, scripts.edited(scripts.cells(row.notebook), getattr(MUTATIONS[mistake], name)), folder)


@pytest.fixture(scope="module")
def findings(request, tmp_path_factory) -> dict[tuple[str, str], tuple[list[Finding], dict[int, str]] | str]:
    """What the levels found of every mutant that is asked for and its diagnosis, or why one could not run here; two at a time."""
    reference = Reference(TASK, synthetic=not os.environ.get("ROSETTA_DATA"))
    bench = Bench(Kernels(), Workers(devices.shared(gpus=None, jobs=None)))

    def judge(case: tuple[str, str]):
        name, mistake = case
        mutant = plant(name, mistake, tmp_path_factory.mktemp("mutant"))
        probe = bench.prober(mutant, TASK, reference.synthetic)
        size = USUAL if mistake in OF_BATCHES else SMALL
        if MUTATIONS[mistake].level in (2, 5):  # one probe is enough to see it
            outputs, judged = train.dropped(probe, size), train.of_dropped
        else:
            outputs, judged = train.trained(probe, reference, size), train.of_trained
        if outputs.skipped:
            return case, outputs.error
        found = judged(outputs, reference, TOLERANCES, size)
        return case, (found, replay.of(found, [outputs], reference, mutant))

    asked = [item.callspec.params for item in request.session.items if item.originalname == TEST]
    return dict(bench.workers.each(judge, [(params["name"], params["mistake"]) for params in asked]))


@pytest.mark.rows
@pytest.mark.drawn(15)
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name, mistake", CASES)
def test_mistake_fails_its_level_and_is_named(findings, missing, name, mistake):
    if isinstance(findings[name, mistake], str):
        missing(findings[name, mistake])
    found, about = findings[name, mistake]
    level = MUTATIONS[mistake].level
    failed = {finding.level: finding.reason for finding in found if not finding.passed}
    assert level in failed, f"only {failed} failed"
    print(f"{name}, {mistake}: level {level}: {failed[level]}; {about}")
    assert (MUTATIONS[mistake].named or mistake) in " ".join(about.values())
