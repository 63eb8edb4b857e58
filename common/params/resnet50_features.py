"""Constants of the task ``resnet50_features``: 2,048 features of each image by ResNet-50, the same in every framework.

Notebooks import them by name in their ``parameters`` cell, where papermill may override each.
"""

import numpy as np

BATCHSIZE = 32  # images a batch; the last batch of a folder may be smaller
N_INPUTS = 1280  # generated images: 40 full batches
SEED = 0  # of the weights, where none are given
IMAGES = None  # a folder of pictures to take in the place of generated images, or None
PRETRAINED = False  # whether the framework downloads the weights that it publishes
INITIAL_WEIGHTS = None  # a file of canonical weights (.npz), or None

# What ImageNet's images have a channel (red, green, blue), of values from 0 to 1: what published weights were trained with
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)

# Four stages of bottlenecks: how many, and channels inside of one; four times as many come out
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def _norm(name, channels):
    """Scale, shift, and the statistics that inference divides by."""
    return [(name + "." + part, (channels,)) for part in ("weight", "bias", "running_mean", "running_var")]


def _network():
    """Names and shapes of all that is no input, in the order of the layers; names are torchvision's. Kernels: out x in x height x width."""
    tensors = [("conv1.weight", (64, 3, 7, 7))] + _norm("bn1", 64)
    channels = 64
    for stage, (blocks, width) in enumerate(STAGES, start=1):
        for block in range(blocks):
            name = "layer%d.%d" % (stage, block)
            kernels = (width, channels, 1), (width, width, 3), (4 * width, width, 1)
            for number, (wide, deep, size) in enumerate(kernels, start=1):
                tensors += [("%s.conv%d.weight" % (name, number), (wide, deep, size, size))]
                tensors += _norm("%s.bn%d" % (name, number), wide)
            if block == 0:
                tensors += [(name + ".downsample.0.weight", (4 * width, channels, 1, 1))]
                tensors += _norm(name + ".downsample.1", 4 * width)
            channels = 4 * width
    return dict(tensors)


# The weights in their canonical form. A convolution's bias has no place of its own: batch norm takes it off again with the mean
WEIGHT_SHAPES = _network()

# What frameworks call ResNet-50:
#   stride   which convolution of which bottleneck of a stage takes every second pixel (both count from 0, -1 is the last)
#   pool     pixels that the first pooling, 3x3 with a stride of 2, adds to each side: in front, behind
#   epsilon  what batch norm adds to the variance
#   biases   of convolutions, numbers that the batch norm behind them makes superfluous
_V1, _V15 = {"stride": (0, 0), "pool": (1, 1), "epsilon": 1e-5}, {"stride": (0, 1), "pool": (1, 1), "epsilon": 1e-5}
FLAVOURS = {
    # The paper of 2015: in the first convolution, 1x1
    "v1": dict(_V1, biases=0),
    "v1, biases of 1x1": dict(_V1, biases=18880),
    "v1, epsilon 1.001e-5, biases": dict(_V1, epsilon=1.001e-5, biases=26560),
    "v1, epsilon 1e-3, biases": dict(_V1, epsilon=1e-3, biases=26560),
    "v1, epsilon 2e-5, pool to the end, bias of the first": dict(_V1, epsilon=2e-5, pool=(0, 1), biases=64),
    # Torch and NVIDIA: in the second one, 3x3
    "v1.5": dict(_V15, biases=0),
    # TF-Slim: in the last bottleneck; the fourth stage has none
    "v1, epsilon 1.001e-5, stride and pool to the end": dict(
        _V1, epsilon=1.001e-5, stride=(-1, 1), pool=(0, 1), biases=0
    ),
}

# What a run is checked against, by flavour: what is trained, statistics of batch norm left out
_trained = sum(int(np.prod(shape)) for name, shape in WEIGHT_SHAPES.items() if "running" not in name)
EXPECTED = {name: {"parameters": _trained + flavour["biases"]} for name, flavour in FLAVOURS.items()}
