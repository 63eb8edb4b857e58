# %% parameters
import sys; sys.path.append("../..")
from common.params.toy_infer import BATCHSIZE, N_INPUTS, SEED, INITIAL_WEIGHTS

# %% setup
import numpy as np

from common.data import toy
from common.params.toy_infer import WEIGHT_SHAPES
from common.passes import PassLog, record_passes
from common.weights import load_weights

# %% data
x = toy.generated(N_INPUTS)

# %% model
weight = np.random.RandomState(SEED).normal(size=(5, 4)).astype("float32")
bias = np.zeros(5, "float32")


def features(x):
    return np.maximum(x @ weight.T + bias, 0)

# %% weights
if INITIAL_WEIGHTS:
    weight, bias = load_weights(INITIAL_WEIGHTS, WEIGHT_SHAPES).values()

# %% predict
def predict():
    return np.concatenate([features(x[i : i + BATCHSIZE]) for i in range(0, len(x), BATCHSIZE)])


log = PassLog()
for _ in range(2):
    log.done(predict())

# %% record
def export_weights():
    return {"fc.weight": weight, "fc.bias": bias}


record_passes(log, weight.size + bias.size, [np], "cpu", export_weights)
