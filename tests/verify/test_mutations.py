"""The check is checked: a mistake planted in a copy of a notebook fails the level meant to see it and is named."""

import os
from pathlib import Path

import pytest

from rosetta import catalog
from rosetta.run import devices
from rosetta.run.devices import Workers
from rosetta.run.kernels import Kernels
from rosetta.verify import infer, speed, train
from rosetta.verify.conformance import PROOFS
from rosetta.verify.proof import Bench, Finding, Judge, Outputs, tolerances
from rosetta.verify.train import TOLERANCES, USUAL, Size
from tests.verify import densenet_mutations, imdb_mutations, mutations, networks_mutations, resnet_mutations
from tests.verify.copies import Copy, copied, edited
from tests.verify.mutations import NOTEBOOKS, Mutation

KNOWN = catalog.load()
PLANTED = {
    "cifar10_cnn": mutations.MUTATIONS,
    "imdb_gru": imdb_mutations.MUTATIONS,
    "resnet50_features": resnet_mutations.MUTATIONS,
    "networks": networks_mutations.MUTATIONS,
    "densenet_parallel": densenet_mutations.MUTATIONS,
}
SMALL = Size(n_test=20, drop_steps=50, n_drop_test=20)  # is enough for the other mistakes
OF_BATCHES = ("last test batch dropped", "outputs of a recorded step read late")  # need as many test batches as usual
TEST = "test_mistake_fails_its_level_and_is_named"
CASES = [
    (task, name, mistake)
    for task, planted in PLANTED.items()
    for name in NOTEBOOKS
    for mistake, mutation in planted.items()
    if mutation.edits(name)
]
Case = tuple[str, str, str]


def plant(case: Case, folder: Path) -> Copy:
    """The row's notebook with the mistake."""
    task, name, mistake = case
    (row,) = KNOWN.select([name], task)
    return copied(row, edited(row.code, PLANTED[task][mistake].edits(name)), folder)


def test_every_mistake_can_be_planted():
    for task, name, mistake in CASES:
        (row,) = KNOWN.select([name], task)
        code = row.code
        assert edited(code, PLANTED[task][mistake].edits(name)) != code, (task, name, mistake)
    assert len(CASES) > 100


@pytest.fixture(scope="module")
def findings(request, tmp_path_factory) -> dict[Case, tuple[list[Finding], dict[int, str]] | str | Exception]:
    """What the levels found of every mutant that is asked for and its diagnosis, or why one could not run here; two at a time."""
    synthetic, references = not os.environ.get("ROSETTA_DATA"), {}
    bench = Bench(Kernels(), Workers(devices.shared(gpus=None, jobs=None)))
    asked = [item.callspec.params for item in request.session.items if item.originalname == TEST]
    cases = [(params["task"], params["name"], params["mistake"]) for params in asked]
    for task, name, _ in cases:
        known, flavour = KNOWN.task(task), KNOWN.select([name], task)[0].facts.flavour
        made = {one.flavour: one for (of, _), one in references.items() if of == task}
        references[task, name] = made.get(flavour) or PROOFS[known.kind_name].Reference(known, flavour, synthetic)

    folders = {case: tmp_path_factory.mktemp("mutant") for case in cases}  # made here: threads would race for the first

    def judge(case: Case):
        task, name, mistake = case
        mutant, reference = plant(case, folders[case]), references[task, name]
        probe = bench.prober(mutant, reference)
        size = USUAL if mistake in OF_BATCHES else SMALL
        try:
            found, outputs = _judged(PLANTED[task][mistake], mutant, probe, reference, size)
        except Exception as error:  # is this mistake's alone
            return case, error
        if outputs.skipped:
            return case, outputs.error
        diagnose = getattr(PROOFS[reference.task.kind_name], "diagnose", lambda *left: {})
        return case, (found, diagnose(found, outputs, reference, mutant))

    return dict(bench.workers.each(judge, cases))


def _judged(mutation: Mutation, mutant: Copy, probe, reference, size: Size) -> tuple[list[Finding], Outputs]:
    """What the levels found that are meant to see a mistake, and what the last run left."""
    if mutation.network:
        alone = mutant.model_copy(update={"facts": mutant.facts.model_copy(update={"zoo": {}})})
        return speed.judge(alone, probe, OfOneNetwork(reference, mutation.network), gpu=False)
    if not reference.task.kind.trains:
        return infer.judge(mutant, probe, reference, gpu=False)
    limits = tolerances(TOLERANCES, reference.task, mutant)
    if mutation.level not in (2, 5):
        return train.trained(probe, reference, limits, size)
    left, judge = [], Judge(5, limits)

    def noted(parameters: dict) -> Outputs:
        left.append(probe(parameters))
        return left[-1]

    if mutation.level == 2:
        return [train.fresh(noted, reference, limits)], left[-1]
    train.shuffled(noted, reference, judge)
    if hasattr(reference.network, "dropout_losses"):
        train.dropped(noted, reference, judge, size)
    return [judge.finding], left[-1]


class OfOneNetwork(speed.Reference):
    """A task of networks that has this one alone."""

    def __init__(self, whole: speed.Reference, name: str):
        super().__init__(whole.task, whole.flavour, whole.synthetic)
        self.computed = {name: whole.computed[name]}


@pytest.mark.rows
@pytest.mark.drawn(6)
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("task, name, mistake", CASES)
def test_mistake_fails_its_level_and_is_named(findings, missing, task, name, mistake):
    judged = findings[task, name, mistake]
    if isinstance(judged, str):
        missing(judged)
    if isinstance(judged, Exception):
        raise judged
    found, about = judged
    mutation = PLANTED[task][mistake]
    failed = {finding.level: finding.reason for finding in found if not finding.passed}
    assert mutation.level in failed, f"only {failed} failed"
    print(f"{task}, {name}, {mistake}: level {mutation.level}: {failed[mutation.level]}; {about}")
    assert mutation.named is None or mutation.network or (mutation.named or mistake) in " ".join(about.values())
