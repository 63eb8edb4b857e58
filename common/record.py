"""What a run reports: a line and a time stamp an epoch, and at the end one machine-readable record.

The record is one notebook output of the MIME type ``MIME``; a runner finds it there, a reader sees its text form.
"""

import math
import re
import sys
import time

from common.threads import thread_pools
from common.versions import cuda_libraries, versions

MIME = "application/vnd.rosetta.record+json"
SCHEMA = 1

# The line that EpochLog prints, and the expression by which a runner follows the training
EPOCH_LINE = "epoch %d/%d  loss %.4f  %.2f s"
EPOCH_PATTERN = re.compile(r"epoch (?P<epoch>\d+)/(?P<epochs>\d+)  loss (?P<loss>\S+)  (?P<seconds>[\d.]+) s")


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

    def epoch(self, loss):
        """Note the end of an epoch: its mean training loss, as a number that Python can print.

        A plain float means that the device has finished its work, so the clock is honest.
        """
        loss = float(loss)
        now = time.perf_counter()
        self.epoch_s.append(now - self._last)
        self._last = now
        self.loss.append(loss)
        print(EPOCH_LINE % (len(self.loss), self.epochs, loss, self.epoch_s[-1]))
        sys.stdout.flush()

    def test(self, accuracy):
        """Note the test accuracy, a fraction, after the epoch that ``epoch`` has just noted.

        What happened between the two calls is off the clock: the next epoch begins now.
        """
        self.accuracy.append(float(accuracy))
        print("  test accuracy %.2f %%" % (100 * self.accuracy[-1]))
        sys.stdout.flush()
        self._last = time.perf_counter()


def record(log, accuracy, parameters, frameworks, device):
    """Show the result of a run and leave it as a record in the notebook.

    log: the EpochLog of the training. accuracy: fraction (0 to 1) of the test images classified rightly.
    parameters: number of trainable parameters of the network. frameworks: the modules used, the framework itself first.
    device: what the framework calls the device it trained on.
    Returns nothing: the record is displayed, so that it travels inside the notebook.
    """
    from common.data.loaded import description  # here, because runners read this module without needing NumPy

    facts = {
        "schema": SCHEMA,
        "accuracy": _finite(accuracy),
        "parameters": int(parameters),
        "loss": [_finite(loss) for loss in log.loss],
        "epoch_s": [round(seconds, 4) for seconds in log.epoch_s],
        "epoch_accuracy": [_finite(accuracy) for accuracy in log.accuracy],
        "train_s": round(sum(log.epoch_s), 4),
        "device": str(device),
        "versions": versions(*frameworks),
        "cuda": cuda_libraries(),
        "thread_pools": thread_pools(),
        "dataset": description(),
    }
    _show(facts, _text(facts))


def _finite(number):
    """JSON knows no NaN: a number that is not finite becomes None."""
    number = float(number)
    return number if math.isfinite(number) else None


def _text(facts):
    """The record in two lines for a reader."""
    data = facts["dataset"]
    accuracy = "no accuracy" if facts["accuracy"] is None else "accuracy %.2f %%" % (100 * facts["accuracy"])
    images = "%d %stest images" % (data.get("n_test", 0), "synthetic " if data.get("synthetic") else "")
    return "%s on %s, %d epochs in %.1f s on %s\n%s" % (
        accuracy,
        images,
        len(facts["epoch_s"]),
        facts["train_s"],
        facts["device"],
        ", ".join("%s %s" % item for item in facts["versions"].items()),
    )


def _show(facts, text):
    """Display in a notebook, print in a plain script."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        get_ipython = None
    if get_ipython is None or get_ipython() is None:
        print(text)
    else:
        display({MIME: facts, "text/plain": text}, raw=True)
