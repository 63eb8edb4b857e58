"""Chains of dense layers with ReLU in NumPy."""

import numpy as np

from common.data import toy
from common.params.toy_speed import NETWORKS, weight_shapes

# ---- [model] A network by its name


class network:
    def __init__(self, name):
        self.WEIGHT_SHAPES = weight_shapes(name)
        self.MULTIPLY_ADDS = sum(n * m for n, m in self.WEIGHT_SHAPES.values())

    def initial_weights(self, seed):
        rng = np.random.RandomState(seed)
        return {name: rng.normal(size=shape) for name, shape in self.WEIGHT_SHAPES.items()}

    def inputs(self, n, synthetic):
        return toy.inputs(n, synthetic)

    def outputs(self, weights, x):
        for weight in weights.values():
            x = np.maximum(x @ weight.T, 0)
        return x
