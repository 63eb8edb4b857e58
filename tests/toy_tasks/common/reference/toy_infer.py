"""A layer with ReLU in NumPy."""

import numpy as np

from common.data import toy
from common.params.toy_infer import WEIGHT_SHAPES

# ---- [data] Drawn numbers


def inputs(n, synthetic):
    return toy.inputs(n, synthetic)


# ---- [weights] Normal numbers


def initial_weights(seed):
    rng = np.random.RandomState(seed)
    return {name: rng.normal(size=shape) for name, shape in WEIGHT_SHAPES.items()}


# ---- [model] The layer


def outputs(weights, x):
    return np.maximum(x @ weights["fc.weight"].T + weights["fc.bias"], 0)
