"""Which values a parameter may have."""

import math

import pytest

from rosetta import catalog, plan, tasks
from rosetta.errors import RosettaError
from rosetta.paths import checkout
from rosetta.tasks import fits


@pytest.mark.parametrize(
    "usual, right, wrong",
    [
        (None, [None, 3, 0.5, "text", True], [[1], {"a": 1}, math.nan, math.inf]),
        (10, [1, 10, 10**6], [0, -1, 1.5, True, "10", None]),
        (0, [0, 7], [-1, 0.0]),
        (0.5, [0, 0.0, 7, 0.25], [-0.5, math.nan, math.inf, True, "0.5"]),
        (-0.5, [-7, 0, 3.5], [-math.inf]),
        (True, [False], [1, 0, None]),
        ("text", ["another"], [1, None]),
    ],
)
def test_value_has_the_type_of_the_usual_one_and_is_in_its_range(usual, right, wrong):
    assert [value for value in right if not fits(value, usual)] == []
    assert [value for value in wrong if fits(value, usual)] == []


def test_a_path_is_absolute_and_leads_somewhere(tmp_path, monkeypatch):
    """Notebooks run in folders of their own: a name that is relative to the user's folder would lead nowhere there."""
    task = tasks.load(checkout.notebooks / "resnet50_features")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    expected = {"IMAGES": str(tmp_path / "photos"), "BATCHSIZE": 8}
    assert plan.checked({"IMAGES": "photos", "BATCHSIZE": 8}, task) == expected
    with pytest.raises(RosettaError, match="IMAGES is a file or a folder, and there is no nowhere$"):
        plan.checked({"IMAGES": "nowhere"}, task)
    with pytest.raises(RosettaError, match="there is no 5$"):
        plan.checked({"INITIAL_WEIGHTS": 5}, task)


def refused(rows: str, **given: str) -> dict[str, str | None]:
    """Why rows of ``networks`` are refused with parameters that are given by hand."""
    known = catalog.load()
    asked = [row for row in known.rows("networks") if row.name in rows.split()]
    return {each.row.name: each.refused for each in plan.make(known, asked, "smoke", given, gpu=False)}


def test_row_that_ignores_a_path_or_a_switch_is_refused():
    """It would compute on noise under the name of the pictures."""
    said = "notebooks/networks/{}.ipynb does not take {}".format
    pictures = refused("pytorch paddle", IMAGES=str(checkout.notebooks))
    assert pictures == {"pytorch": None, "paddle": said("paddle", "IMAGES")}
    assert refused("pytorch cntk", SOURCE="zoo", NETWORK="vgg16") == {"pytorch": None, "cntk": said("cntk", "SOURCE")}
    with pytest.raises(RosettaError, match="unknown SOURCE in networks: zo; did you mean zoo"):
        refused("pytorch", SOURCE="zo")


def test_network_that_a_row_or_its_zoo_has_none_of_is_refused():
    rows = "keras[jax] keras2[cntk] pytorch[bf16]"
    lstm = refused(rows, NETWORK="lstm")
    assert lstm.pop("keras2[cntk]").startswith("Keras 2 on CNTK has no lstm: on CNTK, Keras 2.3.1 returns the cell")
    assert lstm == {"keras[jax]": None, "pytorch[bf16]": None}  # some CPUs compute it
    assert set(refused(rows, NETWORK="vgg16", SOURCE="zoo").values()) == {None}
    said = (
        "the zoo of {} has no alexnet; it has densenet121, inception_v3, resnet101, resnet152, resnet50, vgg16".format
    )
    assert refused(rows, NETWORK="alexnet", SOURCE="zoo") == {
        "keras[jax]": said("Keras on JAX"),
        "keras2[cntk]": said("Keras 2 on CNTK"),
        "pytorch[bf16]": None,
    }


def test_a_short_run_gives_each_device_its_batches():
    """BATCHSIZE is that of each device: a run of so few steps has the examples of all."""
    known = catalog.load()
    task = known.task("densenet_parallel")
    asked = {"DEVICES": 3, "BATCHSIZE": 4}
    few = task.kind.short(task.constants() | asked, steps=5, turns=2)
    assert few["N_TRAIN"] == 60 and task.kind.steps(task.constants() | asked | few) == 5
