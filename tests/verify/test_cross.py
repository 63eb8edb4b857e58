"""What cross-loading takes for agreement."""

from datetime import UTC, datetime

import numpy as np
import pytest

from rosetta import catalog
from rosetta.errors import RosettaError
from rosetta.records import Commit, Machine
from rosetta.verify import command, infer, train
from rosetta.where import Where

MACHINE = Machine(name="test-machine", cpu="a CPU", cores=2, memory=8 * 1024**3, os="an OS", gpus=[])


SETTING = {"made": datetime(2026, 11, 23, tzinfo=UTC), "commit": Commit(), "machine": MACHINE}


def matrix(**changed) -> train.Matrix:
    of_data = {"synthetic": False, "training": {"EPOCHS": 2, "N_TRAIN": 64}, "n_test": 50, "rows": ["one", "other"]}
    agreeing = {"hits": [[30, 30], [31, 31]], "others": [[0, 0], [0, 0]], "ties": [0, 0]}
    return train.Matrix(**SETTING | of_data | agreeing | changed)


@pytest.mark.parametrize(
    "changed, agree",
    [
        ({}, True),
        ({"hits": [[30, 31], [31, 31]], "ties": [1, 0]}, True),  # a tie may go either way
        ({"hits": [[30, 31], [31, 31]]}, False),  # an accuracy that the classes do not explain
        ({"others": [[0, 1], [0, 0]]}, False),  # one more right and one more wrong: the hits are the same
        ({"hits": [[30, None], [31, 31]], "others": [[0, None], [0, 0]]}, False),
    ],
)
def test_agreement(changed, agree):
    found = matrix(**changed)
    assert found.passed == agree
    text = "\n".join(found.section({}))
    assert ("All agree." in text) == agree and ("**They do not agree**" in text) != agree


@pytest.mark.parametrize(
    "proof, key, flavours, another",
    [
        (train, "imdb_gru", ("reset_after", "reset_after, epsilon hat"), "reset_before"),  # they differ in Adam alone
        pytest.param(
            infer, "resnet50_features", ("v1", "v1, biases of 1x1"), "v1.5", marks=pytest.mark.long
        ),  # in biases alone
    ],
)
def test_flavours_of_one_network(proof, key, flavours, another):
    task = catalog.load().task(key)
    one, same, other = (proof.Reference(task, flavour, synthetic=True) for flavour in (*flavours, another))
    assert proof.same_network(one, same) and not proof.same_network(one, other)


def agreement(outputs: list, own=()) -> infer.Agreement:
    size = len(outputs)
    rows, none = [f"row {number}" for number in range(size)], [[None] * size for _ in outputs]
    lists = {"apart": none, "others": none, "ties": [None] * size}
    found = infer.Agreement(**SETTING, own=list(own), inputs=4, rows=rows, **lists)
    infer.compare(found, outputs)
    return found


PLACES = np.array([[0.0, 0], [0, 1], [5, 0], [5, 2]])  # the nearest of each: 1, 0, 3, 2


@pytest.mark.parametrize(
    "change, own, agree, said",
    [
        (0, (), True, ("All agree.", "Allowed is 0.0001")),
        (PLACES * 1e-5, (), True, ("| row 0 | 0e+00 |",)),
        (PLACES * 1e-2, (), False, ("**They do not agree**",)),
        (PLACES * 1e-2, ("IMAGES",), True, ("of the same `IMAGES`", "## The same outputs, IMAGES")),
        ([[0, 0], [0, 5], [0, 0], [0, 0]], ("IMAGES",), False, ("**They do not agree**",)),  # [0, 6] is far from [0, 0]
    ],
)
def test_outputs_agree(change, own, agree, said):
    found = agreement([PLACES, PLACES + change], own)
    text = "\n".join(found.section({}))
    assert found.passed == agree and all(part in text for part in said), text


def test_nearest_ones_that_are_as_near_are_ties():
    found = agreement([np.array([[0.0], [1], [2]]), np.array([[0.0], [1.00001], [2]])], ("IMAGES",))
    assert found.ties == [1, 1] and found.others == [[0, 0], [0, 0]] and found.passed


def test_row_that_failed_is_no_agreement():
    found = agreement([PLACES, None])
    assert not found.passed and "failed" in "\n".join(found.section({}))


def test_rows_of_two_networks_are_refused(tmp_path):
    rows = ("imdb_gru/lasagne", "imdb_gru/cntk")
    with pytest.raises(RosettaError) as refused:
        command.crossload(Where(names=rows, synthetic=True, out=tmp_path), {})
    ways = "lasagne (reset_after, one bias, epsilon hat) and cntk (reset_before, epsilon hat)"
    assert str(refused.value) == f"{ways} compute different things from the same weights: name rows of one"
