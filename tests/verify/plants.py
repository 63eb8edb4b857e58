"""A notebook that computes with the reference itself, and every known mistake of its task to plant there: the line in front of a cell,
or what stands there and what is put there.

The functions are written anew, not taken from the task's list of mistakes.
"""

CELLS = {
    "parameters": """
import sys; sys.path.append("../..")
from common.params.cifar10_cnn import (
    EPOCHS, BATCHSIZE, LR, MOMENTUM, DROPOUT_CONV, DROPOUT_FC, SEED, N_TRAIN, N_TEST, INITIAL_WEIGHTS)
""",
    "setup": """
import os, time
import numpy
from common.data import batches, cifar10
from common.params.cifar10_cnn import WEIGHT_SHAPES
from common.record import EpochLog, record
from common.reference import cifar10_cnn as network
from common.weights import load_weights
rng = numpy.random.RandomState(SEED)
""",
    "data": """
x_train, y_train, x_test, y_test = cifar10.load("NCHW", N_TRAIN, N_TEST)
""",
    "weights": """
weights = {name: a.astype("float32") for name, a in network.initial_weights(SEED).items()}
if INITIAL_WEIGHTS:
    weights = load_weights(INITIAL_WEIGHTS, WEIGHT_SHAPES)
""",
    "evaluate": """
def predict():
    return network.probabilities(weights, x_test)
def evaluate():
    return (predict().argmax(axis=1) == y_test).mean()
""",
    "train": """
velocities = {name: numpy.zeros_like(a) for name, a in weights.items()}
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    total = 0.0
    for x, y in batches(x_train, y_train, BATCHSIZE, SEED, epoch):
        masks = network.dropout_masks(len(x), rng, "float32") if DROPOUT_CONV else None
        loss, g = network.gradients(weights, x, y, masks)
        weights, velocities = network.momentum_step(weights, velocities, g, LR, MOMENTUM)
        total += loss * len(x)
    log.epoch(total / len(x_train), evaluate)
""",
    "record": """
accuracy = evaluate()
record(log, accuracy, sum(a.size for a in weights.values()), [numpy], "cpu", lambda: weights, predict)
""",
}

STEP = "network.momentum_step = step"
AROUND = """
def gradients(w, x, y, masks=None, right=network.gradients):
    loss, g = right(w, x, y, masks)
    {}
network.gradients = gradients
"""
DECAY = AROUND.format("return loss, {{n: a + {} * w[n] for n, a in g.items()}}")

IMAGES = {
    "height and width swapped": "{0} = {0}.transpose(0, 1, 3, 2)",
    "reading channels-first images as channels last": "{0} = numpy.moveaxis({0}.reshape(-1, 32, 32, 3), -1, 1)",
    "blue, green, red instead of red, green, blue": "{0} = {0}[:, [2, 1, 0]]",
    "images upside down": "{0} = numpy.flip({0}, 2)",
    "mirrored images": "{0} = numpy.flip({0}, 3)",
    "pixels from 0 to 255": "{0} = 255 * {0}",
    "pixels from -1 to 1": "{0} = ({0} - 0.5) / 0.5",
    "pixels from -0.5 to 0.5": "{0} = {0} - 0.5",
    "pixels standardised by channel": "{0} = numpy.stack([({0}[:, c] - m) / s for c, (m, s) in enumerate("
    "[(0.4914, 0.2470), (0.4822, 0.2435), (0.4465, 0.2616)])], 1).astype('float32')",
    "pixels divided by 255 twice": "{0} = {0} / numpy.float32(255)",
}
FORWARD = {
    "average pooling": "network.max_pool = lambda x: (x[:, :, ::2, ::2] + x[:, :, 1::2, ::2] + x[:, :, ::2, 1::2]"
    " + x[:, :, 1::2, 1::2]) / 4",
    "leaky ReLUs": "network.relu = lambda x: numpy.maximum(x, 0.01 * x)",
    "tanh in place of ReLU": "network.relu = numpy.tanh",
    "a second softmax": "old = network.softmax; network.softmax = lambda z: old(old(z))",
    "logits in place of probabilities": "network.softmax = lambda z: z",
    "logarithms of probabilities": "old = network.softmax; network.softmax = lambda z: numpy.log(old(z))",
    "a sigmoid in place of the softmax": "network.softmax = lambda z: 0.5 * (1 + numpy.tanh(z / 2))",
    "mirrored kernels": "old = network.conv; network.conv = lambda x, w, b: old(x, numpy.flip(w, (2, 3)), b)",
    "kernels with height and width swapped": "old = network.conv; network.conv = lambda x, w, b: old(x, w.transpose(0, 1, 3, 2), b)",
    "no biases": "old, dense = network.conv, network.dense\n"
    "network.conv = lambda x, w, b: old(x, w, 0 * b)\nnetwork.dense = lambda x, w, b: dense(x, w, 0 * b)",
    "flattening by height, width, channel": "old = network.dense; network.dense = lambda x, w, b: old("
    "x.reshape(-1, 100, 8, 8).transpose(0, 2, 3, 1).reshape(len(x), -1) if x.shape[1] == 6400 else x, w, b)",
    "exporting fc1 by height, width, channel": "old = network.dense; network.dense = lambda x, w, b: old("
    "x.reshape(-1, 8, 8, 100).transpose(0, 3, 1, 2).reshape(len(x), -1) if x.shape[1] == 6400 else x, w, b)",
}
LAYERS = ("conv1", "the first pooling", "conv3", "the second pooling", "fc1")  # by the shape of what they give
SHAPES = ("(50, 32, 32)", "(50, 16, 16)", "(100, 16, 16)", "(100, 8, 8)", "(512,)")
for layer, shape in zip(LAYERS, SHAPES):
    FORWARD["no ReLU after " + layer] = (
        f"old = network.relu; network.relu = lambda x: x if x.shape[1:] == {shape} else old(x)"
    )
FORWARD |= {name: line.format("x_test") for name, line in IMAGES.items()}

TRAINING = {
    "momentum 0": "MOMENTUM = 0",
    "Nesterov's momentum": f"""
def step(w, v, g, lr, m):
    old, v = v, {{n: m * v[n] - lr * g[n] for n in w}}
    return {{n: w[n] + m * v[n] - lr * g[n] for n in w}}, v
{STEP}
""",
    "unit-gain momentum": f"""
old = network.momentum_step
def step(w, v, g, lr, m):
    return old(w, v, {{n: (1 - m) * a for n, a in g.items()}}, lr, m)
{STEP}
""",
    "dampened momentum": f"""
old, steps = network.momentum_step, []
def step(w, v, g, lr, m):
    steps.append(1)
    return old(w, v, {{n: (1 - m) * a if len(steps) > 1 else a for n, a in g.items()}}, lr, m)
{STEP}
""",
    "a short batch divided by BATCHSIZE": AROUND.format(
        "return loss, {n: a * len(x) / BATCHSIZE for n, a in g.items()}"
    ),
    "a short batch scaled up to BATCHSIZE": AROUND.format(
        "return loss, {n: a * BATCHSIZE / len(x) for n, a in g.items()}"
    ),
    "a summed loss": AROUND.format("return loss * len(x), {n: a * len(x) for n, a in g.items()}"),
    "a summed loss, told as the mean": "LR *= N_TRAIN",
    "weight decay of 1e-4": DECAY.format("1e-4"),
    "weight decay of 5e-4": DECAY.format("5e-4"),
    "labels off by one": "y_train = (y_train + 1) % 10",
    "labels off by one, downwards": "y_train = (y_train + 9) % 10",
    "adding up the gradients of all steps": "kept = {}\n"
    + AROUND.format("kept.update((n, kept.get(n, 0) + a) for n, a in g.items()); return loss, dict(kept)"),
    "a loss smoothed by 0.1": AROUND.format(
        """every = [right(w, x, 0 * y + k, masks) for k in range(10)]
    return 0.9 * loss + 0.01 * sum(l for l, _ in every), {n: 0.9 * a + 0.01 * sum(k[n] for _, k in every) for n, a in g.items()}"""
    ),
    "a second softmax in the loss": """
softmax, entropy, slope = network.softmax, network.cross_entropy, network.cross_entropy_gradient
def twice(z, y):
    p, d = softmax(z), slope(softmax(z), y)
    return numpy.stack([(numpy.diag(a) - numpy.outer(a, a)) @ b for a, b in zip(p, d)])
network.cross_entropy, network.cross_entropy_gradient = lambda z, y: entropy(softmax(z), y), twice
""",
    "a short batch filled up with its first images": "more = BATCHSIZE - N_TRAIN\n"
    "x_train, y_train = numpy.concatenate([x_train, x_train[:more]]), numpy.concatenate([y_train, y_train[:more]])",
    "a short batch filled up with black images": "more = BATCHSIZE - N_TRAIN\n"
    "x_train = numpy.concatenate([x_train, 0 * x_train[:more]])\ny_train = numpy.concatenate([y_train, 0 * y_train[:more]])",
    "biases that are not trained": AROUND.format("return loss, {n: a if a.ndim > 1 else 0 * a for n, a in g.items()}"),
    "the loss after the step": ("total += loss * len(x)", "total += network.gradients(weights, x, y)[0] * len(x)"),
    "the mean of all losses so far": (
        "log.epoch(total / len(x_train)",
        "all = [*globals().get('all', []), total / len(x_train)]; log.epoch(sum(all) / len(all)",
    ),
}
TRAINING |= {f"{name} in training": line.format("x_train") for name, line in IMAGES.items()}
