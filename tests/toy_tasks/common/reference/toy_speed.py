"""Chains of dense layers with ReLU in NumPy."""

import numpy as np

from common.data import toy
from common.params.toy_speed import NETWORKS, weight_shapes

NAMES, TRAINED = tuple(NETWORKS), {"narrow": {"LR": 0.5}}

# ---- [model] A network by its name


class network:
    def __init__(self, name):
        self.WEIGHT_SHAPES = weight_shapes(name)
        self.PARAMETERS = self.MULTIPLY_ADDS = sum(n * m for n, m in self.WEIGHT_SHAPES.values())

    def initial_weights(self, seed):
        rng = np.random.RandomState(seed)
        return {name: rng.uniform(-0.5, 1, shape) for name, shape in self.WEIGHT_SHAPES.items()}

    def inputs(self, n, synthetic):
        return toy.inputs(n, synthetic)

    def outputs(self, weights, x):
        for weight in weights.values():
            x = np.maximum(x @ weight.T, 0)
        return x

    # ---- [step] The mean of the outputs falls

    def trained(self, weights, n, steps, constants, synthetic):
        for _ in range(steps):
            outputs = [toy.inputs(n, synthetic).astype(float)]
            for weight in weights.values():
                outputs.append(np.maximum(outputs[-1] @ weight.T, 0))
            loss, d, moved = outputs[-1].mean(), np.full(outputs[-1].shape, 1 / outputs[-1].size), {}
            for name in reversed(list(weights)):
                d = d * (outputs.pop() > 0)
                moved[name] = weights[name] - constants["LR"] * (d.T @ outputs[-1])
                d = d @ weights[name]
            weights = {name: moved[name] for name in weights}
        return weights, loss
