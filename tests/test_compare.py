"""What counts as a change beyond noise, and what ``compare`` does about it."""

import subprocess
from datetime import UTC, datetime
from random import Random

import pytest

from rosetta import records
from rosetta.compare import apart, compare, read, show_batch
from rosetta.errors import RosettaError
from rosetta.figures import Sample
from rosetta.kinds import KINDS, TrainMetrics
from rosetta.paths import checkout
from rosetta.records import Record
from rosetta.terminal import Console
from tests.standin import TASK, one_line
from tests.test_report import HERE, make, seeds

LATER = datetime(2026, 11, 25, tzinfo=UTC)


def changed(before: list[Record], after: list[Record]) -> dict[str, str]:
    """What changed, quantity -> worse or better."""
    return {change.quantity: change.outcome for change in compare(before, after).changes}


def times(*values: float, **more) -> list[Record]:
    return seeds(*values, metric="train_s", **more)


def accuracies(*values: float, **more) -> list[Record]:
    return seeds(*values, metric="accuracy", **more)


@pytest.mark.parametrize(
    "before, after, expected",
    [
        # single runs have no interval: the larger factor, 1.3
        ([10], [12], None),
        ([10], [13.1], "worse"),
        ([10], [7.6], "better"),
        ([10], [10], None),
        # a single run against several: beyond their range by the larger factor
        ([9, 10, 11], [14], None),
        ([9, 10, 11], [14.5], "worse"),
        # few runs: the ranges lie a factor apart
        ([10.0, 10.1, 10.2], [12.0, 12.1, 12.2], "worse"),
        ([10.0, 10.1, 10.2], [9.0, 9.1, 9.2], None),
        ([10.0, 10.1, 12.0], [11.9, 12.1, 12.2], None),
        ([12.0, 12.1], [10.0, 10.1], "better"),
        ([10, 10.1, 10.2, 10.3, 10.4], [11.5, 11.6, 11.7, 11.8, 11.9], "worse"),
        ([10, 10.1, 10.2, 10.3, 10.4], [10.5, 10.6, 10.7, 10.8, 10.9], None),  # slower, but not by the factor
        ([10, 12, 14, 16, 18], [11, 13, 15, 17, 30], None),
    ],
)
def test_times(before, after, expected):
    assert changed(times(*before), times(*after)).get("train") == expected


def test_epochs_after_the_first_are_samples():
    before, after = make(), make()
    for epochs, expected in (([5.0, 5.1, 5.2, 5.3, 5.1], {"steady": "worse"}), ([5.0], {})):
        before.metrics.epoch_s, after.metrics.epoch_s = [9.0, *epochs], [9.0, *(epoch + 1 for epoch in epochs)]
        assert changed([before], [after]) == expected


@pytest.mark.parametrize(
    "before, after, expected",
    [
        ([0.7747], [0.7712], None),
        ([0.7747], [0.74], None),  # single runs: ranges of 3 standard errors lie the factor apart, of 0.4 points each
        ([0.7747], [0.72], "worse"),
        ([0.7747], [0.83], "better"),
        ([0.77, 0.774, 0.78], [0.73, 0.734, 0.738], "worse"),
        ([0.70, 0.77, 0.78], [0.71, 0.73, 0.74], None),  # seeds scatter that much
        ([1.0], [1.0], None),
    ],
)
def test_accuracy_by_its_error(before, after, expected):
    assert changed(accuracies(*before), accuracies(*after)).get("accuracy") == expected
    few = {"params": make().params | {"N_TEST": 100}}
    assert changed(accuracies(0.77, **few), accuracies(0.65, **few)) == {}, "single runs on few images"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_kind_is_compared_by_what_should_be_less_or_more(kind):
    """Every quantity of a kind that has a better side is worse at a tenth or ten times as much."""
    single = [name for name, field in kind.metrics.model_fields.items() if "list" not in str(field.annotation)]
    for quantity in kind.quantities:
        if quantity.better is None or quantity.share_of or quantity.every:
            continue
        field = next(name for name in single if quantity.of(kind.metrics(**{name: 1})) is not None)
        low, high = (make(kind=kind.name, metrics=kind.metrics(**{field: value})) for value in (10**9, 10**10))
        expected = ("worse", "better") if quantity.better == "less" else ("better", "worse")
        assert (changed([low], [high])[quantity.heading], changed([high], [low])[quantity.heading]) == expected


def test_the_line_says_how_sure_it_is():
    (change,) = compare(times(10), times(20)).changes
    assert (change.before, change.after, change.why) == ("10.0 s", "20.0 s", "2.00 times; n = 1: more than 1.30 times")
    (change,) = compare(accuracies(0.8), accuracies(0.7)).changes
    assert change.why.startswith("error 1.50 times; ranges 1.3")
    (change,) = compare(times(1, 1, 1, 1, 1), times(2, 2, 2, 2, 2)).changes
    assert change.why == "2.00 times; ranges 2.00 times apart" and change.before == "1.0 s (1.0 - 1.0, n = 5)"


def test_rows_that_come_go_break_and_are_mended():
    failed = make("flax", status="failed", error="out of memory")
    changes = compare([make(), make("flax")], [make("chainer"), make("flax"), failed]).changes
    assert {one.row: one.outcome for one in changes} == {"chainer": "new", "flax": "worse", "pytorch": "gone"}
    assert changed([failed], [make("flax")]) == {"status": "better"}
    assert changed([failed], [failed]) == {}
    skipped = make(status="skipped", error="needs clang")
    assert [(one.outcome, one.why) for one in compare([make()], [skipped]).changes] == [("gone", "needs clang")]


def test_only_the_same_machine_preset_and_data_are_compared():
    there = HERE.model_copy(update={"name": "there"})
    for other in ({"machine": there}, {"preset": "full"}, {"synthetic": True}):
        compared = compare(times(10), times(99, **other))
        assert compared.rows == 0 and {one.outcome for one in compared.changes} == {"new", "gone"}


def test_smoke_runs_are_not_timed():
    assert changed(times(10, preset="smoke"), times(99, preset="smoke")) == {}
    assert changed(accuracies(0.9, preset="smoke"), accuracies(0.1, preset="smoke")) == {"accuracy": "worse"}
    assert compare([make(preset="sweep")], []).changes == [], "nor are measurements compared"


def test_other_conditions_are_no_change_and_a_switch_that_is_not_there_is_off():
    (change,) = compare(times(10), [make(params={"EPOCHS": 3, "BATCHSIZE": 64}, threads=1)]).changes
    assert (change.outcome, change.why) == ("not comparable", "EPOCHS 2 and 3, threads None and 1")
    before = make()
    after = make(params=before.params | {"TEST_EACH_EPOCH": True, "NEW_SIZE": 3})
    (change,) = compare([before], [after]).changes
    assert (change.outcome, change.why) == ("not comparable", "TEST_EACH_EPOCH False and True")
    after.params["TEST_EACH_EPOCH"] = False
    assert compare([before], [after]).rows == 1


def test_the_newest_experiment_of_each_side_counts():
    edited = make().notebook.model_copy(update={"sha256": "1"})
    after = [*times(10, 10, 10), *times(30, notebook=edited, started=LATER)]
    assert changed(times(10), after) == {"train": "worse"}


def test_noise_seldom_counts():
    """Two samples of the same distribution, 10 % wide: of 600 comparisons few are beyond noise."""
    chance = Random(7)
    for n in (1, 2, 3, 5, 9):
        pairs = [[Sample(tuple(chance.gauss(10, 1) for _ in range(n))) for _ in "ab"] for _ in range(600)]
        assert sum(apart(*pair, 1.1) is not None for pair in pairs) <= 600 * 0.1, n


def test_folders_and_exit_codes(inside):
    there = HERE.model_copy(update={"name": "there"})
    records.write(make(metrics=TrainMetrics(train_s=99, accuracy=0.1), machine=there), inside.root / "there")
    for name, seconds in (("before", 10), ("same", 10.5), ("slow", 20)):
        records.write(*times(seconds), inside.root / name)
    for arguments, code, said in (
        ("before same", 0, "nothing changed beyond noise; 1 rows compared"),
        ("before slow", 1, "worse  pytorch  train  10.0 s  20.0 s  2.00 times; n = 1: more than 1.30 times"),
        ("before slow", 1, "1 worse; 1 rows compared"),
        ("before same --factor 1.01", 1, "1 worse"),
        ("slow before", 0, "1 better; 1 rows compared"),
        ("before slow --factor 2", 0, "nothing changed"),
        ("before there", 1, "no machine is in both (here; there): times are not compared"),
        ("before there", 1, "worse  pytorch  accuracy  25.00 %  10.00 %  error 1.20 times"),
        ("before there", 1, "1 worse; 1 rows compared"),
    ):
        done = inside.call("compare", *arguments.split(), own_python=False)
        assert done.returncode == code and said in done.stdout, done.stdout + done.stderr


def test_revision_is_read_as_it_was(tmp_path, monkeypatch, record):
    monkeypatch.setattr(checkout, "root", tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    file = records.write(record, checkout.results)
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"], ["tag", "first"]):
        subprocess.run([*git, *command], check=True)
    file.unlink()
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert read("first") == (f"first ({commit[:7]})", [record])
    with pytest.raises(RosettaError, match="second is neither a folder nor a git revision"):
        read("second")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("nowhere", "results"), "nowhere is neither a folder nor a git revision of this repository"),
        (("empty", "empty"), "there is no record in empty: a results folder holds MACHINE/TASK/PRESET/ROW.json"),
        (("good", "broken"), "is not valid"),
        (("good", "other"), f"nothing can be compared: good has {TASK} quick of here; other has {TASK} quick of here."),
        (("good", "good", "--factor", "1"), "--factor 1 is no change for the worse: give a number above 1"),
    ],
)
def test_bad_input_is_one_line(inside, arguments, message):
    (inside.root / "empty").mkdir()
    records.write(make(), inside.root / "good")
    records.write(make("flax"), inside.root / "other")
    broken = inside.root / "broken" / "here" / TASK / "quick"
    broken.mkdir(parents=True)
    (broken / "pytorch.json").write_text("{")
    done = inside.call("compare", *arguments, own_python=False)
    assert done.returncode == 2 and message in one_line(done.stderr)


def test_a_batch_tells_what_changed_since_the_earlier_records(capsys):
    """But for what ``test_known_batch`` shows: records of the same batch are no earlier ones."""
    for before, after, said in (
        ([], times(10), []),
        (times(10), times(10.5), ["nothing changed beyond noise since the earlier records of this machine (1 rows"]),
        (times(10), times(20), ["changed beyond noise since the", "here, cifar10_cnn, quick", "worse  pytorch  train"]),
    ):
        show_batch(compare(before, after), Console())
        lines = [line for line in capsys.readouterr().out.splitlines() if " row " not in line]
        assert len(lines) == len(said) and all(map(str.startswith, lines, said)), lines
