# %% parameters
import sys; sys.path.append("../..")
from common.params.toy_train import EPOCHS, BATCHSIZE, LR, SEED, N_TRAIN, N_TEST, INITIAL_WEIGHTS

# %% setup
import numpy as np

from common.data import batches, toy
from common.params.toy_train import WEIGHT_SHAPES
from common.record import EpochLog, record
from common.weights import load_weights

rng = np.random.RandomState(SEED)

# %% data
x_train, y_train, x_test, y_test = toy.load(N_TRAIN, N_TEST)

# %% model
weight = rng.uniform(-0.5, 0.5, (3, 4)).astype("float32")
bias = np.zeros(3, "float32")


def probabilities(x):
    e = np.exp(x @ weight.T + bias)
    return e / e.sum(axis=1, keepdims=True)

# %% weights
if INITIAL_WEIGHTS:
    weight, bias = load_weights(INITIAL_WEIGHTS, WEIGHT_SHAPES).values()

# %% optimizer
def step(x, y):
    p = probabilities(x)
    d = (p - np.eye(3, dtype="float32")[y]) / len(y)
    weight[:] -= LR * (d.T @ x)
    bias[:] -= LR * d.sum(axis=0)
    return -np.log(p[np.arange(len(y)), y]).mean()

# %% evaluate
def predict():
    return probabilities(x_test)


def evaluate():
    return (predict().argmax(axis=1) == y_test).mean()

# %% train
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    losses = [len(y) * step(x, y) for x, y in batches(x_train, y_train, BATCHSIZE, SEED, epoch)]
    log.epoch(sum(losses) / len(x_train), evaluate)

# %% record
def export_weights():
    return {"fc.weight": weight, "fc.bias": bias}


record(log, evaluate(), weight.size + bias.size, [np], "cpu", export_weights, predict)
