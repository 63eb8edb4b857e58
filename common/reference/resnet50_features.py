"""The network of the task ``resnet50_features`` in plain NumPy: the definition that every notebook is held against.

``of(flavour)`` gives one of ``FLAVOURS``; its weights are a dict of arrays with the names and shapes of ``WEIGHT_SHAPES``. Everything is
computed in the precision of the weights. A line ``# ---- [role]`` begins what stands for that step of the notebooks.
"""

import numpy as np

from common.data import images
from common.params.resnet50_features import EXPECTED, FLAVOURS, STAGES, WEIGHT_SHAPES
from common.reference.convolutional import batch_norm, conv2d, max_pool2d
from common.reference.layers import relu


def of(flavour):
    """The network as the frameworks of this flavour have it."""
    return Network(EXPECTED[flavour]["parameters"], **FLAVOURS[flavour])


class Network(object):
    """ResNet-50 up to its 2,048 features; arguments as in ``FLAVOURS``."""

    WEIGHT_SHAPES = WEIGHT_SHAPES

    def __init__(self, parameters, stride, pool, epsilon, biases):
        self.PARAMETERS = parameters
        self.stride, self.pool, self.epsilon = stride, pool, epsilon

    # ---- [data] Generated images

    def inputs(self, n, synthetic):
        return images.generate(n)

    # ---- [model] The network: a convolution, a pooling, four stages of bottlenecks, the mean over all pixels

    def outputs(self, weights, x):
        """Images (n, 3, 224, 224) -> features (n, 2048), one by one to save memory."""
        return np.concatenate([self.features(weights, image[None]) for image in x])

    def features(self, weights, x):
        x = relu(self.norm(weights, "bn1", conv2d(x, weights["conv1.weight"], stride=2, padding=3)))
        x = max_pool2d(x, 3, 2, self.pool)
        for stage, (blocks, _) in enumerate(STAGES):
            for block in range(blocks):
                x = self.bottleneck(weights, "layer%d.%d" % (stage + 1, block), x, self.strides(stage, block))
        return self.pooled(x)

    def pooled(self, x):
        """The mean over all pixels."""
        return x.mean(axis=(2, 3))

    def strides(self, stage, block):
        """Of the three convolutions of a bottleneck."""
        of_block, of_conv = self.stride
        stages = (1, 2, 3) if of_block == 0 else (0, 1, 2)
        here = stage in stages and block == of_block % STAGES[stage][0]
        return [2 if here and conv == of_conv else 1 for conv in range(3)]

    def bottleneck(self, weights, name, x, strides):
        """Three convolutions beside a shortcut."""
        shortcut = self.shortcut(weights, name, x, strides)
        for number, stride in enumerate(strides, start=1):
            x = self.unit(weights, name, number, x, stride)
            x = relu(x + shortcut if number == 3 else x)
        return x

    def unit(self, weights, name, number, x, stride):
        """A convolution of a bottleneck and its batch norm."""
        kernel = weights["%s.conv%d.weight" % (name, number)]
        return self.norm(weights, "%s.bn%d" % (name, number), conv2d(x, kernel, stride, padding=kernel.shape[-1] // 2))

    def shortcut(self, weights, name, x, strides):
        """What is added: the input, as wide as the output by a convolution in the first bottleneck of a stage."""
        x = x[:, :, :: max(strides), :: max(strides)]
        if name + ".downsample.0.weight" not in weights:
            return x
        return self.norm(weights, name + ".downsample.1", conv2d(x, weights[name + ".downsample.0.weight"]))

    def norm(self, weights, name, x):
        parts = ("weight", "bias", "running_mean", "running_var")
        return batch_norm(x, *(weights["%s.%s" % (name, part)] for part in parts), epsilon=self.epsilon)

    # ---- [weights] Drawn weights that keep activations in range: the statistics are those of what the kernels make

    def initial_weights(self, seed):
        """Weights and statistics, float64. Variances go from 0.001 to 1, as in published weights, so that epsilon shows."""
        rng = np.random.RandomState(seed)
        weights = {}
        for name, shape in WEIGHT_SHAPES.items():
            if len(shape) == 4:
                variance = 10.0 ** rng.uniform(-3, 0, shape[0])
                deviation = np.sqrt(2 * variance / np.prod(shape[1:]))
                weights[name] = rng.normal(size=shape) * deviation[:, None, None, None]
            elif name.endswith("running_var"):
                weights[name] = variance
            elif name.endswith("running_mean"):
                weights[name] = rng.normal(size=shape) * 0.3 * np.sqrt(variance)
            elif name.endswith("weight"):
                last = "bn3" in name
                weights[name] = rng.uniform(0.1, 0.5, shape) if last else rng.uniform(0.5, 1.5, shape)
            else:
                weights[name] = rng.normal(size=shape) * 0.2
        return {name: weights[name] for name in WEIGHT_SHAPES}
