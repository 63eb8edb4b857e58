"""Every kind's proof, on a toy task of each: it passes as it is, and a planted mistake fails its level."""

import json
import re

import pytest

from rosetta.kinds import KINDS
from rosetta.verify.conformance import PROOFS
from tests import toys
from tests.inside import Inside
from tests.standin import one_line

# task, level that must fail, a text of the notebook's code, the mistake in its place
MISTAKES = [
    ("toy_train", 1, '{"fc.weight": weight', '{"weight": weight'),
    ("toy_train", 2, "rng.uniform(-0.5, 0.5", "rng.uniform(-0.9, 0.9"),
    ("toy_train", 3, "probabilities(x_test)", "probabilities(x_test[:, ::-1])"),
    ("toy_train", 4, "LR * (d.T @ x)", "LR * (d.T @ x + 0.05 * weight)"),
    ("toy_train", 5, "BATCHSIZE, SEED, epoch", "BATCHSIZE"),
    (
        "toy_train",
        5,
        "losses = [len(y) * step(x, y) for",
        "losses = [len(y) * (step(x, y) if len(y) == 8 or N_TRAIN != 20 else 0) for",
    ),
    ("toy_infer", 1, "weight, bias = load_weights", "load_weights"),
    ("toy_infer", 3, "@ weight.T + bias", "@ weight.T - bias"),
    ("toy_speed", 1, "lambda: weights, multiply_adds", "lambda: weights, 2 * multiply_adds"),
    ("toy_speed", 3, "x = np.maximum(x @ weight.T, 0)", "x = np.maximum(x @ weight.T, 0.1)"),
    ("toy_speed", 4, "np.float32(LR) * gradient", "np.float32(LR) * 2 * gradient"),
    ("toy_entries", 1, 'answers["largest"]', 'answers["smallest"]'),
    ("toy_entries", 2, "x.mean(axis=1)", "x.mean(axis=0)[:2]"),
    ("toy_entries", 2, "x.dtype.name", '"float32"'),
]
# Why each fails, x for its figure
REASONS = [
    "there is no tensor weight in this network; it has fc.weight, fc.bias",
    "fc.weight is not uniform within its bound, by its bound: x, allowed 1e-05",
    "test probabilities differ: x, allowed 0.0001",
    "the losses differ: x, allowed 0.0001",
    "the examples come in their own order: so many times nearer to it than by chance: x, allowed 2",
    "mean loss x instead of x, in sigmas: x, allowed 5",
    "fc.weight is not what INITIAL_WEIGHTS holds: x, allowed 1e-06",
    "the outputs differ: x, allowed 0.0001",
    "narrow: 96 multiply-adds instead of 48: x, allowed 0",
    "narrow: the outputs differ: x, allowed 0.0001",
    "narrow: the last losses differ: x, allowed 0.0001",
    "no answer for largest: x, allowed 0",
    "mean of rows differs: x, allowed 1e-05",
    "name is float32 instead of float64",
]


def wrong(place: int) -> str:
    return f"wrong{place}"


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    """One call for all tasks: (what it printed, the checkout, the findings of each row by level)."""
    with pytest.MonkeyPatch.context() as patch:
        yield _verified(Inside(tmp_path_factory.mktemp("toys") / "checkout", patch))


def _verified(standin):
    standin.catalog("".join(standin.entry(wrong(place)) for place in range(len(MISTAKES))))
    toys.write(standin.root)
    for place, (task, _, old, new) in enumerate(MISTAKES):
        toys.notebook(standin.root, task, old, new, framework=wrong(place))
    done = standin.call("verify", "--synthetic", "--out", str(standin.out))
    assert done.returncode == 1, done.stderr
    findings = {}
    for task in toys.TOYS:
        for row in json.loads((standin.out / "conformance" / f"{task}.json").read_text())["rows"]:
            findings[task, row["framework"]] = {finding["level"]: finding for finding in row["findings"]}
    return done, standin, findings


@pytest.mark.parametrize("task", toys.TOYS)
def test_notebook_that_is_right_passes(verified, task):
    done, standin, findings = verified
    assert all(finding["passed"] for finding in findings[task, "numpy"].values()), findings[task, "numpy"]
    levels = PROOFS[task.removeprefix("toy_")].LEVELS
    assert set(findings[task, "numpy"]) == set(levels)
    page = (standin.out / "conformance" / f"{task}.md").read_text()
    rows = 1 + sum(name == task for name, *_ in MISTAKES)
    assert f"**1 of {rows} rows pass all {len(levels)} levels**" in page
    assert f"{task}/numpy: ok" in done.stdout and "| NumPy (SYNTHETIC data) |" in page


@pytest.mark.parametrize("place", range(len(MISTAKES)), ids=lambda place: f"{MISTAKES[place][0]}-{MISTAKES[place][1]}")
def test_mistake_fails_its_level(verified, place):
    task, level, *_ = MISTAKES[place]
    finding = verified[2][task, wrong(place)][level]
    assert not finding["passed"], verified[2][task, wrong(place)]
    reason = re.sub(r": ([\d.e+]+|inf), allowed", ": x, allowed", finding["reason"])
    assert re.sub(r"\d\.\d{4}(?= in)|(?<=instead of )\d\.\d{4}", "x", reason) == REASONS[place]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--task", "toy_speed"), "toy_speed is of kind speed"),
        (("numpy",), "rows of one task"),
        ((), "rows of one task"),
        (("toy_train/numpy",), "crossload needs two rows or more"),
    ],
)
def test_rows_that_cannot_be_cross_loaded_are_one_line(verified, arguments, message):
    _, standin, _ = verified
    done = standin.call("crossload", *arguments, "--synthetic", "--out", str(standin.out))
    assert done.returncode == 2 and message in one_line(done.stderr)


def test_rows_that_have_not_changed_are_not_verified_again(inside):
    inside.catalog(inside.entry("wrong"))
    toys.write(inside.root)
    toys.notebook(inside.root, "toy_entries", "x.mean(axis=1)", "x.mean(axis=0)", framework="wrong")

    def verify(*arguments: str) -> str:
        return inside.call("verify", *arguments, "--synthetic", "--out", str(inside.out)).stdout

    first = verify("toy_entries/numpy", "toy_infer/numpy")
    assert "2 of 2 rows pass all levels;" in first, "neither task has data that could be synthetic"
    again = verify()
    assert re.search(r"4 of 5 rows pass all levels \(2 unchanged since \d{4}-\d\d-\d\d, 3 verified now\)", again), again
    assert "wrong: FAILED" in again and "toy_infer/numpy" not in again
    assert "[1/1] wrong: FAILED" in verify(), "a row that fails is verified again"
    assert "[1/1] wrong" in verify("--task", "toy_entries")

    drawn = verify("--task", "toy_infer", "--drawn", "1")
    assert re.search(r"drawn with seed \d+: toy_infer/numpy", drawn) and "1 of 1 rows pass all levels;" in drawn
    assert "(1 unchanged since" in verify("--task", "toy_infer")
    toys.notebook(inside.root, "toy_infer", "bias, 0)", "bias, 0.0)")
    assert "[1/1] toy_infer/numpy: ok" in verify("--task", "toy_infer")
    assert "[1/1]" in verify("--task", "toy_infer", "--all") and "[1/1]" in verify("toy_infer/numpy")


def test_every_kind_has_a_proof():
    assert PROOFS.keys() == KINDS.keys()
    for proof in PROOFS.values():
        assert proof.LEVELS.keys() == proof.COLUMNS.keys()
        assert all(quantity in proof.TOLERANCES for shown in proof.COLUMNS.values() for quantity in shown)
