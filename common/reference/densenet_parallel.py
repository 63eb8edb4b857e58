"""The task ``densenet_parallel`` in plain NumPy: the definition that every notebook is held against.

Images are uint8 (n, pixels, pixels), labels (n, 14) of 0 and 1; weights are a dict of arrays with the names and shapes of
``WEIGHT_SHAPES``, the statistics of batch norm among them. Everything is computed in the precision of the weights. The layers
and their derivatives stand in ``network_layers.py`` and ``network_training.py``. A line ``# ---- [role]`` begins what stands for
that step of the notebooks.
"""

from itertools import combinations

import numpy as np

from common.data import xrays
from common.parallel import mean_auc
from common.params import densenet_parallel as params
from common.reference import network_layers, network_training
from common.reference.layers import adam_step, glorot_bound
from common.reference.recurrent import sigmoid

MOMENTUM = 0.9  # the share that the kept statistics of batch norm keep at each step
# Proofs train a small network of the same layers for a few steps on two devices. Adam would hide summed gradients behind a small
# EPSILON: it divides the mean of the gradients by the root of that of their squares. Images are small, so that few ReLUs lie where
# float32 rounds, and the last batch norm has 16 values a device: enough to tell a biased variance from an unbiased one
PROBE = {"BLOCKS": "2,2,2", "PIXELS": 32, "DEVICES": 2, "BATCHSIZE": 4, "N_TRAIN": 19, "N_TEST": 30, "EPOCHS": 2}
PROBE.update({"EPSILON": 0.01, "LR": 0.001})
ORDER = {"BATCHSIZE": 2, "N_TRAIN": 6}  # of the proof that the images are shuffled


class of(object):
    """The task as frameworks of this flavour have it. flavour: one of ``FLAVOURS``."""

    ORDER, score = ORDER, staticmethod(mean_auc)

    def __init__(self, flavour):
        vars(self).update(params.FLAVOURS[flavour])
        # In the first steps the root before its correction is a thirtieth of the corrected one: steps would be as small as what
        # float32 rounds of the weights
        self.PROBE = dict(PROBE, EPSILON=PROBE["EPSILON"] * 0.03) if self.hat else PROBE
        self.small = params.network(PROBE["BLOCKS"], PROBE["PIXELS"])
        self.WEIGHT_SHAPES, self.PARAMETERS = self.small.WEIGHT_SHAPES, self.small.PARAMETERS

    # ---- [data] Generated images

    def data(self, n_train, n_test):
        return xrays.load(n_train, n_test, PROBE["PIXELS"])

    # ---- [model] The network, and how images enter it

    def inputs(self, weights, x):
        """Bytes -> (n, 3, pixels, pixels) from 0 to 1: grey is red, green and blue alike."""
        return np.repeat(x[:, None], 3, axis=1).astype(weights["0.weight"].dtype) / 255

    def forward(self, weights, x):
        """Images -> logits (n, 14), with the kept statistics."""
        return network_layers.run(self.small.layers, weights, self.inputs(weights, x))

    # ---- [optimizer] The loss and its gradient

    def gradients(self, weights, x, y):
        """Of the images that batch norm takes together: the loss, its gradients, and the statistics of each batch norm.

        The loss is the mean over images and labels of the cross-entropy of sigmoids.
        """
        images, statistics = self.inputs(weights, x), {}
        self.observe(self.small.layers, weights, images, statistics)
        logits, back = network_training.traced(self.small.layers, weights, images)
        loss = np.mean(np.maximum(logits, 0) - logits * y + np.log1p(np.exp(-np.abs(logits))))
        _, gradients = back((sigmoid(logits) - y) / y.size)
        return loss, gradients, statistics

    def observe(self, layers, weights, x, statistics):
        """What the layers compute in training. Into ``statistics``: the mean and variance that each batch norm takes, of how many values."""
        for layer in layers:
            if layer.kind == "concat":
                x = np.concatenate([self.observe(part, weights, x, statistics) for part in layer.branches], axis=1)
                continue
            if layer.kind == "batch_norm":
                axes = (0, 2, 3)
                statistics[layer.name] = x.mean(axis=axes), x.var(axis=axes), x.size // x.shape[1]
            x, _ = network_training.traced([layer], weights, x)
        return x

    # ---- [train] Training

    def devices(self, x, y, constants):
        """One step's images, as each device has them: the d-th part of them, in their order."""
        return [(part, labels) for part, labels in zip(*(np.split(a, constants["DEVICES"]) for a in (x, y)))]

    def used(self, n, size):
        """How many of n images are: what is left over at the end of an epoch is not."""
        return n - n % size

    def together(self, parts):
        """What each batch norm sees at once: the images of one device, or those of all."""
        return parts if self.norm == "device" else [tuple(np.concatenate(arrays) for arrays in zip(*parts))]

    def averaged(self, gradients):
        """Of the devices, one gradient for all."""
        return {name: sum(each[name] for each in gradients) / len(gradients) for name in gradients[0]}

    def keep(self, weights, found):
        """The statistics that are kept after a step. found: those of each device, name -> (mean, variance, how many values)."""
        kept = {}
        for name in found[0]:
            devices = found if self.kept == "mean" else found[:1]
            mean = np.mean([each[name][0] for each in devices], axis=0)
            variance = np.mean([each[name][1] * self.correction(each[name][2]) for each in devices], axis=0)
            for part, new in (("running_mean", mean), ("running_var", variance)):
                old = weights[name + "." + part]
                kept[name + "." + part] = MOMENTUM * old + (1 - MOMENTUM) * new
        return kept

    def correction(self, n):
        return n / (n - 1.0) if self.unbiased else 1.0

    def train(self, weights, epochs, constants):
        """Adam over the epochs' images (x, y), in their order. Returns the weights and the mean loss of each epoch.

        What is left over at the end of an epoch is not used.
        """
        learned = [name for name in weights if "running" not in name]
        means, squares = ({name: np.zeros_like(weights[name]) for name in learned} for _ in range(2))
        size, t, losses = constants["DEVICES"] * constants["BATCHSIZE"], 0, []
        for x, y in epochs:
            of_steps = []
            for start in range(0, self.used(len(x), size), size):
                t += 1
                parts = self.devices(x[start : start + size], y[start : start + size], constants)
                loss, gradients, found = zip(*(self.gradients(weights, *part) for part in self.together(parts)))
                moved, means, squares = adam_step(
                    {name: weights[name] for name in learned},
                    means,
                    squares,
                    self.averaged(gradients),
                    constants["LR"] * constants["LR_SCALE"],
                    t,
                    (constants["BETA1"], constants["BETA2"]),
                    constants["EPSILON"],
                    hat=self.hat,
                )
                weights = dict(weights, **dict(moved, **self.keep(weights, found)))
                of_steps.append(np.mean(loss))
            losses.append(np.mean(of_steps))
        return weights, losses

    def orders(self, weights, x, y, constants):
        """The losses that an epoch of one step can have: for each choice of its images, and of those of the first device.

        No weight changes: the learning rate is 0.
        """
        size, losses = constants["BATCHSIZE"], set()
        of_part = {}
        for chosen in combinations(range(len(x)), constants["DEVICES"] * size):
            for first in combinations(chosen, size):
                rest = tuple(i for i in chosen if i not in first)
                parts = self.together([(x[list(part)], y[list(part)]) for part in (first, rest)])
                names = [first, rest] if len(parts) > 1 else [chosen]
                for name, part in zip(names, parts):
                    if name not in of_part:
                        of_part[name] = self.gradients(weights, *part)[0]
                losses.add(np.mean([of_part[name] for name in names]))
        return sorted(losses)

    # ---- [evaluate] Prediction

    def probabilities(self, weights, x):
        """What the network says of the images, (n, 14): each label's own probability."""
        return np.concatenate([sigmoid(self.forward(weights, x[i : i + 50])) for i in range(0, len(x), 50)])

    # ---- [weights] Initial weights: Glorot uniform; batch norm begins with 1 and 0

    def initial_bound(self, name):
        """A weight is drawn between minus this and this; 0 of a bias. None of what begins with 1, and of statistics."""
        shape = self.WEIGHT_SHAPES[name]
        if len(shape) > 1:
            return glorot_bound(shape)
        return 0.0 if name.endswith("bias") else None

    def given_weights(self, seed):
        """Weights and statistics to start a proof from, float64: none is what it would be by itself.

        Where float32 rounds, a ReLU may open or close: that changes gradients at once. With the seed 39 none does in NumPy, PyTorch,
        TensorFlow, JAX and MXNet.
        """
        rng = np.random.RandomState(seed + 38)
        weights = {}
        for name, shape in self.WEIGHT_SHAPES.items():
            part = name.rpartition(".")[2]
            if len(shape) > 1:
                weights[name] = rng.uniform(-1, 1, shape) * glorot_bound(shape)
            else:
                low, high = {"weight": (0.7, 1.3), "running_var": (0.5, 1.5)}.get(part, (-0.3, 0.3))
                weights[name] = rng.uniform(low, high, shape)
        return weights
