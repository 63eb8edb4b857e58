"""The networks of the task ``networks`` in plain NumPy: the definition that every notebook is held against.

Weights are a dict of arrays with the names and shapes of a network's ``WEIGHT_SHAPES``; everything is computed in their precision.
"""

import os

import numpy as np

from common.data import examples
from common.layers import product
from common.params import networks as lists
from common.reference import network_layers, network_training

# A text whose words come again and again: the gradient of an embedding adds up what each occurrence gives
TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "networks.txt")
# Networks that are trained for some steps, with parameters that make these count: a change that float32 shows, a gradient to clip
TRAINED = {
    "fcn_r": {"LR": 0.1},
    "alexnet_r": {"LR": 0.01},
    "resnet56": {"LR": 0.1},
    "lstm": {"LR": 1.0, "CLIP": 0.05, "TEXT": TEXT},
}


class of(object):
    """The task as frameworks of this flavour have it."""

    NAMES, TRAINED = tuple(lists.NETWORKS), TRAINED

    def __init__(self, flavour):
        self.biases = lists.FLAVOURS[flavour]

    def network(self, name):
        return Network(name, self.biases)


class Network(lists.Network):
    """One of the networks, which computes. biases: of an LSTM; all but the first are not in WEIGHT_SHAPES, since they add up."""

    def __init__(self, name, biases=1):
        lists.Network.__init__(self, *lists.NETWORKS[name])
        self.name, self.copies = name, {part.name + ".bias": biases for part in self.parts if part.kind == "lstm"}
        self.PARAMETERS += sum((n - 1) * product(self.WEIGHT_SHAPES[bias]) for bias, n in self.copies.items())

    # ---- [data] A batch of noise

    def inputs(self, n, synthetic):
        return examples.batch(self, n)[0]

    # ---- [model] Layers, one after the other or side by side

    def outputs(self, weights, x):
        """Images (n, channels, height, width) or words (n, words) -> logits (n, classes) or (n, words, classes), one by one to save
        memory."""
        return np.concatenate([network_layers.run(self.layers, weights, one[None]) for one in x])

    # ---- [weights] Drawn weights that keep activations in range

    def initial_weights(self, seed):
        """Weights and statistics, float64. Batch norm about keeps the size of activations, and makes what is added to a shortcut
        small, so that a hundred layers neither lose nor drown the input. Variances go from 0.1 to 1, so that epsilon shows."""
        rng = np.random.RandomState(seed)
        weights = {name: drawn(name, shape, rng) for name, shape in self.WEIGHT_SHAPES.items()}
        added = {layer.branches[0][-1].name for layer in self.layers if layer.kind == "add"}
        for part in self.parts:
            if part.kind == "batch_norm":
                weights[part.name + ".weight"] *= np.sqrt(weights[part.name + ".running_var"])
                weights[part.name + ".weight"] *= 0.2 if part.name in added else 1
        return weights

    # ---- [step] Forward, backward and update

    def trained(self, weights, n, steps, constants, synthetic):
        """The weights after so many steps on the same batch of n, and the loss before the last update. constants: TEXT may be there."""
        x, y = examples.batch(self, n, text=constants.get("TEXT"))
        return network_training.steps(
            self, weights, x.astype(np.float64) if x.dtype.kind == "f" else x, y, steps, constants
        )


def drawn(name, shape, rng):
    if name.endswith("running_var"):
        return 10.0 ** rng.uniform(-1, 0, shape)
    if len(shape) > 1:  # He et al., 2015
        return rng.normal(size=shape) * np.sqrt(2.0 / np.prod(shape[1:]))
    if name.endswith("weight"):  # of batch norm
        return rng.uniform(0.7, 1.3, shape)
    return 0.1 * rng.normal(size=shape)
