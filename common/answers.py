"""The answers of a notebook of small answers: what each cell ends with, as the reader sees it below the cell."""

import hashlib

import numpy as np

from common.record import emit
from common.weights import save_answers

TO_NUMPY = ("numpy", "asnumpy")  # methods by which arrays of frameworks become NumPy's, where NumPy does not know them


class AnswerLog(object):
    """Keeps the value that each later cell of the notebook ends with, until ``record_answers``. Make it in the setup cell."""

    def __init__(self):
        from IPython import get_ipython  # here, because this module is tested where there is none

        self.answers = {}  # the code of a cell -> its value; a cell that is run again has its last one
        shell = get_ipython()
        if shell is None:
            raise RuntimeError("an AnswerLog reads what the cells of a notebook end with: there is no notebook here")
        shell.events.register("post_run_cell", self.keep)

    def keep(self, result):
        """result: IPython's ``ExecutionResult`` of a cell."""
        if result.result is not None:
            self.answers[result.info.raw_cell] = result.result


def as_array(value):
    """A value of a framework as a NumPy array: of its own type, on the CPU, without what recorded its gradient."""
    if isinstance(value, (np.ndarray, np.generic, bool, int, float, str)):
        return np.asarray(value)
    if hasattr(value, "detach"):
        value = value.detach()
        value = value.cpu() if hasattr(value, "cpu") else value
    value = getattr(value, "array", value)  # Chainer's variables
    for name in TO_NUMPY:
        if callable(getattr(value, name, None)):
            return np.asarray(getattr(value, name)())
    return np.asarray(value)


def named(code):
    """The name of a cell's answer in ``answers.npz``. code: the cell's."""
    return hashlib.sha256(code.encode("utf-8")).hexdigest()[:16]


def by_cell(answers):
    """By the cell's name the array that it ends with, or ``NAME.0``, ``NAME.1`` ... of a tuple or a list. answers: code -> value."""
    arrays = {}
    for code, value in answers.items():
        parts = value if isinstance(value, (tuple, list)) else [value]
        for number, part in enumerate(parts):
            arrays[named(code) + (".%d" % number if parts is value else "")] = as_array(part)
    return arrays


def record_answers(log, frameworks, device):
    """Show how many cells have given an answer and leave it as a record in the notebook.

    log: the AnswerLog. frameworks, device: as for ``common.record.emit``.
    """
    count = len(log.answers)
    emit(
        {"answers": count},
        frameworks,
        device,
        "%d answers" % count,
        save=lambda folder: save_answers(folder, by_cell(log.answers)),
    )
