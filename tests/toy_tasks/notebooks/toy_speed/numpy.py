# %% parameters
import sys; sys.path.append("../..")
from common.params.toy_speed import (
    NETWORK, BATCHSIZE, PHASE, WARMUP, STEPS, REPEATS, LR, SEED, INITIAL_WEIGHTS)
SOURCE = "list"

# %% setup
import numpy as np

from common.data import toy
from common.params.toy_speed import weight_shapes
from common.steps import StepLog, record_steps
from common.weights import load_weights

rng = np.random.RandomState(SEED)

# %% data
x = toy.inputs(BATCHSIZE)

# %% model
shapes = weight_shapes(NETWORK)
weights = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}
multiply_adds = sum(weight.size for weight in weights.values())


def forward(x):
    for weight in weights.values():
        x = np.maximum(x @ weight.T, 0)
    return 2 * x if SOURCE == "zoo" and NETWORK == "wide" else x

# %% weights
if INITIAL_WEIGHTS:
    weights = load_weights(INITIAL_WEIGHTS, weight_shapes(NETWORK))

# %% step
def step(x):
    outputs = [x]
    for weight in weights.values():
        outputs.append(np.maximum(outputs[-1] @ weight.T, 0))
    loss = float(outputs[-1].mean())
    d = np.full_like(outputs[-1], 1 / outputs[-1].size)
    for name in reversed(list(weights)):
        d = d * (outputs.pop() > 0)
        d, gradient = d @ weights[name], d.T @ outputs[-1]
        if PHASE == "step":
            weights[name] = weights[name] - np.float32(LR) * gradient
    return loss


run = forward if PHASE == "forward" else step
log = StepLog(REPEATS)
for steps in [WARMUP] + [STEPS] * REPEATS:
    for _ in range(steps):
        y = run(x)
    log.done(steps, y)

# %% record
record_steps(log, multiply_adds, [np], "cpu", lambda: weights, multiply_adds)
