"""The network of the task ``cifar10_cnn`` in plain NumPy: the definition that every notebook is held against.

Read it from top to bottom: the network; the loss and its gradient; training; dropout; the initial weights. The layers, each with
its derivative, stand in ``layers.py``. Images are (n, 3, 32, 32), that is NCHW, with pixels in [0, 1]; labels are (n,) class
numbers from 0 to 9; weights are a dict of arrays with the names and shapes of ``WEIGHT_SHAPES``. Everything is
computed in the precision of the weights: float64 to compare with, float32 where speed matters more. A line ``# ---- [role]``
begins what stands for that step of the notebooks.
"""

import numpy as np

from common.params.cifar10_cnn import DROPOUT_CONV, DROPOUT_FC, WEIGHT_SHAPES
from common.reference.layers import (
    conv,
    conv_gradient,
    cross_entropy,
    cross_entropy_gradient,
    dense,
    dense_gradient,
    dropout_mask,
    glorot_bound,
    max_pool,
    max_pool_gradient,
    momentum_step,
    relu,
    relu_gradient,
    softmax,
)

# ---- [model] The network: two convolutional blocks and two dense layers, 3,441,592 parameters


def forward(weights, x, masks=None):
    """Images -> logits (n, 10), and the values on the way that the gradients need.

    masks: one array for each of the three dropout layers (see ``dropout_masks``), multiplied in; None for no dropout.
    """
    m1, m2, m3 = masks or (1, 1, 1)
    a1, c1, h1 = block(weights, "conv1", "conv2", x)
    h1 = h1 * m1
    a2, c2, h2 = block(weights, "conv3", "conv4", h1)
    h2 = (h2 * m2).reshape(len(x), -1)  # flattened channel by channel: C, H, W
    h3, logits = head(weights, h2, m3)
    return logits, (x, a1, c1, h1, a2, c2, h2, h3)


def block(weights, first, second, x):
    """Convolution, ReLU, convolution, max-pooling, ReLU: the values after the 2nd, the 3rd and the last of these."""
    a = relu(conv(x, weights[first + ".weight"], weights[first + ".bias"]))
    c = conv(a, weights[second + ".weight"], weights[second + ".bias"])
    return a, c, relu(max_pool(c))


def head(weights, x, mask=1):
    """Dense layer, ReLU, dense layer: the values after the 2nd, before the mask, and the logits."""
    h = relu(dense(x, weights["fc1.weight"], weights["fc1.bias"]))
    return h, dense(h * mask, weights["fc2.weight"], weights["fc2.bias"])


# ---- [optimizer] The gradient of the loss, softmax cross-entropy, by every weight


def gradients(weights, x, y, masks=None):
    """The loss of a batch and its gradient by every weight, a dict like ``weights``."""
    logits, (x, a1, c1, h1, a2, c2, h2, h3) = forward(weights, x, masks)
    m1, m2, m3 = masks or (1, 1, 1)
    d, g = cross_entropy_gradient(logits, y), {}
    d, g["fc2.weight"], g["fc2.bias"] = dense_gradient(d, h3 * m3, weights["fc2.weight"])
    d, g["fc1.weight"], g["fc1.bias"] = dense_gradient(relu_gradient(d * m3, h3), h2, weights["fc1.weight"])
    d = d.reshape(len(x), 100, 8, 8)
    d = block_gradient(d * m2, weights, "conv3", "conv4", h1, a2, c2, g)
    block_gradient(d * m1, weights, "conv1", "conv2", x, a1, c1, g)
    return cross_entropy(logits, y), g


def block_gradient(d, weights, first, second, x, a, c, g):
    """Puts the gradients by the block's weights into g and returns that by its input x; a, c as from ``block``."""
    d = max_pool_gradient(relu_gradient(d, max_pool(c)), c)
    d, g[second + ".weight"], g[second + ".bias"] = conv_gradient(d, a, weights[second + ".weight"])
    d, g[first + ".weight"], g[first + ".bias"] = conv_gradient(relu_gradient(d, a), x, weights[first + ".weight"])
    return d


# ---- [train] Training


def train(weights, batches, constants):
    """One step of classical momentum a batch (x, y), without dropout, from zero velocities.

    constants: a dict with LR and MOMENTUM. Returns the weights and the loss before each step.
    """
    velocities = {name: np.zeros_like(weight) for name, weight in weights.items()}
    losses = []
    for x, y in batches:
        loss, g = gradients(weights, x, y)
        weights, velocities = momentum_step(weights, velocities, g, constants["LR"], constants["MOMENTUM"])
        losses.append(loss)
    return weights, losses


# ---- [evaluate] Prediction


def probabilities(weights, x, size=100):
    """What the network says of the images, (n, 10), without dropout; size: images at a time, only a matter of memory."""
    parts = [forward(weights, x[start : start + size])[0] for start in range(0, len(x), size)]
    return softmax(np.concatenate(parts))


# ---- [model] Dropout: in training each value is zeroed with its layer's rate, and what is kept grows by 1 / (1 - rate)

# Shape of one image's values, rate
DROPOUT = [((50, 16, 16), DROPOUT_CONV), ((100, 8, 8), DROPOUT_CONV), ((512,), DROPOUT_FC)]


def dropout_masks(n, rng, dtype=np.float64):
    """Random masks for a batch of n images: 0 or 1 / (1 - rate). rng: numpy.random.RandomState."""
    return tuple(dropout_mask((n,) + shape, rate, rng, dtype) for shape, rate in DROPOUT)


def dropout_losses(weights, x, y, passes, rng):
    """Training losses of the same images under ``passes`` draws of the masks: an array (passes,)."""
    h = block(weights, "conv1", "conv2", x)[2]  # before the first mask: the same for all
    losses = []
    for _ in range(passes):
        m1, m2, m3 = dropout_masks(len(x), rng, x.dtype)
        h2 = (block(weights, "conv3", "conv4", h * m1)[2] * m2).reshape(len(x), -1)
        losses.append(cross_entropy(head(weights, h2, m3)[1], y))
    return np.array(losses)


def weights_for_masks(weights, y):
    """The weights, changed so that a loss depends on the masks of dropout and not on the example, for labels y, (n,).

    The first layer does not look at the images. In the last one, the classes of y are all alike, and the others their opposite.
    """
    signs = np.where(np.isin(np.arange(10), y), 1.0, -1.0)
    last = 2 * signs[:, None] * weights["fc2.weight"][0]
    return dict(
        weights,
        **{"conv1.weight": 0 * weights["conv1.weight"], "fc2.weight": last, "fc2.bias": 0 * weights["fc2.bias"]},
    )


# ---- [weights] Initial weights: Glorot (Xavier) uniform, biases zero


def initial_bound(name):
    """A weight is drawn between minus this and this; 0 of a bias."""
    shape = WEIGHT_SHAPES[name]
    return glorot_bound(shape) if len(shape) > 1 else 0.0


def initial_weights(seed):
    """Weights to start training from, float64."""
    rng = np.random.RandomState(seed)
    return {
        name: rng.uniform(-1, 1, shape) * initial_bound(name) if len(shape) > 1 else np.zeros(shape)
        for name, shape in WEIGHT_SHAPES.items()
    }
