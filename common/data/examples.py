"""One batch of examples, for tasks that time a network: noise, or the words of a text of one's own."""

import io
from collections import Counter

import numpy as np

from common.data import loaded
from common.data.errors import DataError


def batch(network, n, seed=0, text=None):
    """(inputs, labels) of n examples of a network, the same everywhere; made once, so that they may stay on the device.

    Inputs are float32 numbers of mean 0 and deviation 1, (n,) + ``network.input_shape``; of a network that begins with an embedding
    int32 numbers of words. Labels are int32 numbers of classes: (n,), or (n, words) where there is one for every word.

    text: a file in UTF-8. Its words take the place of noise for a network that begins with an embedding, and the label of a word is
    the one that follows. Raises DataError where the network reads no words, or the file has too few.
    """
    if text is not None:
        return _words(network, n, text)
    rng, first = np.random.RandomState(seed), network.layers[0]
    shape = (n,) + tuple(network.input_shape)
    if first.kind == "embedding":
        x = rng.randint(first.vocabulary, size=shape).astype(np.int32)
    else:
        x = rng.normal(size=shape).astype(np.float32)
    classes = network.output_shape[-1]
    y = rng.randint(classes, size=(n,) + tuple(network.output_shape[:-1])).astype(np.int32)
    loaded.remember("noise", True, examples=n)
    return x, y


def _words(network, n, text):
    """The text is cut into n parts of the same length, and an example is the beginning of each. A word's number is its rank: 1 is
    the most frequent one. All that the vocabulary cannot hold are number 0."""
    first = network.layers[0]
    if first.kind != "embedding":
        raise DataError(
            "TEXT: this network reads no words: leave TEXT out, or choose one that begins with an embedding"
        )
    try:
        with io.open(text, encoding="utf-8") as file:
            words = file.read().lower().split()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("TEXT: cannot read %s as a text in UTF-8: %s" % (text, error)) from None
    (length,) = network.input_shape
    if len(words) < n * (length + 1):
        raise DataError("TEXT: %s holds %d words; this batch needs %d" % (text, len(words), n * (length + 1)))
    ranked = sorted(Counter(words).items(), key=lambda pair: (-pair[1], pair[0]))
    numbers = {word: rank for rank, (word, _) in enumerate(ranked[: first.vocabulary - 1], 1)}
    part = len(words) // n
    starts = [words[i * part : i * part + length + 1] for i in range(n)]
    taken = np.array([[numbers.get(word, 0) for word in start] for start in starts], np.int32)
    loaded.remember("words", False, examples=n)
    return taken[:, :-1].copy(), taken[:, 1:].copy()
