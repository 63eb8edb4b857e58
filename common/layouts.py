"""Canonical weights of a network that is a list of layers, in the layouts of frameworks; what they share with other tasks: ``weights.py``."""

import numpy as np

from common import weights


def to_channels_last(network, canonical):
    """As ``weights.to_channels_last``, but tables of embeddings stay as they are. network: what ``common.params.networks.network`` returns."""
    turned = weights.to_channels_last(canonical, network.FLATTENED)
    return {name: canonical[name] if name in network.TABLES else array for name, array in turned.items()}


def from_channels_last(network, arrays):
    """The way back: a dict of canonical weights from arrays in their order."""
    arrays = list(arrays)
    turned = weights.from_channels_last(arrays, network.WEIGHT_SHAPES, network.FLATTENED)
    given = dict(zip(network.WEIGHT_SHAPES, arrays))
    return {name: np.asarray(given[name]) if name in network.TABLES else array for name, array in turned.items()}


def reorder_gates(array, given, wanted, axis=0):
    """The gates of a recurrent layer in another order: equal parts of an axis, a letter each, as in ``reorder_gates(w, "ifgo", "igfo")``."""
    parts = dict(zip(given, np.split(array, len(given), axis)))
    return np.concatenate([parts[gate] for gate in wanted], axis)
