"""What a run reports: a line and a time stamp for each part of its work, and at the end one machine-readable record.

The record is one notebook output of the MIME type ``MIME``; a runner finds it there, a reader sees its text form.
"""

import math
import os
import re
import sys
import time

from common.threads import thread_pools
from common.versions import cuda_libraries, versions

MIME = "application/vnd.rosetta.record+json"
SCHEMA = 2

# What a run is asked for besides its parameters: to test after every epoch ("1"), and to save what a check compares
TEST_EACH_EPOCH, SAVE_TO = "ROSETTA_TEST_EACH_EPOCH", "ROSETTA_SAVE_TO"

# The line that ``progress`` prints, and the expression by which a runner follows the work. It is quick on any line: a notebook
# may print a megabyte without a break
LINE = "%s %d/%d  %s  %.2f s"
PATTERN = re.compile(
    r"\b(?P<what>[a-z]{1,20}) (?P<done>\d{1,9})/(?P<of>\d{1,9})  (?P<note>\S.*?)  (?P<seconds>[\d.]+) s"
)


def progress(what, done, of, note, seconds):
    """Print how far the work is: ``epoch 3/10  loss 1.2345  17.20 s``. what: one word; done, of: whole numbers."""
    print(LINE % (what, done, of, note, seconds))
    sys.stdout.flush()


class EpochLog(object):
    """The clock and the loss curve of one training run.

    Make it right before training starts; call ``epoch`` at the end of every epoch.
    """

    def __init__(self, epochs):
        self.epochs = epochs
        self.loss = []  # mean training loss of each epoch
        self.epoch_s = []  # seconds each epoch took
        self.accuracy = []  # of the test after each epoch, where there is one
        self._last = time.perf_counter()

    def epoch(self, loss, evaluate=None):
        """Note the end of an epoch: its mean training loss, as a number that Python can print.

        A plain float means that the device has finished its work, so the clock is honest.
        evaluate: tests the network and returns the accuracy, a fraction. It is called where the run is asked to test after
        every epoch (ROSETTA_TEST_EACH_EPOCH=1), off the clock: the next epoch begins when it has returned.
        """
        loss = float(loss)
        now = time.perf_counter()
        self.epoch_s.append(now - self._last)
        self._last = now
        self.loss.append(loss)
        progress("epoch", len(self.loss), self.epochs, "loss %.4f" % loss, self.epoch_s[-1])
        if evaluate and os.environ.get(TEST_EACH_EPOCH) == "1":
            self.accuracy.append(float(evaluate()))
            print("  test accuracy %.2f %%" % (100 * self.accuracy[-1]))
            sys.stdout.flush()
            self._last = time.perf_counter()


def record(log, accuracy, parameters, frameworks, device, export_weights, predict):
    """Show the result of a training run and leave it as a record in the notebook.

    log: the EpochLog of the training. accuracy: fraction (0 to 1) of the test set classified rightly.
    parameters: number of trainable parameters of the network. frameworks, device: as for ``emit``.
    export_weights, predict: return the canonical weights and the outputs for the test set (an array with a row an example).
    They are called only where a check asks for both (ROSETTA_SAVE_TO names the folder).
    """
    metrics = {
        "accuracy": finite(accuracy),
        "parameters": int(parameters),
        "loss": [finite(loss) for loss in log.loss],
        "epoch_s": [round(seconds, 4) for seconds in log.epoch_s],
        "epoch_accuracy": [finite(accuracy) for accuracy in log.accuracy],
    }
    tested = "no accuracy" if metrics["accuracy"] is None else "accuracy %.2f %%" % (100 * metrics["accuracy"])
    text = "%s, %d epochs in %.1f s" % (tested, len(log.epoch_s), sum(log.epoch_s))
    from common.weights import save_outputs  # here, because runners read this module without needing NumPy

    emit(metrics, frameworks, device, text, save=lambda folder: save_outputs(folder, export_weights(), predict()))


def emit(metrics, frameworks, device, text, points=(), save=None):
    """Show what a run has found and leave it as a record in the notebook.

    metrics: a dict of the figures that the task's kind knows. frameworks: the modules used, the framework itself first.
    device: what the framework calls the device it computed on. text: the figures in a few words, for the reader.
    points: dicts of "at" (where it was taken: a dict of texts and numbers), "values" (one a repeat) and "unit".
    save: called with a folder where a check asks for what the run has made.
    Returns nothing: the record is displayed, so that it travels inside the notebook.
    """
    from common.data.loaded import description  # here, because runners read this module without needing NumPy

    data = description()
    payload = {
        "schema": SCHEMA,
        "metrics": metrics,
        "points": list(points),
        "device": str(device),
        "versions": versions(*frameworks),
        "cuda": cuda_libraries(),
        "thread_pools": thread_pools(),
        "dataset": data,
    }
    about = "%s%s on %s" % (text, " on synthetic data" if data.get("synthetic") else "", device)
    _show(payload, "%s\n%s" % (about, ", ".join("%s %s" % item for item in payload["versions"].items())))
    folder = os.environ.get(SAVE_TO)
    if save and folder:
        save(folder)


def finite(number):
    """JSON knows no NaN: a number that is not finite becomes None."""
    number = float(number)
    return number if math.isfinite(number) else None


def _show(payload, text):
    """Display in a notebook, print in a plain script."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        get_ipython = None
    if get_ipython is None or get_ipython() is None:
        print(text)
    else:
        display({MIME: payload, "text/plain": text}, raw=True)
