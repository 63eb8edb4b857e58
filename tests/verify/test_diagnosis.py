"""Every known mistake, planted in the NumPy notebook, is named; two at once are never given one mistake's name as certain."""

import contextlib
import importlib.util
import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

from common.reference import cifar10_cnn_mistakes as known
from rosetta import catalog
from rosetta.verify import train
from rosetta.verify.proof import Finding, Outputs
from rosetta.verify.train import TOLERANCES, Reference, Size
from tests.verify import plants

TASK = catalog.load().task("cifar10_cnn")
ROW = catalog.load().select(["pytorch"], TASK.key)[0]
SMALL = Size(n_test=20, drop_steps=60, n_drop_test=20)
CHANCELESS = {"DROPOUT_CONV": 0.0, "DROPOUT_FC": 0.0}


@pytest.fixture(scope="module")
def reference():
    """On batches of 12 in place of 64: the NumPy notebook takes two seconds for each probe."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROSETTA_DATA", "synthetic")
        for name, value in {"BATCH": 12, "BATCHSIZE": 18, "DROP_BATCH": 2}.items():
            patch.setattr(train, name, value)
        yield Reference(TASK, synthetic=True)


def edited(*mistakes: tuple[str, str | tuple[str, str]]) -> dict[str, str]:
    """The notebook's cells with mistakes: a cell's role, and the code in front of it, or a text of it and what is put there."""
    cells = dict(plants.CELLS)
    for role, code in mistakes:
        old, new = ("", f"{code}\n") if isinstance(code, str) else code
        assert old in cells[role]
        cells[role] = cells[role].replace(old, new, -1 if old else 1)
    return cells


def run(cells: dict[str, str], parameters: dict) -> Outputs:
    """The notebook in this process, with a reference of its own to plant mistakes in."""
    spec = importlib.util.find_spec("common.reference.cifar10_cnn")
    network = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(network)
    names, made = {}, []

    def record(log, accuracy, count, _, __, export_weights, predict):
        metrics = SimpleNamespace(loss=log.loss, accuracy=float(accuracy), parameters=count)
        weights = {name: np.array(array, np.float32) for name, array in export_weights().items()}
        params = {name: names[name] for name in ("N_TRAIN", "N_TEST", "BATCHSIZE")} | parameters
        made.append(Outputs(SimpleNamespace(params=params, metrics=metrics), weights, predict().astype(np.float32)))

    with contextlib.redirect_stdout(io.StringIO()):
        for role, code in cells.items():
            exec(code, names)
            if role == "parameters":
                names.update(parameters)
            elif role == "setup":
                names.update(network=network, record=record)
    return made[0]


def trained(reference, *mistakes) -> tuple[dict[int, Finding], dict[int, str]]:
    """What the first probe's levels find, and the diagnosis. mistakes: what ``edited`` takes, by role."""
    cells = edited(*mistakes)
    findings, left = train.trained(lambda parameters: run(cells, parameters), reference, TOLERANCES, SMALL)
    return {each.level: each for each in findings}, train.diagnose(findings, left, reference, ROW)


def test_the_reference_itself_has_no_diagnosis(reference):
    findings, about = trained(reference)
    assert all(finding.passed for finding in findings.values()) and about == {}


def test_every_known_mistake_is_planted_here():
    for kind in ("FORWARD", "TRAINING"):
        assert getattr(plants, kind).keys() == getattr(known, kind).keys()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", plants.FORWARD)
def test_mistake_of_the_forward_pass_is_named(reference, name):
    findings, about = trained(reference, ("evaluate", plants.FORWARD[name]))
    assert not findings[3].passed
    assert f"this is what happens with {name} (probability within" in about[3]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", plants.TRAINING)
def test_mistake_of_training_is_named(reference, name):
    findings, about = trained(reference, ("train", plants.TRAINING[name]))
    assert not findings[4].passed and findings[3].passed
    assert about[4].startswith("losses ") and re.search(f"what happens with {re.escape(name)}(, a guess)? ", about[4])


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "first, second",
    [
        ("Nesterov's momentum", "weight decay of 5e-4"),
        ("momentum 0", "labels off by one"),
        ("unit-gain momentum", "a short batch divided by BATCHSIZE"),
        ("a loss smoothed by 0.1", "Nesterov's momentum"),
        ("a short batch scaled up to BATCHSIZE", "biases that are not trained"),
    ],
)
def test_two_mistakes_at_once_are_a_guess_at_most(reference, first, second):
    _, about = trained(reference, ("train", plants.TRAINING[first]), ("train", plants.TRAINING[second]))
    assert "this is what" not in about[4]
    assert "a guess" not in about[4] or first in about[4] or second in about[4]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "code, said",
    [
        (
            ("batches(x_train, y_train, BATCHSIZE, SEED, epoch)", "[]"),
            "no batch came out of 12 images at batch 18: is the short batch dropped?",
        ),
        ("LR = 0", "the first agrees; the weights are those of the start: does the optimizer take a step?"),
    ],
)
def test_step_that_is_not_taken(reference, code, said):
    assert said in trained(reference, ("train", code))[1][4]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "line, said",
    [
        ("p[:-4]", "the first 16 of 20 test examples are there: is the last batch of the test dropped?"),
        (
            "numpy.concatenate([p[:4], p[8:12], p[8:]])",
            "4 test examples have the probabilities of others: are the outputs of a recorded step read late",
        ),
        ("numpy.roll(p, 3, axis=0)", "test example 1 stands at place 4: are the test examples shuffled?"),
    ],
)
def test_order_of_the_test_examples(reference, line, said):
    changed = f"right = network.probabilities\nnetwork.probabilities = lambda w, x: (lambda p: {line})(right(w, x))"
    short = ("== y_test", "== y_test[:len(predict())]")
    findings, about = trained(reference, ("evaluate", short), ("evaluate", changed))
    assert not findings[3].passed and said in about[3]
