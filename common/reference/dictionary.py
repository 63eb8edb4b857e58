"""The dictionary's answers in plain NumPy: what every notebook's cells are held against.

``of(flavour).answers()``: by the entry's id an array or a tuple of arrays, in float64; or, where an answer is random, a function that
returns in a few words what is wrong with an answer, None where nothing is. A flavour names, separated by commas, in what a framework
differs: see ``TRAITS``.
"""

from collections import namedtuple
from math import erf

import numpy as np

from common.params import dictionary as given
from common.reference.layers import (
    adam_step,
    cross_entropy,
    cross_entropy_gradient,
    dense,
    dense_gradient,
    relu,
    softmax,
)
from common.reference.network_layers import lstm_states
from common.reference.recurrent import gru

TRAITS = {
    "biased variance": "the running variance of batch norm is that of the batch; else it is scaled by n / (n - 1)",
    "weights over count": "a loss with weights of classes is divided by the number of examples; else by the sum of their weights",
    "epsilon hat": "Adam adds epsilon to the root before its correction for the first steps; else after it",
    "reset before": "a GRU resets its state before it multiplies it by the candidate's weights; else after it",
    "corners aligned": "resized images keep the centres of the pixels in their corners; else the outer edges of these pixels",
}
ADAM = (0.9, 0.999)
THREE_UNITS = namedtuple("Layer", "units")(3)


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
        logits, labels, kept, words = wide(given.logits), given.labels, given.kept, wide(given.words)
        loss, d_x, d_weight, _ = classified(x, weight, bias)
        # The weight of the second of two layers after a step of SGD at rate 0.1 on the mean of their outputs
        top = wide(given.head) - 0.1 * dense(x, weight, 0).mean(axis=0)
        return {
            # Arrays
            "numpy": there_and_back,
            "device": placed,
            "cast": np.trunc(x).astype(np.int32),
            "layout": images.transpose(0, 2, 3, 1),
            "reshape": (images.reshape(2, 90), np.array([2, 90])),
            "gather": (x[given.rows], logits[np.arange(4), labels]),
            "scatter": np.array([0.0, 4, 0, 2, 0]),  # 1, 2 and 3 added at 1, 3 and 1
            "where": np.where(x > 0, x, 0.1 * x),
            "sequence-mask": np.arange(5) < given.lengths[:, None],
            "concatenate": (np.concatenate([x, x], axis=1), np.stack([x, x])),
            "einsum": np.einsum("nif,njf->nij", words, words),
            "one-hot": np.eye(5)[labels],
            "random-seed": drawn,
            # Layers
            "dense": dense(x, weight, bias),
            "initialise": initialised,
            "share": shared_gradient(x, weight),
            "convolution": convolution(images, wide(given.kernel)),
            "grouped-convolution": grouped(images, wide(given.depthwise)),
            "port-flatten": dense(wide(given.maps).reshape(2, -1), wide(given.flat_weight), 0),
            "transposed-convolution": transposed(wide(given.maps), wide(given.kernel)),
            "max-pool": pooled(images),
            "global-pool": images.mean(axis=(2, 3)),
            "resize": self.resized(images, 10, 12),
            "batch-norm": self.running_statistics(images, new=0.1),
            "layer-norm": (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5),
            "embedding": counted(given.tokens, given.table),
            "dropout": dropped,
            "gelu": x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2,
            "softmax": softmax(images),  # over axis 1: the channels
            "attention": attention(words),
            "lstm": lstm_states(THREE_UNITS, words, wide(given.lstm_input), wide(given.lstm_hidden), 0)[0],
            "gru": self.gru_states(words, wide(given.gru_input), wide(given.gru_hidden)),
            "variable-lengths": alone,
            "custom-layer": (x * given.gain, 3),  # and how many numbers are trained
            "named-parameters": named,
            "count-parameters": (3 * 4 + 4) + (4 + 4) + (4 * 2 + 2),
            "intermediate": relu(dense(x, weight, bias)),
            "replace-head": (dense(x, weight, bias), np.array([4, 5])),
            # Modes and gradients
            "train-eval": modes,
            "inference": dense(x, weight, bias),
            "gradient": 3 * x**2,  # of sum(x ** 3)
            "input-gradient": d_x,
            "stop-gradient": x,  # of sum(x * stop(x)): 2 x without the stop
            "clear-accumulate": 4 * x,  # of sum(x ** 2), twice
            "micro-batches": d_weight,
            "clip-norm": clipped([wide(gradient) for gradient in given.gradients], norm=1.0),
            "per-example": np.einsum("no,ni->noi", np.matmul(x, weight.T), x),  # of |W x| ** 2 / 2 by W
            "jacobian": np.eye(3) * x[0].sum() + x[0][:, None],  # of v * sum(v)
            "hvp": 6 * x[0] * x[1],  # of sum(v ** 3) at the first example, times the second
            "custom-gradient": -x,  # of sum(reverse(v) * x)
            "rematerialise": (
                2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
                2,
            ),  # of sum(tanh(v) ** 2), and how often tanh is computed
            "freeze": (weight, top),
            # Losses and optimizers
            "cross-entropy": cross_entropy(logits, labels),
            "label-smoothing": -np.mean(np.sum((0.9 * np.eye(5)[labels] + 0.1 / 5) * np.log(softmax(logits)), axis=1)),
            "class-weights": self.weighted(logits, labels, wide(given.class_weights)),
            "binary-cross-entropy": np.mean(np.log(1 + np.exp(wide(given.scores))) - given.hits * given.scores),
            "masked-loss": cross_entropy(logits[kept], labels[kept]),
            "sgd-momentum": momentum(weight, steps=3, lr=0.1, momentum=0.9),
            "rates-per-group": (weight - 0.01 * np.outer(wide(given.head), x.mean(axis=0)), top),
            # One step of SGD at rate 0.1 on the mean of all outputs
            "decay-not-on-biases": (
                weight - 0.1 * (np.tile(x.mean(axis=0) / 2, (2, 1)) + 0.1 * weight),
                bias - 0.1 / 2,
            ),
            "cosine": 0.05 * (1 + np.cos(np.pi * np.arange(11) / 10)),
            "warm-up": 0.02 * np.minimum(np.arange(11), 10 - np.arange(11)),
            "adam": self.adam(weight, steps=3, lr=0.1, epsilon=0.01, decay=0.0),
            "weight-decay": self.adam(weight, steps=3, lr=0.1, epsilon=1e-8, decay=0.1),
            "averaged-weights": 0.9 * (0.9 * weight + 0.1 * 2 * weight) + 0.1 * 3 * weight,
            # Data and training
            "batches": shuffled,
            "pad-sequences": np.array([[3, 5, 1, 3], [2, 4, 0, 0]]),
            "flip": flipped,
            "training-step": (loss, weight - 0.1 * d_weight),
            "callback": np.array([1, 2, 3]),
            "accuracy": np.mean(logits.argmax(axis=1) == labels),
            "early-stopping": 3,  # epochs of ten, where no loss is better than the first and two may pass
            "repeatable": repeated,
            "mixed-precision": rounded,
            "nan": told_nan,
            # Saving and compiling
            "save-load": dense(x, weight, bias),
            "resume": weight - 0.1 * weight - 0.1 * (0.9 * weight + weight),  # both gradients are the first weight
            "export": dense(x, weight, bias),
            "compile": traced,
            "loop": halved(words),
            "debug-value": ((x**2).sum(), x**2),
            "time": timed,
        }

    def running_statistics(self, x, new):
        """Mean and variance of each channel of NCHW images after one batch, from 0 and 1; new: the share of the batch."""
        unbiased = 0 if "biased variance" in self.traits else 1
        mean, variance = x.mean(axis=(0, 2, 3)), x.transpose(1, 0, 2, 3).reshape(3, -1).var(axis=1, ddof=unbiased)
        return new * mean, (1 - new) + new * variance

    def gru_states(self, words, weight_ih, weight_hh):
        """(n, words, units): the state after every word, from zero, without biases."""
        states, _ = gru(words, weight_ih, weight_hh, 0, np.zeros(9), "reset before" not in self.traits)
        return states[1:].transpose(1, 0, 2)

    def resized(self, x, height, width):
        """Bilinear: each new pixel is a mean of the four around its place; NCHW."""
        aligned = "corners aligned" in self.traits
        return np.einsum(
            "yh,nchw,xw->ncyx", between(x.shape[2], height, aligned), x, between(x.shape[3], width, aligned)
        )

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


def grouped(x, kernel):
    """Each channel by its own kernel of 3 x 3, stride 2, one pixel of zeros around: NCHW; kernel: channels x 1 x 3 x 3."""
    channels = [convolution(x[:, [c]], kernel[[c]]) for c in range(3)]
    return np.concatenate(channels, axis=1)[:, :, ::2, ::2]


def between(size, new, aligned):
    """(new, size): the share of each pixel of a line in each pixel of the new one."""
    place = np.arange(new) * (size - 1) / (new - 1.0) if aligned else (np.arange(new) + 0.5) * size / new - 0.5
    place = np.clip(place, 0, size - 1)
    return np.maximum(0, 1 - np.abs(place[:, None] - np.arange(size)))


def classified(x, weight, bias):
    """The mean cross-entropy of a dense layer's outputs, and its gradients by x, weight and bias."""
    y = dense(x, weight, bias)
    d = cross_entropy_gradient(y, given.classes)
    return (cross_entropy(y, given.classes),) + tuple(dense_gradient(d, x, weight))


def halved(words):
    """The state after each word: h = h / 2 + word, from zero."""
    h, states = np.zeros_like(words[:, 0]), []
    for t in range(words.shape[1]):
        h = h / 2 + words[:, t]
        states.append(h)
    return np.stack(states, axis=1)


# ---- Properties of answers


def placed(answer):
    doubled, device = answer
    if np.abs(doubled - 2 * given.x).max() > 1e-6:
        return "is not 2 x"
    if not any(word in str(device).lower() for word in ("cpu", "gpu", "cuda", "numpy")):
        return "names no device"


def alone(answer):
    """The last state of each sentence, from a padded batch, and from each sentence alone."""
    together, each = answer
    if together.shape != (2, 3) or each.shape != (2, 3):
        return "has the shapes %s and %s" % (together.shape, each.shape)
    if np.abs(together - each).max() > 1e-5:
        return "is another state than that of the sentence alone"
    if np.abs(together).max() < 1e-3 or np.abs(together[0] - together[1]).max() < 1e-3:
        return "does not depend on the sentence"


def named(answer):
    """The names of two dense layers' parameters, from 3 features to 4 and from 4 to 2, and how many numbers each has."""
    names, sizes = answer
    if sorted(np.ravel(sizes).tolist()) != [2, 4, 8, 12]:
        return "has the sizes %s" % np.ravel(sizes).tolist()
    if names.dtype.kind not in "US" or len(set(names.tolist())) != 4:
        return "has not four different names"


def shuffled(answer):
    """Ten examples in batches of four, the last of two."""
    if [len(batch) for batch in answer] != [4, 4, 2]:
        return "has batches of %s" % [len(batch) for batch in answer]
    order = np.concatenate([np.ravel(batch) for batch in answer])
    if sorted(order.tolist()) != given.examples.tolist():
        return "has not each example once"
    if (order == given.examples).all():
        return "is in the old order"


def flipped(answer):
    if answer.shape != given.pictures.shape:
        return "has the shape %s" % (answer.shape,)
    same, mirrored = [
        np.abs(answer - other).max(axis=(1, 2, 3)) < 1e-5 for other in (given.pictures, given.pictures[..., ::-1])
    ]
    if not (same | mirrored).all():
        return "has images that are neither as they were nor mirrored"
    if not 0.3 < mirrored.mean() < 0.7:
        return "mirrors %.0f %% of the images" % (100 * mirrored.mean())


def repeated(answer):
    first, again = answer
    if first.size < 6 or first.shape != again.shape or not first.std() > 0:
        return "are no weights"
    if not np.array_equal(first, again):
        return "is not the same twice"


def rounded(answer):
    """The outputs of a dense layer that computes in 16 bits, and the type of its weight."""
    y, kept = answer
    difference = np.abs(y - dense(wide(given.x), wide(given.weight), wide(given.bias))).max()
    if not difference < 0.05:
        return "differs by %.2g" % difference
    if difference < 1e-5:
        return "is not computed in 16 bits"
    if "float32" not in str(kept).lower():
        return "keeps its weight as %s" % kept


def told_nan(answer):
    """What is said of the logarithm of negative numbers."""
    if not any(word in str(answer).lower() for word in ("nan", "log")):
        return "says %.60r" % str(answer)


def timed(answer):
    """Seconds of a matrix product, and its sum."""
    seconds, total = answer
    if not 0 < seconds < 10:
        return "takes %s seconds" % seconds
    if abs(total - 1e6) > 1:
        return "is not the sum of the product of two matrices of ones"


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
