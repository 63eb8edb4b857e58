"""The dictionary's answers in plain NumPy: what every notebook's cells are held against.

``of(flavour).answers()``: by the entry's id an array or a tuple of arrays, in float64; or, where an answer is random, a function that
returns in a few words what is wrong with an answer, None where nothing is. A flavour names, separated by commas, in what a framework
differs: see ``TRAITS``.
"""

from math import erf

import numpy as np

from common.params import dictionary as given
from common.reference.layers import adam_step, cross_entropy, dense, softmax

TRAITS = {
    "biased variance": "the running variance of batch norm is that of the batch; else it is scaled by n / (n - 1)",
    "weights over count": "a loss with weights of classes is divided by the number of examples; else by the sum of their weights",
    "epsilon hat": "Adam adds epsilon to the root before its correction for the first steps; else after it",
}
ADAM = (0.9, 0.999)


def of(flavour):
    """The answers of frameworks with these traits."""
    traits = flavour.split(", ") if flavour else []
    unknown = [trait for trait in traits if trait not in TRAITS]
    if unknown:
        raise ValueError("unknown trait %s; there are: %s" % (unknown[0], ", ".join(TRAITS)))
    return Answers(traits)


class Answers(object):
    def __init__(self, traits):
        self.traits = traits

    # ---- [answers] One line an entry

    def answers(self):
        x, weight, bias, images = map(wide, (given.x, given.weight, given.bias, given.images))
        logits, labels, kept = wide(given.logits), given.labels, given.kept
        # The weight of the second of two layers after a step of SGD at rate 0.1 on the mean of their outputs
        top = wide(given.head) - 0.1 * dense(x, weight, 0).mean(axis=0)
        return {
            # Arrays
            "numpy": there_and_back,
            "cast": np.trunc(x).astype(np.int32),
            "layout": images.transpose(0, 2, 3, 1),
            "gather": (x[given.rows], logits[np.arange(4), labels]),
            "scatter": np.array([0.0, 4, 0, 2, 0]),  # 1, 2 and 3 added at 1, 3 and 1
            "where": np.where(x > 0, x, 0.1 * x),
            "concatenate": (np.concatenate([x, x], axis=1), np.stack([x, x])),
            "einsum": np.einsum("nif,njf->nij", wide(given.words), wide(given.words)),
            "one-hot": np.eye(5)[labels],
            "random-seed": drawn,
            # Layers
            "dense": dense(x, weight, bias),
            "initialise": initialised,
            "share": shared_gradient(x, weight),
            "convolution": convolution(images, wide(given.kernel)),
            "transposed-convolution": transposed(wide(given.maps), wide(given.kernel)),
            "max-pool": pooled(images),
            "global-pool": images.mean(axis=(2, 3)),
            "batch-norm": self.running_statistics(images, new=0.1),
            "layer-norm": (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5),
            "embedding": counted(given.tokens, given.table),
            "dropout": dropped,
            "gelu": x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2,
            "softmax": softmax(images),  # over axis 1: the channels
            "attention": attention(wide(given.words)),
            "count-parameters": (3 * 4 + 4) + (4 + 4) + (4 * 2 + 2),
            # Modes and gradients
            "train-eval": modes,
            "inference": dense(x, weight, bias),
            "gradient": 3 * x**2,  # of sum(x ** 3)
            "stop-gradient": x,  # of sum(x * stop(x)): 2 x without the stop
            "clear-accumulate": 4 * x,  # of sum(x ** 2), twice
            "clip-norm": clipped([wide(gradient) for gradient in given.gradients], norm=1.0),
            "per-example": np.einsum("no,ni->noi", np.matmul(x, weight.T), x),  # of |W x| ** 2 / 2 by W
            "jacobian": np.eye(3) * x[0].sum() + x[0][:, None],  # of v * sum(v)
            "hvp": 6 * x[0] * x[1],  # of sum(v ** 3) at the first example, times the second
            "custom-gradient": -x,  # of sum(reverse(v) * x)
            "freeze": (weight, top),
            # Losses and optimizers
            "cross-entropy": cross_entropy(logits, labels),
            "label-smoothing": -np.mean(np.sum((0.9 * np.eye(5)[labels] + 0.1 / 5) * np.log(softmax(logits)), axis=1)),
            "class-weights": self.weighted(logits, labels, wide(given.class_weights)),
            "binary-cross-entropy": np.mean(np.log(1 + np.exp(wide(given.scores))) - given.hits * given.scores),
            "masked-loss": cross_entropy(logits[kept], labels[kept]),
            "sgd-momentum": momentum(weight, steps=3, lr=0.1, momentum=0.9),
            "rates-per-group": (weight - 0.01 * np.outer(wide(given.head), x.mean(axis=0)), top),
            "cosine": 0.05 * (1 + np.cos(np.pi * np.arange(11) / 10)),
            "adam": self.adam(weight, steps=3, lr=0.1, epsilon=0.01, decay=0.0),
            "weight-decay": self.adam(weight, steps=3, lr=0.1, epsilon=1e-8, decay=0.1),
            # Saving
            "save-load": dense(x, weight, bias),
            "compile": traced,
        }

    def running_statistics(self, x, new):
        """Mean and variance of each channel of NCHW images after one batch, from 0 and 1; new: the share of the batch."""
        unbiased = 0 if "biased variance" in self.traits else 1
        mean, variance = x.mean(axis=(0, 2, 3)), x.transpose(1, 0, 2, 3).reshape(3, -1).var(axis=1, ddof=unbiased)
        return new * mean, (1 - new) + new * variance

    def weighted(self, logits, labels, weights):
        """Cross-entropy in which an example counts as much as the weight of its class."""
        each = weights[labels] * -np.log(softmax(logits)[np.arange(len(labels)), labels])
        return each.mean() if "weights over count" in self.traits else each.sum() / weights[labels].sum()

    def adam(self, w, steps, lr, epsilon, decay):
        """Weights after so many steps on the loss sum(w ** 2) / 2, whose gradient is w.

        decay: of the weights, times the rate, apart from the gradient: AdamW.
        """
        w, means, squares = {"w": w}, {"w": np.zeros_like(w)}, {"w": np.zeros_like(w)}
        for t in range(1, steps + 1):
            shrunk = {"w": w["w"] * (1 - lr * decay)}
            w, means, squares = adam_step(
                shrunk, means, squares, w, lr, t, ADAM, epsilon, "epsilon hat" in self.traits, {}
            )
        return w["w"]


def wide(array):
    """float64, in which everything is computed."""
    return array.astype(np.float64)


def clipped(gradients, norm):
    """All scaled by the same factor, so that their norm together is at most this."""
    length = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    return tuple(gradient * min(1, norm / length) for gradient in gradients)


def convolution(x, kernel):
    """Cross-correlation, stride 1, one pixel of zeros around: NCHW and OIHW -> NCHW."""
    _, _, height, width = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant")
    shifted = [
        np.tensordot(padded[:, :, i : i + height, j : j + width], kernel[:, :, i, j], axes=(1, 1))
        for i in range(3)
        for j in range(3)
    ]
    return sum(shifted).transpose(0, 3, 1, 2)


def shared_gradient(x, weight):
    """That of sum(x W^T W) by W: the sum over both places where W stands."""
    both = np.outer(np.ones(3), x.sum(axis=0))
    return np.matmul(weight, both + both.T)


def transposed(maps, kernel):
    """Each pixel lays the kernel, times its value, on the image, at a stride of 2; the border of one pixel is cut off.

    NCHW and IOHW (in x out x height x width) -> NCHW.
    """
    laid = np.zeros((2, 3, 7, 7))
    for i in range(3):
        for j in range(3):
            laid[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += np.tensordot(maps[:, :, i, j], kernel, axes=1)
    return laid[:, :, 1:-1, 1:-1]


def pooled(x):
    """The largest of 3 x 3, stride 2, one pixel of minus infinity around: NCHW -> NCHW."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant", constant_values=-np.inf)
    places = [(i, j) for i in range(0, 5, 2) for j in range(0, 6, 2)]
    largest = [padded[:, :, i : i + 3, j : j + 3].max(axis=(2, 3)) for i, j in places]
    return np.stack(largest, axis=-1).reshape(2, 3, 3, 3)


def counted(tokens, table):
    """The gradient of the sum of all embedded tokens by their table: how often each occurs; 0 of the padding, token 0."""
    occurs = np.bincount(tokens.ravel(), minlength=len(table)) * (np.arange(len(table)) > 0)
    return np.repeat(occurs[:, None], table.shape[1], axis=1).astype(np.float64)


def attention(words):
    """Each word looks at itself and at those before it, by their dot product over the root of the features."""
    n, features = words.shape[1:]
    scores = np.matmul(words, words.transpose(0, 2, 1)) / np.sqrt(features)
    scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    return np.matmul(softmax(scores.reshape(-1, n)).reshape(scores.shape), words)


def momentum(w, steps, lr, momentum):
    """Weights after so many steps on the loss sum(w ** 2) / 2, whose gradient is w."""
    velocity = np.zeros_like(w)
    for _ in range(steps):
        velocity = momentum * velocity + w
        w = w - lr * velocity
    return w


# ---- Properties of answers


def there_and_back(answer):
    doubled, shared = answer
    if np.abs(doubled - 2 * given.x).max() > 1e-6:
        return "is not 2 x"
    if shared.dtype != bool or shared.shape != ():
        return "does not say whether the memory is shared"


def initialised(answer):
    """A dense layer from 300 features to 200, its weight in either layout, and its bias."""
    weight, bias = answer
    bound = np.sqrt(6 / 500)
    if sorted(weight.shape) != [200, 300] or bias.shape != (200,):
        return "has the shapes %s and %s" % (weight.shape, bias.shape)
    if np.abs(weight).max() > bound * (1 + 1e-6) or abs(weight.var() / (bound**2 / 3) - 1) > 0.03:
        return "is not uniform within sqrt(6 / 500)"
    if bias.any():
        return "has a bias that is not zero"


def traced(answer):
    """The value of sum(x ** 2), and how often the function was traced."""
    value, times = answer
    if abs(value - (wide(given.x) ** 2).sum()) > 1e-4:
        return "is not the sum of squares"
    if times != 2:
        return "was traced %d times" % times


def modes(answer):
    training, evaluation = answer
    if not np.array_equal(evaluation, given.ones):
        return "changes its input in evaluation"
    return dropped(training, rate=0.5)


def dropped(answer, rate=0.2):
    """Ones, of which a share is 0 and the others are scaled up: the mean stays 1."""
    zero = (answer == 0).mean()
    if answer.shape != given.ones.shape or abs(zero - rate) > 0.03:
        return "has %.0f %% zeros instead of %.0f %%" % (100 * zero, 100 * rate)
    if np.abs(answer[answer != 0] - 1 / (1 - rate)).max() > 1e-5:
        return "scales what it keeps to %.3g instead of %.3g" % (answer.max(), 1 / (1 - rate))


def drawn(answer):
    first, again, other = answer
    if not np.array_equal(first, again):
        return "is not the same from the same seed"
    if np.array_equal(first, other):
        return "is the same from another seed"
    if first.shape != (1000,) or abs(first.mean()) > 0.2 or abs(first.std() - 1) > 0.2:
        return "is no 1,000 numbers of a standard normal distribution"
