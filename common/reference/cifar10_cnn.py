"""The network of the task ``cifar10_cnn`` in plain NumPy: the definition that every notebook is held against.

Read it from top to bottom: the layers, each with its derivative; the network; the loss; one step of training;
dropout; the initial weights. Images are (n, 3, 32, 32), that is NCHW, with pixels in [0, 1]; labels are (n,) class
numbers from 0 to 9; weights are a dict of arrays with the names and shapes of ``WEIGHT_SHAPES``. Everything is
computed in the precision of the weights: float64 to compare with, float32 where speed matters more. A line ``# ---- [role]``
begins what stands for that step of the notebooks.
"""

import numpy as np

from common.params.cifar10_cnn import WEIGHT_SHAPES

# ---- [model] Layers. Each derivative takes the gradient of the loss by the layer's output and returns that by its inputs.

TAPS = [(row, column) for row in range(3) for column in range(3)]  # the positions of a 3x3 kernel


def conv(x, weight, bias):
    """3x3 convolution, stride 1, zero padding of 1 ("same"): (n, in, h, w) -> (n, out, h, w); weight (out, in, 3, 3).

    As everywhere in deep learning it is a correlation: the kernel is not mirrored.
    """
    n, _, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="constant")
    y = np.zeros((n, len(bias), h * w), x.dtype)
    for i, j in TAPS:
        y += np.matmul(weight[:, :, i, j], padded[:, :, i : i + h, j : j + w].reshape(n, -1, h * w))
    return y.reshape(n, -1, h, w) + bias[:, None, None]


def conv_gradient(dy, x, weight):
    """Gradients by x, weight and bias."""
    n, _, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="constant")
    d_padded, d_weight = np.zeros_like(padded), np.empty_like(weight)
    for i, j in TAPS:
        window = (slice(None), slice(None), slice(i, i + h), slice(j, j + w))
        d_weight[:, :, i, j] = np.tensordot(dy, padded[window], axes=((0, 2, 3), (0, 2, 3)))
        d_padded[window] += np.matmul(weight[:, :, i, j].T, dy.reshape(n, -1, h * w)).reshape(n, -1, h, w)
    return d_padded[:, :, 1:-1, 1:-1], d_weight, dy.sum(axis=(0, 2, 3))


def max_pool(x):
    """The largest of each 2x2 window, stride 2: (n, c, h, w) -> (n, c, h / 2, w / 2)."""
    return _windows(x).max(axis=-1)


def max_pool_gradient(dy, x):
    """The gradient goes to the largest of each window; where several are equal, to the first in reading order."""
    windows = _windows(x)
    winner = windows.argmax(axis=-1)
    d_windows = np.where(np.arange(4) == winner[..., None], dy[..., None], np.zeros((), dy.dtype))
    n, c, h, w = dy.shape
    return d_windows.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(x.shape)


def _windows(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)


def dense(x, weight, bias):
    """(n, in) -> (n, out); weight (out, in)."""
    return np.matmul(x, weight.T) + bias


def dense_gradient(dy, x, weight):
    """Gradients by x, weight and bias."""
    return np.matmul(dy, weight), np.matmul(dy.T, x), dy.sum(axis=0)


def relu(x):
    return np.maximum(x, 0)


def relu_gradient(dy, y):
    """y is ReLU's output; where that is 0 nothing passes."""
    return dy * (y > 0)


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


def softmax(logits):
    """Logits -> probabilities, both (n, 10)."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# ---- [optimizer] The loss, its gradient by every weight, and a step against it


def cross_entropy(logits, y):
    """Softmax cross-entropy, the mean over the batch."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(y)), y])


def gradients(weights, x, y, masks=None):
    """The loss of a batch and its gradient by every weight, a dict like ``weights``."""
    logits, (x, a1, c1, h1, a2, c2, h2, h3) = forward(weights, x, masks)
    m1, m2, m3 = masks or (1, 1, 1)
    d = softmax(logits)
    d[np.arange(len(y)), y] -= 1
    d /= len(y)  # the loss is a mean
    g = {}
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


def momentum_step(weights, velocities, g, lr, momentum):
    """Classical momentum: v = momentum v + g; w = w - lr v. Returns new weights and velocities."""
    velocities = {name: momentum * velocities[name] + g[name] for name in weights}
    return {name: weights[name] - lr * velocities[name] for name in weights}, velocities


# ---- [train] Training


def train(weights, batches, lr, momentum):
    """One step a batch (x, y), without dropout, from zero velocities. Returns the weights and the loss before each step."""
    velocities = {name: np.zeros_like(weight) for name, weight in weights.items()}
    losses = []
    for x, y in batches:
        loss, g = gradients(weights, x, y)
        weights, velocities = momentum_step(weights, velocities, g, lr, momentum)
        losses.append(loss)
    return weights, losses


# ---- [evaluate] Prediction


def probabilities(weights, x, size=100):
    """What the network says of the images, (n, 10), without dropout; size: images at a time, only a matter of memory."""
    parts = [forward(weights, x[start : start + size])[0] for start in range(0, len(x), size)]
    return softmax(np.concatenate(parts))


# ---- [model] Dropout: in training each value is zeroed with its layer's rate, and what is kept grows by 1 / (1 - rate)

DROPOUT = [((50, 16, 16), 0.25), ((100, 8, 8), 0.25), ((512,), 0.5)]  # shape of one image's values, rate


def dropout_masks(n, rng, dtype=np.float64):
    """Random masks for a batch of n images: 0 or 1 / (1 - rate). rng: numpy.random.RandomState."""
    return tuple(((rng.random_sample((n,) + shape) >= rate) / (1 - rate)).astype(dtype) for shape, rate in DROPOUT)


def dropout_losses(weights, x, y, passes, rng):
    """Training losses of the same images under ``passes`` draws of the masks: an array (passes,)."""
    h = block(weights, "conv1", "conv2", x)[2]  # before the first mask: the same for all
    losses = []
    for _ in range(passes):
        m1, m2, m3 = dropout_masks(len(x), rng, x.dtype)
        h2 = (block(weights, "conv3", "conv4", h * m1)[2] * m2).reshape(len(x), -1)
        losses.append(cross_entropy(head(weights, h2, m3)[1], y))
    return np.array(losses)


# ---- [weights] Initial weights: Glorot (Xavier) uniform, biases zero


def glorot_bound(shape):
    """sqrt(6 / (fan in + fan out)); the fans of a convolution count its 3x3 positions too."""
    positions = int(np.prod(shape[2:]))
    return np.sqrt(6.0 / ((shape[0] + shape[1]) * positions))


def initial_weights(seed):
    """Weights to start training from, float64."""
    rng = np.random.RandomState(seed)
    return {
        name: np.zeros(shape) if len(shape) == 1 else rng.uniform(-1, 1, shape) * glorot_bound(shape)
        for name, shape in WEIGHT_SHAPES.items()
    }
