"""The clock of tasks that run a network forward: whole passes over the inputs, and the latency of a single one."""

import os
import sys
import time

import numpy as np

from common.record import SAVE_TO, emit, progress
from common.weights import save_outputs

PASSES = ("warm-up", "timed")  # the first holds what a framework loads and compiles
CALLS, SECONDS = 100, 20  # that a latency is taken from: so many calls, or as many as begin in so many seconds
UNCOUNTED = 3  # calls before: another shape of inputs may be compiled anew


class PassLog(object):
    """The clock of the passes. Make it right before the first; call ``done`` with the outputs at the end of each."""

    def __init__(self):
        self.pass_s = []  # seconds of each pass
        self.latency_s = []  # seconds of each call for a single input
        self.outputs = None  # of the last pass
        self._last = time.perf_counter()

    def done(self, outputs):
        """Note the end of a pass. outputs: a float32 array with a row an input, so the device has finished its work."""
        if not isinstance(outputs, np.ndarray) or outputs.dtype != np.float32:
            raise TypeError("the outputs of a pass must be a NumPy array of float32, so that the device has finished")
        now = time.perf_counter()
        self.pass_s.append(now - self._last)
        self.outputs = outputs
        name = PASSES[len(self.pass_s) - 1]
        progress("pass", len(self.pass_s), len(PASSES), name, self.pass_s[-1])
        self._last = time.perf_counter()

    def latency(self, call):
        """Time calls that compute the output of a single input and bring it back. call: takes nothing."""
        if os.environ.get(SAVE_TO):  # a check has no use for it
            return
        for _ in range(UNCOUNTED):
            call()
        end = time.perf_counter() + SECONDS
        while len(self.latency_s) < CALLS and time.perf_counter() < end:
            started = time.perf_counter()
            call()
            self.latency_s.append(time.perf_counter() - started)
        median, high = np.percentile(self.latency_s, (50, 99))
        what = "a single input: median %.1f ms, 99th percentile %.1f ms of %d calls"
        print(what % (1000 * median, 1000 * high, len(self.latency_s)))
        sys.stdout.flush()


def record_passes(log, parameters, frameworks, device, export_weights):
    """Show the result of the passes and leave it as a record in the notebook.

    log: the PassLog. parameters: number of trainable parameters. frameworks, device: as for ``common.record.emit``.
    export_weights: returns the canonical weights; called only where a check asks for them.
    Raises ValueError for outputs that are not finite: figures of such a run would look like any other's.
    """
    lost = int(np.sum(~np.isfinite(log.outputs).reshape(len(log.outputs), -1).all(axis=1)))
    if lost:
        raise ValueError("the outputs of %d of %d inputs are not finite numbers" % (lost, len(log.outputs)))
    inputs, (warm_up_s, pass_s) = len(log.outputs), log.pass_s
    metrics = {"parameters": int(parameters), "inputs": inputs, "warm_up_s": warm_up_s, "pass_s": pass_s}
    if log.latency_s:
        metrics["latency_s"], metrics["latency_99_s"] = np.percentile(log.latency_s, (50, 99)).round(6).tolist()
    text = "%d inputs in %.2f s, %.1f a second" % (inputs, pass_s, inputs / pass_s)
    emit(metrics, frameworks, device, text, save=lambda folder: save_outputs(folder, export_weights(), log.outputs))
