"""The clock of tasks that time steps of a network: some to warm up, then several times some that count."""

import time

import numpy as np

from common.data import loaded
from common.record import emit, finite, progress
from common.weights import save_outputs


class StepLog(object):
    """The clock of the steps. Make it right before the first; call ``done`` after the warm-up, and at the end of each repeat."""

    def __init__(self, repeats):
        self.repeats = repeats
        self.step_s = []  # seconds a step of each repeat
        self.warm_up_s = None  # of all steps of the warm-up: it holds what a framework loads and compiles
        self.waiting = []  # of each repeat: the share of its time in which Python waited for the next batch
        self.result = None  # of the last step
        self._waited_s = 0.0
        self._last = time.perf_counter()

    def take(self, batches, steps):
        """The next so many of the batches, one for each step. Their own time is noted as waiting."""
        for _ in range(steps):
            asked = time.perf_counter()
            batch = next(batches)
            self._waited_s += time.perf_counter() - asked
            yield batch

    def done(self, steps, result):
        """Note the end of so many steps. result: of the last one, a float or a NumPy array, so the device has finished its work."""
        if not isinstance(result, (float, np.ndarray, np.generic)):
            raise TypeError("the result of a step must be a float or a NumPy array, so that the device has finished")
        seconds, self.result = time.perf_counter() - self._last, result
        if self.warm_up_s is None:
            self.warm_up_s = seconds
        else:
            self.step_s.append(seconds / steps)
            self.waiting.append(self._waited_s / seconds)
            note = "%.3f ms a step" % (1000 * self.step_s[-1])
            progress("repeat", len(self.step_s), self.repeats, note, seconds)
        self._last, self._waited_s = time.perf_counter(), 0.0


def record_steps(log, parameters, frameworks, device, export_weights, multiply_adds=None):
    """Show the result of the steps and leave it as a record in the notebook.

    log: the StepLog. parameters: number of trainable parameters. frameworks, device: as for ``common.record.emit``.
    export_weights: returns the canonical weights; called only where a check asks for them. multiply_adds: of one example's forward
    pass, where the framework counts them.
    """
    mean, deviation = np.mean(log.step_s), np.std(log.step_s)
    metrics = {"parameters": int(parameters), "warm_up_s": log.warm_up_s, "step_s": float(mean)}
    metrics["result"] = finite(np.mean(log.result))
    if any(log.waiting) and not loaded.description()["synthetic"]:  # noise is there at once
        metrics["waiting"] = float(np.mean(log.waiting))
    if multiply_adds is not None:
        metrics["multiply_adds"] = int(multiply_adds)
    point = {"at": {}, "values": log.step_s, "unit": "s"}
    text = "%.3f ms a step, deviation %.3f of %d repeats" % (1000 * mean, 1000 * deviation, len(log.step_s))
    emit(metrics, frameworks, device, text, [point], lambda folder: save_outputs(folder, export_weights(), log.result))
