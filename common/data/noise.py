"""Batches of noise, for tasks that time a network and want nothing of the data but its shape."""

import numpy as np

from common.data import loaded


def batch(network, n, seed=0):
    """(inputs, labels) of n examples of a network, the same everywhere; made once, so that they may stay on the device.

    Inputs are float32 numbers of mean 0 and deviation 1, (n,) + ``network.input_shape``; of a network that begins with an embedding
    int32 numbers of words. Labels are int32 numbers of classes: (n,), or (n, words) where there is one for every word.
    """
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
