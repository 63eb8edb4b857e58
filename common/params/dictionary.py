"""The inputs of the dictionary's answers, NumPy arrays with plain names, the same in every framework.

float32 and int64, made of a fixed seed. Notebooks import them by name.
"""

import numpy as np

SEED = 0  # of what is random in an answer

_rng = np.random.RandomState(1)


def _normal(*shape):
    return _rng.standard_normal(shape).round(2).astype(np.float32)


x = _normal(4, 3)  # four examples of three features
weight, bias = _normal(2, 3), _normal(2)  # of a dense layer from three features to two, out x in
head = _normal(1, 2)  # the weight of a dense layer behind it, from two features to one
rows = np.array([2, 0, 2])  # of x

images = _normal(2, 3, 5, 6)  # two images, NCHW: 3 channels, 5 rows, 6 columns
kernel = _normal(4, 3, 3, 3)  # of a convolution from 3 channels to 4, OIHW: out x in x height x width
maps = (
    np.random.RandomState(2).standard_normal((2, 4, 3, 3)).round(2).astype(np.float32)
)  # two images of 4 channels, NCHW, for a transposed convolution with ``kernel``: it is IOHW then
ones = np.ones((100, 100), np.float32)  # to see what dropout does

logits = _normal(4, 5)  # of four examples and five classes
labels = np.array([1, 0, 4, 2])  # class index of each example
class_weights = np.array([1, 2, 0.5, 1, 3], np.float32)  # how much an example of each class counts
kept = np.array([True, True, False, True])  # which examples count

scores = _normal(4)  # logits of four examples, each with a yes or a no
hits = np.array([1, 0, 0, 1], np.float32)  # yes is 1

tokens = np.array([[3, 5, 1, 3, 0], [2, 4, 0, 0, 0]])  # two sentences, padded with 0
table = np.concatenate([np.zeros((1, 4), np.float32), _normal(5, 4)])  # the embedding of each of six tokens
words = _normal(2, 5, 4)  # two sentences of five words of four features

gradients = [_normal(3) * 2, _normal(2, 2) * 2]  # of two weights

lengths = np.array([5, 3])  # how many words each of the two sentences has
lstm_input, lstm_hidden = (
    _normal(12, 4),
    _normal(12, 3),
)  # of an LSTM of three units: gates i, f, g, o on axis 0, out x in
gru_input, gru_hidden = _normal(9, 4), _normal(9, 3)  # of a GRU of three units: gates r, z, n on axis 0, out x in
depthwise = _normal(3, 1, 3, 3)  # a kernel of each channel, OIHW
flat_weight = _normal(2, 36)  # of a dense layer behind ``maps``, flattened in the order NCHW: out x in
gain = _normal(3)  # a number of each feature
classes = np.array([1, 0, 0, 1])  # class index of each example of x, where there are two classes

examples = np.arange(10, dtype=np.float32)  # ten examples of one number each
sentences = [[3, 5, 1, 3], [2, 4]]  # tokens, not padded
pictures = np.repeat(images[:1], 100, axis=0)  # the same image a hundred times, NCHW
