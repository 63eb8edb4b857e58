"""What cross-loading takes for agreement."""

from datetime import UTC, datetime

import pytest

from rosetta import catalog
from rosetta.errors import RosettaError
from rosetta.records import Commit, Machine
from rosetta.verify import command, cross, train

MACHINE = Machine(name="test-machine", cpu="a CPU", cores=2, memory=8 * 1024**3, os="an OS", gpus=[])


def matrix(**changed) -> cross.Matrix:
    agreeing = {
        "made": datetime(2026, 11, 23, tzinfo=UTC),
        "commit": Commit(),
        "machine": MACHINE,
        "synthetic": False,
        "training": {"EPOCHS": 2, "N_TRAIN": 64},
        "n_test": 50,
        "rows": ["one", "other"],
        "hits": [[30, 30], [31, 31]],
        "others": [[0, 0], [0, 0]],
        "ties": [0, 0],
    }
    return cross.Matrix(**agreeing | changed)


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
    text = "\n".join(cross.section(found, {}))
    assert ("All agree." in text) == agree and ("**They do not agree**" in text) != agree


def test_flavours_of_one_network():
    """They differ in Adam alone."""
    task = catalog.load().task("imdb_gru")
    own, adam, before = (
        train.Reference(task, flavour, synthetic=True)
        for flavour in ("reset_after", "reset_after, epsilon hat", "reset_before")
    )
    assert cross.same_network(own, adam) and not cross.same_network(own, before)


def test_rows_of_two_networks_are_refused(tmp_path):
    options = command.Options(synthetic=True, out=tmp_path)
    with pytest.raises(RosettaError) as refused:
        command.crossload(["imdb_gru/lasagne", "imdb_gru/cntk"], {}, options)
    ways = "lasagne (reset_after, one bias, epsilon hat) and cntk (reset_before, epsilon hat)"
    assert str(refused.value) == f"{ways} compute different networks from the same weights: name rows of one"
