# %% parameters
import sys; sys.path.append("../..")
from common.params.toy_infer import BATCHSIZE, BATCHES, SEED, INITIAL_WEIGHTS

# %% setup
import time

import numpy as np

from common.data import toy
from common.params.toy_infer import WEIGHT_SHAPES
from common.record import emit, progress
from common.weights import load_weights, save_outputs

# %% data
x = toy.inputs(BATCHES * BATCHSIZE)

# %% model
weight = np.random.RandomState(SEED).normal(size=(5, 4)).astype("float32")
bias = np.zeros(5, "float32")


def features(x):
    return np.maximum(x @ weight.T + bias, 0)

# %% weights
if INITIAL_WEIGHTS:
    weight, bias = load_weights(INITIAL_WEIGHTS, WEIGHT_SHAPES).values()

# %% predict
seconds = []
for number, name in enumerate(("warm-up", "timed"), start=1):
    started = time.perf_counter()
    found = np.concatenate([features(x[i : i + BATCHSIZE]) for i in range(0, len(x), BATCHSIZE)])
    seconds.append(time.perf_counter() - started)
    progress("pass", number, 2, name, seconds[-1])

# %% record
metrics = {"parameters": weight.size + bias.size, "warm_up_s": seconds[0], "pass_s": seconds[1]}
weights = {"fc.weight": weight, "fc.bias": bias}
text = "%d inputs in %.4f s" % (len(x), seconds[1])
emit(metrics, [np], "cpu", text, save=lambda folder: save_outputs(folder, weights, found))
