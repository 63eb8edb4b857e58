"""The lines a run prints and the record it leaves, as a runner and a reader see them."""

import json
import sys
import time
import types

import numpy as np
import pytest

from common import record as module
from common.data import cifar10, loaded
from common.record import MIME, PATTERN, EpochLog, emit, progress, record


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets: clock.now in seconds."""
    fake = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(module.time, "perf_counter", lambda: fake.now)
    return fake


@pytest.fixture
def shown(monkeypatch):
    """Run as if in a notebook: the list of what was displayed, as (bundle, raw)."""
    displayed = []
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: object()
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = lambda bundle, raw=False: displayed.append((bundle, raw))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return displayed


@pytest.fixture
def log(clock):
    """The log of epochs that took 2 s and 1.5 s."""
    made = EpochLog(2)
    for loss, seconds in ((1.5, 2), (np.float32(0.75), 1.5)):
        clock.now += seconds
        made.epoch(loss)
    return made


def facts_and_text(shown):
    """The one record that was displayed, as JSON carries it, and the text beside it."""
    [(bundle, raw)] = shown
    assert raw and sorted(bundle) == sorted([MIME, "text/plain"])
    return json.loads(json.dumps(bundle[MIME], allow_nan=False)), bundle["text/plain"]


def test_an_epoch_is_one_line_and_its_time(capsys, log):
    assert capsys.readouterr().out == "epoch 1/2  loss 1.5000  2.00 s\nepoch 2/2  loss 0.7500  1.50 s\n"
    assert log.epoch_s == [2, 1.5] and log.loss == [1.5, 0.75]
    assert all(type(loss) is float for loss in log.loss)


@pytest.mark.parametrize("asked, accuracies", [("1", [0.25, 0.5]), ("", [])])
def test_a_test_between_epochs_is_off_the_clock_and_only_where_asked_for(clock, capsys, monkeypatch, asked, accuracies):
    monkeypatch.setenv(module.TEST_EACH_EPOCH, asked)
    log, answers = EpochLog(2), iter((0.25, np.float32(0.5)))

    def evaluate():
        clock.now += 100
        return next(answers)

    for seconds in (2, 1.5):
        clock.now += seconds
        log.epoch(1.5, evaluate)
    assert log.epoch_s == [2, 1.5] and log.accuracy == accuracies
    assert ("  test accuracy 25.00 %\n" in capsys.readouterr().out) == bool(accuracies)


@pytest.mark.parametrize("loss", ["no number", None, [1.0, 2.0]])
def test_a_loss_that_is_no_number_is_an_error(loss):
    with pytest.raises((TypeError, ValueError)):
        EpochLog(1).epoch(loss)


def test_a_notebook_carries_the_record_beside_its_text(log, shown):
    cifar10.load("NCHW", n_train=50, n_test=20, synthetic=True)
    record(log, np.float32(0.75), np.int64(3441592), [np], "cpu", export_weights=None, predict=None)
    facts, text = facts_and_text(shown)
    assert facts["schema"] == module.SCHEMA
    figures = {"accuracy": 0.75, "parameters": 3441592, "loss": [1.5, 0.75], "epoch_s": [2, 1.5], "epoch_accuracy": []}
    assert facts["metrics"] == figures
    assert facts["device"] == "cpu" and facts["points"] == [] and facts["thread_pools"]["processors"] >= 1
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["dataset"] == {"name": "CIFAR-10", "synthetic": True, "sizes": {"train": 50, "test": 20}}
    assert text.startswith("accuracy 75.00 %, 2 epochs in 3.5 s on synthetic data on cpu\npython ")


def test_weights_and_outputs_are_saved_only_where_asked_for(log, shown, tmp_path, monkeypatch):
    folder, called = tmp_path / "saved", []

    def export_weights():
        called.append("weights")
        return {"bias": np.zeros(2)}

    def predict():
        called.append("outputs")
        return np.full((3, 2), 0.5)

    for asked in ("", str(folder)):
        monkeypatch.setenv(module.SAVE_TO, asked)
        record(log, 0.75, 2, [np], "cpu", export_weights, predict)
        assert folder.exists() == bool(asked)
    assert called == ["weights", "outputs"]
    assert np.load(str(folder / "outputs.npy"), allow_pickle=False).shape == (3, 2)
    with np.load(str(folder / "weights.npz"), allow_pickle=False) as saved:
        assert saved.files == ["bias"]


def test_figures_of_any_kind_with_points(shown, monkeypatch):
    """Where it was measured and what: one point each."""
    monkeypatch.setattr(loaded, "_last", {"name": "x", "synthetic": False, "sizes": {}})
    points = [{"at": {"threads": 2, "phase": "forward"}, "values": [0.25, 0.5], "unit": "s"}]
    emit({"step_s": 0.25}, [np], "cpu", "0.25 s a step", points)
    facts, text = facts_and_text(shown)
    assert facts["metrics"] == {"step_s": 0.25} and facts["points"] == points
    assert text.startswith("0.25 s a step on cpu\npython ")


@pytest.mark.parametrize("before", ["", "a bar without a line end 99%"])
def test_a_runner_reads_how_far_the_work_is(capsys, before):
    progress("epoch", 3, 10, "loss 1.2345", 17.2)
    part = PATTERN.search(before + capsys.readouterr().out)
    assert part.group("what", "done", "of", "note", "seconds") == ("epoch", "3", "10", "loss 1.2345", "17.20")


@pytest.mark.parametrize("line", ["x" * 10**6, "x " * 500000, "epoch 1/2 " * 100000], ids=["word", "words", "parts"])
def test_a_line_without_end_does_not_hold_the_runner_up(line):
    started = time.time()
    assert PATTERN.search(line) is None
    assert time.time() - started < 10


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_hold_become_null(log, shown, bad):
    log.epoch(bad)
    record(log, bad, 1, [], "cpu", None, None)
    facts, text = facts_and_text(shown)
    assert facts["metrics"]["accuracy"] is None and facts["metrics"]["loss"] == [1.5, 0.75, None]
    assert text.startswith("no accuracy, ")


@pytest.mark.parametrize("installed", [True, False])
def test_a_plain_script_prints_the_text(log, shown, monkeypatch, capsys, installed):
    if installed:
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    else:
        monkeypatch.setitem(sys.modules, "IPython", None)
    record(log, 0.5, 1, [], "cpu", None, None)
    assert shown == [] and "accuracy 50.00 %" in capsys.readouterr().out
