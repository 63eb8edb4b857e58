"""Canonical weights: a dict of arrays with the same names, shapes and order in every framework, stored as ``.npz``.

A task's params module says which (``WEIGHT_SHAPES``). No pickle is written or read.
"""

import os
import zipfile

import numpy as np


class WeightsError(ValueError):
    """Weights that do not fit the network; the message is one line for the user."""


def load_weights(path, shapes):
    """Read canonical weights: a dict of float32 arrays in the order of ``shapes`` (name -> shape).

    Raises WeightsError, which names the file and the tensor, for a file that is none or holds other weights.
    """
    try:
        if os.path.isfile(path) and not zipfile.is_zipfile(path):  # NumPy would take it for a pickle
            raise WeightsError("it is not an .npz archive")
        with np.load(path, allow_pickle=False) as file:
            weights = {name: file[name] for name in file.files}
        return check_weights(weights, shapes)
    except (IOError, OSError, ValueError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise WeightsError("cannot use the weights in %s: %s" % (path, reason)) from None


def check_weights(weights, shapes):
    """The weights as float32 arrays in the order of ``shapes``; WeightsError names the first tensor that is wrong."""
    for name in weights:
        if name not in shapes:
            raise WeightsError("there is no tensor %s in this network; it has %s" % (name, ", ".join(shapes)))
    for name, shape in shapes.items():
        if name not in weights:
            raise WeightsError("the tensor %s is missing" % name)
        array = np.asarray(weights[name])
        if array.shape != tuple(shape):
            raise WeightsError("%s has the shape %s instead of %s" % (name, array.shape, tuple(shape)))
        if array.dtype.kind != "f":
            raise WeightsError("%s holds %s instead of floating-point numbers" % (name, array.dtype))
    with np.errstate(over="ignore"):  # too large for float32: told below
        taken = {name: np.array(weights[name], np.float32, order="C") for name in shapes}
    for name, array in taken.items():
        if not np.isfinite(array).all():
            raise WeightsError("%s holds numbers that are no finite float32 (%d)" % (name, np.sum(~np.isfinite(array))))
    return taken


def save_weights(path, weights):
    """Write canonical weights, as float32."""
    np.savez(path, **{name: np.asarray(array, np.float32) for name, array in weights.items()})


def to_channels_last(weights, flattened):
    """Canonical weights as frameworks with channels last keep them: kernels HWIO, dense weights (in, out); a dict like ``weights``.

    flattened: for dense weights whose inputs are a flattened image, its canonical shape by name: (channels, height, width).
    Their inputs then come in the order height, width, channel.
    """
    return {name: _last(array, flattened.get(name)) for name, array in weights.items()}


def from_channels_last(arrays, shapes, flattened):
    """The way back: a dict of canonical weights from arrays in the order of ``shapes`` (name -> canonical shape)."""
    return {name: _first(np.asarray(array), flattened.get(name)) for name, array in zip(shapes, arrays)}


def _last(array, image):
    if image:  # (out, C H W) as if it were a kernel of the image's size
        return array.reshape((-1,) + tuple(image)).transpose(2, 3, 1, 0).reshape(-1, len(array))
    return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T


def _first(array, image):
    if image:
        channels, height, width = image
        return array.reshape(height, width, channels, -1).transpose(3, 2, 0, 1).reshape(array.shape[1], -1)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def save_outputs(folder, weights, outputs):
    """Write what a run has made: ``weights.npz``, and ``outputs.npy`` with a row an input (probabilities, features)."""
    _make(folder)
    save_weights(os.path.join(folder, "weights.npz"), weights)
    np.save(os.path.join(folder, "outputs.npy"), np.asarray(outputs, np.float32), allow_pickle=False)


def save_answers(folder, answers):
    """Write ``answers.npz``: the answer of every entry by its name, as an array of its own type."""
    _make(folder)
    np.savez(os.path.join(folder, "answers.npz"), **{name: np.asarray(answer) for name, answer in answers.items()})


def _make(folder):
    if not os.path.isdir(folder):
        os.makedirs(folder)
