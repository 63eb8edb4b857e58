"""Constants of the task ``networks``: timed steps of the networks that the benchmarks of 2016 and 2017 timed, each a list of layers.

Notebooks import constants by name in their ``parameters`` cell, where papermill may override each. ``network(name)`` is a network;
what follows from its list, from shapes of weights to arithmetic, is in ``Network``.
"""

from common.layers import (
    LSTM,
    Add,
    AveragePool,
    BatchNorm,
    Concat,
    Conv,
    Dense,
    Embedding,
    Flatten,
    GlobalAveragePool,
    LocalResponseNorm,
    MaxPool,
    PadChannels,
    Relu,
    Sigmoid,
    connect,
    pair,
    product,
)

NETWORK = "alexnet_r"  # one of NETWORKS
BATCHSIZE = 64
PHASE = "step"  # "forward", as at inference; "gradient", forward and backward; "step", with the update of the weights
WARMUP = 10  # steps that are not counted
STEPS = 100  # that are timed at once
REPEATS = 5  # how often
LR = 0.001  # of SGD; small, because nothing is to be learned from one batch of noise
MOMENTUM = 0.9
CLIP = 5.0  # the largest norm of the gradient of ``lstm``, over all weights
IMAGES = None  # a folder of pictures, a folder for each class, to take in the place of noise; or None
TEXT = None  # a file whose words ``lstm`` takes in the place of noise; or None
SEED = 0  # of the batch and of the weights
INITIAL_WEIGHTS = None  # a file of canonical weights (.npz), or None

# What is published of an LSTM's biases: frameworks that follow cuDNN have one for the input and one for the state. They add up
FLAVOURS = {"one bias": 1, "two biases": 2}
EXPECTED = {flavour: {} for flavour in FLAVOURS}


class Network(object):
    """A list of layers, each in its place. ``parts`` are those that compute, also within branches. input_shape: of one input."""

    def __init__(self, layers, input_shape):
        self.input_shape, self.layers = input_shape, connect(layers, input_shape)
        self.output_shape = self.layers[-1].out_shape
        self.parts = parts = [part for layer in self.layers for part in layer.parts()]
        self.WEIGHT_SHAPES = {part.name + "." + name: shape for part in parts for name, shape in part.weights()}
        trained = [shape for name, shape in self.WEIGHT_SHAPES.items() if "running" not in name]
        self.PARAMETERS = sum(map(product, trained))
        self.MULTIPLY_ADDS = sum(part.multiply_adds() for part in parts)
        self.ACTIVATIONS = sum(product(part.out_shape) for part in parts)  # numbers that training keeps, at the most
        pairs = zip(self.layers, self.layers[1:])
        # Tables of embeddings; dense weights whose inputs are a flattened image, with its shape: frameworks with channels last flatten in another order
        self.TABLES = [part.name + ".weight" for part in parts if part.kind == "embedding"]
        self.FLATTENED = {after.name + ".weight": one.in_shape for one, after in pairs if one.kind == "flatten"}


def perceptron(inputs, widths):
    """Dense layers with sigmoids between them."""
    *hidden, last = widths
    return [layer for width in hidden for layer in (Dense(width), Sigmoid())] + [Dense(last)], (inputs,)


def alexnet_r():
    """The CIFAR-10 network of cuda-convnet, as dlbench had it."""
    norm = LocalResponseNorm(3, 5e-5, 0.75)
    first = [Conv(32, 5, padding=2), MaxPool(3, 2, ceil=True), Relu(), norm]
    second = [Conv(32, 5, padding=2), Relu(), MaxPool(3, 2, ceil=True), norm]
    third = [Conv(64, 5, padding=2), Relu(), AveragePool(3, 2, ceil=True)]
    return first + second + third + [Flatten(), Dense(10)], (3, 32, 32)


def resnet56():
    """6n + 2 layers for CIFAR-10 with n = 9 (He et al., 2015), shortcuts without parameters."""
    layers, channels = [Conv(16, 3, padding=1, bias=False), BatchNorm(), Relu()], 16
    for width in (16, 32, 64):
        for _ in range(9):
            stride = 1 if width == channels else 2
            body = [Conv(width, 3, stride, 1, bias=False), BatchNorm(), Relu()]
            body += [Conv(width, 3, padding=1, bias=False), BatchNorm()]
            layers += [Add(body, [] if stride == 1 else [PadChannels(width, stride)]), Relu()]
            channels = width
    return layers + [GlobalAveragePool(), Dense(10)], (3, 32, 32)


def lstm():
    """The next word of 10,000, at each of 32 words, as dlbench had it."""
    return [Embedding(10000, 256), LSTM(256), LSTM(256), Dense(10000)], (32,)


def classifier(*widths):
    """Dense layers behind convolutions, and 1,000 classes."""
    return [Flatten()] + [layer for width in widths for layer in (Dense(width), Relu())] + [Dense(1000)]


def alexnet():
    """One tower (Krizhevsky, 2014, the widths of 2012), without local response norm."""
    layers = [Conv(96, 11, 4, 2), Relu(), MaxPool(3, 2), Conv(256, 5, padding=2), Relu(), MaxPool(3, 2)]
    for width in (384, 384, 256):
        layers += [Conv(width, 3, padding=1), Relu()]
    return layers + [MaxPool(3, 2)] + classifier(4096, 4096), (3, 224, 224)


def overfeat():
    """The fast model of Sermanet et al., 2013."""
    layers = [Conv(96, 11, 4), Relu(), MaxPool(2, 2), Conv(256, 5), Relu(), MaxPool(2, 2)]
    for width in (512, 1024, 1024):
        layers += [Conv(width, 3, padding=1), Relu()]
    return layers + [MaxPool(2, 2)] + classifier(3072, 4096), (3, 231, 231)


def vgg16():
    """Configuration D of Simonyan and Zisserman, 2014."""
    layers = []
    for width, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        layers += [layer for _ in range(convolutions) for layer in (Conv(width, 3, padding=1), Relu())]
        layers += [MaxPool(2, 2)]
    return layers + classifier(4096, 4096), (3, 224, 224)


def googlenet():
    """Szegedy et al., 2014, without the two classifiers on the way."""
    norm = LocalResponseNorm(5, 1e-4, 0.75)
    layers = [Conv(64, 7, 2, 3), Relu(), MaxPool(3, 2, ceil=True), norm, Conv(64, 1), Relu()]
    layers += [Conv(192, 3, padding=1), Relu(), norm, MaxPool(3, 2, ceil=True)]
    layers += [inception(64, 96, 128, 16, 32, 32), inception(128, 128, 192, 32, 96, 64), MaxPool(3, 2, ceil=True)]
    layers += [inception(192, 96, 208, 16, 48, 64), inception(160, 112, 224, 24, 64, 64)]
    layers += [inception(128, 128, 256, 24, 64, 64), inception(112, 144, 288, 32, 64, 64)]
    layers += [inception(256, 160, 320, 32, 128, 128), MaxPool(3, 2, ceil=True)]
    layers += [inception(256, 160, 320, 32, 128, 128), inception(384, 192, 384, 48, 128, 128)]
    return layers + [GlobalAveragePool(), Dense(1000)], (3, 224, 224)


def inception(one, three_reduced, three, five_reduced, five, pooled):
    """Filters of 1x1, of 3x3 and 5x5 with 1x1 in front of each, and of 1x1 behind a pooling."""
    return Concat(
        [Conv(one, 1), Relu()],
        [Conv(three_reduced, 1), Relu(), Conv(three, 3, padding=1), Relu()],
        [Conv(five_reduced, 1), Relu(), Conv(five, 5, padding=2), Relu()],
        [MaxPool(3, 1, 1), Conv(pooled, 1), Relu()],
    )


def unit(filters, size, stride=1, padding=None):
    """Convolution, batch norm and ReLU of Inception-v3. padding: so that the size stays, where it is None."""
    high, wide = pair(size)
    padding = (high // 2, wide // 2) if padding is None else padding
    return [Conv(filters, size, stride, padding, bias=False), BatchNorm(1e-3), Relu()]


def inception_v3():
    """Szegedy et al., 2015, without the classifier on the way."""
    layers = unit(32, 3, 2, 0) + unit(32, 3, 1, 0) + unit(64, 3) + [MaxPool(3, 2)]
    layers += unit(80, 1) + unit(192, 3, 1, 0) + [MaxPool(3, 2)]
    for pooled in (32, 64, 64):
        double = unit(64, 1) + unit(96, 3) + unit(96, 3)
        layers += [Concat(unit(64, 1), unit(48, 1) + unit(64, 5), double, averaged(pooled))]
    double = unit(64, 1) + unit(96, 3) + unit(96, 3, 2, 0)
    layers += [Concat(unit(384, 3, 2, 0), double, [MaxPool(3, 2)])]
    for width in (128, 160, 160, 192):
        seven = unit(width, 1) + unit(width, (1, 7)) + unit(192, (7, 1))
        double = unit(width, 1) + unit(width, (7, 1)) + unit(width, (1, 7)) + unit(width, (7, 1)) + unit(192, (1, 7))
        layers += [Concat(unit(192, 1), seven, double, averaged(192))]
    seven = unit(192, 1) + unit(192, (1, 7)) + unit(192, (7, 1)) + unit(192, 3, 2, 0)
    layers += [Concat(unit(192, 1) + unit(320, 3, 2, 0), seven, [MaxPool(3, 2)])]
    for _ in range(2):
        split = [Concat(unit(384, (1, 3)), unit(384, (3, 1)))]
        double = unit(448, 1) + unit(384, 3) + split
        layers += [Concat(unit(320, 1), unit(384, 1) + split, double, averaged(192))]
    return layers + [GlobalAveragePool(), Dense(1000)], (3, 299, 299)


def averaged(filters):
    """A pooling that keeps the size, and a convolution of 1x1 behind it."""
    return [AveragePool(3, 1, 1)] + unit(filters, 1)


def resnet(blocks):
    """Bottlenecks with the stride in their 3x3 convolution (v1.5). blocks: how many in each of four stages."""
    layers = [Conv(64, 7, 2, 3, bias=False), BatchNorm(), Relu(), MaxPool(3, 2, 1)]
    for number, width in zip(blocks, (64, 128, 256, 512)):
        for block in range(number):
            stride = 2 if block == 0 and width > 64 else 1
            body = [Conv(width, 1, bias=False), BatchNorm(), Relu()]
            body += [Conv(width, 3, stride, 1, bias=False), BatchNorm(), Relu()]
            body += [Conv(4 * width, 1, bias=False), BatchNorm()]
            shortcut = [Conv(4 * width, 1, stride, bias=False), BatchNorm()] if block == 0 else []
            layers += [Add(body, shortcut), Relu()]
    return layers + [GlobalAveragePool(), Dense(1000)], (3, 224, 224)


def densenet121():
    """Huang et al., 2016: each layer sees what all layers of its block have made."""
    layers, channels = [Conv(64, 7, 2, 3, bias=False), BatchNorm(), Relu(), MaxPool(3, 2, 1)], 64
    for block, number in enumerate((6, 12, 24, 16)):
        if block:  # between two blocks: half of the channels and of the pixels a side
            channels //= 2
            layers += [BatchNorm(), Relu(), Conv(channels, 1, bias=False), AveragePool(2, 2)]
        for _ in range(number):
            new = [BatchNorm(), Relu(), Conv(128, 1, bias=False), BatchNorm(), Relu()]
            layers += [Concat([], new + [Conv(32, 3, padding=1, bias=False)])]
        channels += 32 * number
    return layers + [BatchNorm(), Relu(), GlobalAveragePool(), Dense(1000)], (3, 224, 224)


NETWORKS = {
    "fcn_r": perceptron(784, (2048, 4096, 1024, 10)),
    "fcn_s": perceptron(26752, (2048, 2048, 2048, 26752)),
    "alexnet_r": alexnet_r(),
    "resnet56": resnet56(),
    "lstm": lstm(),
    "alexnet": alexnet(),
    "overfeat": overfeat(),
    "vgg16": vgg16(),
    "googlenet": googlenet(),
    "inception_v3": inception_v3(),
    "resnet50": resnet((3, 4, 6, 3)),
    "resnet101": resnet((3, 4, 23, 3)),
    "resnet152": resnet((3, 8, 36, 3)),
    "densenet121": densenet121(),
}

CHOICES = {"NETWORK": tuple(NETWORKS), "PHASE": ("forward", "gradient", "step")}  # of the constants that are texts


def network(name):
    """One of ``NETWORKS``."""
    return Network(*NETWORKS[name])
