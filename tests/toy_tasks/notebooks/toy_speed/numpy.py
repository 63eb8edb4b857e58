# %% parameters
import sys; sys.path.append("../..")
from common.params.toy_speed import NETWORK, BATCHSIZE, PHASE, WARMUP, STEPS, REPEATS, SEED, INITIAL_WEIGHTS

# %% setup
import time

import numpy as np

from common.data import toy
from common.params.toy_speed import weight_shapes
from common.record import emit, progress
from common.weights import load_weights, save_outputs

rng = np.random.RandomState(SEED)

# %% data
x = toy.inputs(BATCHSIZE)

# %% model
weights = {name: rng.normal(size=shape).astype("float32") for name, shape in weight_shapes(NETWORK).items()}
multiply_adds = sum(weight.size for weight in weights.values())


def forward(x):
    for weight in weights.values():
        x = np.maximum(x @ weight.T, 0)
    return x

# %% weights
if INITIAL_WEIGHTS:
    weights = load_weights(INITIAL_WEIGHTS, weight_shapes(NETWORK))

# %% step
for _ in range(WARMUP):
    forward(x)
values = []
for repeat in range(REPEATS):
    started = time.perf_counter()
    for _ in range(STEPS):
        y = forward(x)
    values.append((time.perf_counter() - started) / STEPS)
    progress("repeat", repeat + 1, REPEATS, "%.6f s a step" % values[-1], STEPS * values[-1])

# %% record
metrics = {"parameters": multiply_adds, "multiply_adds": multiply_adds, "step_s": sum(values) / len(values)}
point = {"at": {"network": NETWORK, "phase": PHASE, "batch": BATCHSIZE}, "values": values, "unit": "s"}
text = "%s: %.6f s a step" % (NETWORK, metrics["step_s"])
emit(metrics, [np], "cpu", text, [point], save=lambda folder: save_outputs(folder, weights, y))
