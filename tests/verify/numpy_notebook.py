"""A notebook for stand-in checkouts: the reference itself as a "framework", which passes every level in seconds."""

CELLS = {
    "parameters": """
import sys; sys.path.append("../..")
from common.params.cifar10_cnn import (
    EPOCHS, BATCHSIZE, LR, MOMENTUM, DROPOUT_CONV, DROPOUT_FC, SEED, N_TRAIN, N_TEST, INITIAL_WEIGHTS)
""",
    "setup": """
import os, time
import numpy
from common.data import batches, cifar10
from common.params.cifar10_cnn import WEIGHT_SHAPES
from common.record import EpochLog, record
from common.reference import cifar10_cnn as network
from common.weights import load_weights
rng = numpy.random.RandomState(SEED)
""",
    "data": """
x_train, y_train, x_test, y_test = cifar10.load("NCHW", N_TRAIN, N_TEST)
""",
    "weights": """
weights = {name: a.astype("float32") for name, a in network.initial_weights(SEED).items()}
if INITIAL_WEIGHTS:
    weights = load_weights(INITIAL_WEIGHTS, WEIGHT_SHAPES)
""",
    "evaluate": """
def predict():
    return network.probabilities(weights, x_test)
def evaluate():
    return (predict().argmax(axis=1) == y_test).mean()
""",
    "train": """
velocities = {name: numpy.zeros_like(a) for name, a in weights.items()}
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    total = 0.0
    for x, y in batches(x_train, y_train, BATCHSIZE, SEED, epoch):
        masks = network.dropout_masks(len(x), rng, "float32") if DROPOUT_CONV else None
        loss, g = network.gradients(weights, x, y, masks)
        weights, velocities = network.momentum_step(weights, velocities, g, LR, MOMENTUM)
        total += loss * len(x)
    log.epoch(total / len(x_train), evaluate)
""",
    "record": """
accuracy = evaluate()
record(log, accuracy, sum(a.size for a in weights.values()), [numpy], "cpu", lambda: weights, predict)
""",
}

# What goes wrong in copies of it: the cell, and the line put in front of it
FAULTS = {
    "same": ("setup", ""),
    "raises": ("train", "raise RuntimeError('no kernel image is available\\nfor this device')"),
    "segfault": ("train", "import ctypes; ctypes.string_at(0)"),
    "forgets": ("record", "os.environ.pop('ROSETTA_SAVE_TO')"),
    "diverges": ("weights", "LR = float('nan')"),
    "swapped": ("evaluate", "x_test = x_test.swapaxes(2, 3)"),
    "boasts": ("record", "evaluate = lambda old=evaluate: old() + 0.05"),
    "hangs": (
        "train",
        "import subprocess; subprocess.Popen(['sleep', '986'], start_new_session=True); time.sleep(986)",
    ),
}


def cells(fault: str) -> list[tuple[str, str]]:
    role, line = FAULTS[fault]
    return [(name, f"{line}\n{code.strip()}" if name == role else code) for name, code in CELLS.items()]
