"""Plays a notebook of DeepLearningFrameworks (2018) on a CPU, its training loop once a turn: ``__main__`` writes the script that calls it.

Runs in the framework's own environment, from Python 3.6 on.
"""

import importlib
import io
import json
import os
import re
import sys
import types
from contextlib import redirect_stdout

import numpy as np

from common.data import cifar10, imdb
from common.record import EpochLog

# What a CPU, a newer NumPy or a newer library asks for. All else is as it was
EDITS = [
    (r"\A%%writefile[\s\S]*", ""),  # the settings of Theano on a GPU
    (r"^%.*$", ""),  # magics of IPython
    (r"^print\(.*(get_gpu_name|get_cuda_version|get_cudnn_version|cupy).*$", ""),
    (r"^from common\.", "from theirs."),  # its own parameters, and the functions below
    (r'= "0"', '= ""'),  # CUDA_VISIBLE_DEVICES
    (r"np\.int\b", "int"),  # NumPy has no such name any more
    (r"\.cuda\(\)", ""),  # PyTorch
    (
        r"y_train = y_train\.astype\(np\.int32\)",
        "y_train = y_train.astype(np.int64)",
    ),  # its tensors take no int32 there
    (r"mx\.gpu\(\d*\)", "mx.cpu()"),  # MXNet
    (r"chainer\.cuda\.get_device\(0\)\.use\(\)|sym\.to_gpu\(\)", "pass"),  # Chainer
    (r"cuda\.to_[gc]pu\(", "("),
    (r"theano\.config\.dnn.*", ""),  # Theano: the algorithms of cuDNN
    (r"workspace, visualize, brew", "workspace, brew"),  # Caffe2: a module that needs a program for graphs
    (r"caffe2_pb2\.CUDA, 0", "caffe2_pb2.CPU, 0"),
    (r"'use_cudnn': True", "'use_cudnn': False"),
    (r"'cudnn_exhaustive_search': True", "'cudnn_exhaustive_search': False"),
    (r"train_arg_scope = \{", "train_arg_scope = {'is_test': False,"),  # its dropout asks for it
    (
        r"CUDNN=True",
        "CUDNN=False",
    ),  # TensorFlow: the notebook's own way without cuDNN, whose last line is in the wrong branch
    (r"        logits = tf\.layers\.dense\(outputs", "    logits = tf.layers.dense(outputs"),
]
# TensorFlow computes no convolution with channels first on a CPU
CHANNELS_LAST = [
    (r"channels_first", "channels_last"),
    (r"\[None, 3, 32, 32\]", "[None, 32, 32, 3]"),
    (r"cifar_for_library\(channel_first=True", "cifar_for_library(channel_first=False"),
]
# Today's Lasagne has this function in another module, and for vectors alone
LASAGNE = "\nobj.categorical_accuracy = lambda p, t: T.eq(T.argmax(p, axis=-1), t)\n"
TRAINS = re.compile(r"range\(EPOCHS\)|epochs?=EPOCHS")
ACCURACY = re.compile(r"Accuracy:\D*([\d.]+)")
TESTED = 640  # examples


def play(notebook, examples, epochs):
    """Train an epoch of so many examples a turn. The first turn tests, too: the share of wrong answers stands for each turn's loss,
    because most of these loops compute none."""
    folder, name = os.path.split(notebook)
    sys.path.insert(0, os.path.join(folder, "common"))
    theirs = {module: importlib.import_module(module) for module in ("params", "params_lstm")}
    theirs["utils"] = types.ModuleType("utils")
    theirs["utils"].__dict__.update(functions(examples))
    sys.modules["theirs"] = types.ModuleType("theirs")
    sys.modules.update({"theirs." + module: made for module, made in theirs.items()})
    with open(notebook, encoding="utf-8") as file:
        cells = ["".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    for pattern, text in EDITS + (CHANNELS_LAST if name.startswith("Tensorflow") else []):
        cells = [re.sub(pattern, text, cell, flags=re.MULTILINE) for cell in cells]
    cells = [cell + (LASAGNE if "lasagne.objectives as obj" in cell else "") for cell in cells]
    train = next(number for number, cell in enumerate(cells) if TRAINS.search(cell))
    names = {"__name__": "__main__"}
    np.random.seed(0)
    for cell in cells[:train]:
        exec(cell, names)
    names["EPOCHS"] = 1
    log = EpochLog(epochs)
    exec(cells[train], names)
    printed = io.StringIO()
    with redirect_stdout(printed):
        for cell in cells[train + 1 :]:
            exec(cell, names)
    wrong = 1 - float(ACCURACY.search(printed.getvalue()).group(1))
    log.epoch(wrong)
    for _ in range(1, epochs):
        exec(cells[train], names)
        log.epoch(wrong)


def functions(examples):
    """Those of their ``common.utils`` that a training loop calls. Images and reviews come from this project's loaders."""

    def cifar_for_library(channel_first=True, one_hot=False):
        x, y, x_test, y_test = cifar10.load("NCHW" if channel_first else "NHWC", examples, TESTED, one_hot)
        return x, x_test, y.astype(np.int32), y_test.astype(np.int32)

    def imdb_for_library(seq_len=100, max_features=20000, one_hot=False):
        x, y, x_test, y_test = imdb.load(examples, TESTED)
        if one_hot:
            y, y_test = np.eye(2)[y], np.eye(2)[y_test]
        return x, x_test, y.astype(np.int32), y_test.astype(np.int32)

    def yield_mb(x, y, batchsize=64, shuffle=False):
        if shuffle:
            order = np.random.permutation(len(x))
            x, y = x[order], y[order]
        for start in range(0, len(x) - batchsize + 1, batchsize):
            yield x[start : start + batchsize], y[start : start + batchsize]

    return {function.__name__: function for function in (cifar_for_library, imdb_for_library, yield_mb)}
