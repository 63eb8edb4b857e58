"""Constants of the task ``densenet_parallel``: DenseNet-121 with 14 labels, trained on several devices at once.

Notebooks import them by name in their ``parameters`` cell, where papermill may override each. ``network(BLOCKS)`` is the network.
"""

from common.data.xrays import LABELS
from common.layers import AveragePool, BatchNorm, Concat, Conv, Dense, GlobalAveragePool, MaxPool, Relu
from common.params.networks import Network

DEVICES = 2  # how many share a step: GPUs, or virtual devices of one thread each where there is no GPU
EPOCHS = 5  # passes over the training images
BATCHSIZE = 64  # images a step on each device; what is left over at the end of an epoch is not used
LR = 1e-4  # learning rate of Adam, constant; for the batch of all devices
LR_SCALE = 1.0  # what LR is multiplied by; the number of devices in some publications
BETA1 = 0.9  # of Adam: the share that the mean of the gradients keeps
BETA2 = 0.999  # of Adam: the share that the mean of their squares keeps
EPSILON = 1e-8  # of Adam, outside of the root
BLOCKS = "6,12,24,16"  # dense layers in each of the four blocks
PIXELS = 64  # a side of an image
SHUFFLE = True  # whether each epoch has another order of the images
SEED = 0  # of the initial weights and of the order of the images
N_TRAIN = 4000  # training images used
N_TEST = 1000  # test images used
XRAYS = None  # folder of ChestX-ray14 as its publisher ships it, or None: images are generated
INITIAL_WEIGHTS = None  # a file of canonical weights to start from (.npz), or None


# Which images batch norm takes its mean and variance from in training, those of one device or those of all; whose statistics are
# kept for the test; whether the variance that is kept is unbiased, n / (n - 1) times as large
_NORMS = {
    "of each device": {"norm": "device", "kept": "first", "unbiased": False},
    "of each device, kept unbiased": {"norm": "device", "kept": "first", "unbiased": True},
    "of each device, kept as their mean": {"norm": "device", "kept": "mean", "unbiased": False},
    "of each device, kept as their unbiased mean": {"norm": "device", "kept": "mean", "unbiased": True},
    "of all devices": {"norm": "all", "kept": "first", "unbiased": False},
    "of all devices, kept unbiased": {"norm": "all", "kept": "first", "unbiased": True},
}
# Where Adam adds its epsilon: to the root that is corrected, or to the one before ("epsilon hat"), as in ``imdb_gru``
FLAVOURS = {
    name + (", epsilon hat" if hat else ""): dict(norm, hat=hat)
    for hat in (False, True)
    for name, norm in _NORMS.items()
}

EXPECTED = {flavour: {"parameters": 6968206} for flavour in FLAVOURS}


def densenet(blocks):
    """DenseNet (Huang et al., 2016) with a logit for each of ``LABELS``, as a list of layers. blocks: how many dense layers each has."""
    layers, channels = [Conv(64, 7, 2, 3, bias=False), BatchNorm(), Relu(), MaxPool(3, 2, 1)], 64
    for block, number in enumerate(blocks):
        if block:  # between two blocks: half of the channels and of the pixels a side
            channels //= 2
            layers += [BatchNorm(), Relu(), Conv(channels, 1, bias=False), AveragePool(2, 2)]
        for _ in range(number):
            new = [BatchNorm(), Relu(), Conv(128, 1, bias=False), BatchNorm(), Relu()]
            layers += [Concat([], new + [Conv(32, 3, padding=1, bias=False)])]
        channels += 32 * number
    return layers + [BatchNorm(), Relu(), GlobalAveragePool(), Dense(len(LABELS))]


def network(blocks, pixels=PIXELS):
    """The network with so many dense layers in each block, ``"6,12,24,16"``: its ``WEIGHT_SHAPES`` have no image's size in them."""
    return Network(densenet([int(number) for number in blocks.split(",")]), (3, pixels, pixels))
