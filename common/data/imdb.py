"""IMDB movie reviews as numbers of words, in the form that Keras distributes.

Source: Andrew Maas et al., Learning Word Vectors for Sentiment Analysis (ACL 2011), https://ai.stanford.edu/~amaas/data/sentiment/:
25,000 reviews to train and 25,000 to test, half of each positive. In Keras' file ``imdb.npz`` a word is its rank by frequency.
"""

import os
import zipfile

import numpy as np

from common.data import download, loaded
from common.data.pickled import read_lists

# Keras 3 states this SHA-256 for the first address. Keras 2 downloads from the second one, states the MD5
# 599dadb1135973df5b59232a0e9a887c and shows the same size. The second address has not been tried from here
ARCHIVE = download.Archive(
    urls=(
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/imdb.npz",
        "https://s3.amazonaws.com/text-datasets/imdb.npz",
    ),
    size=17464789,
    sha256="69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f",
    folder="",
    members=("imdb.npz",),
)
REVIEWS = 25000  # of each set
WORDS = 30000  # numbers are smaller
LENGTH = 150  # words of a review that are kept
PADDING, START, UNKNOWN, OFFSET = 0, 1, 2, 3  # a rank becomes itself + OFFSET
# Keras shuffles both sets with this seed, one after the other: its file has the reviews in another order
SHUFFLED_WITH = 113


def load(n_train=None, n_test=None, data_dir=None, synthetic=None):
    """Read the reviews: (x_train, y_train, x_test, y_test).

    x: int32 numbers of words below 30,000, shape (n, 150), C-contiguous. A review begins with 1; its last 150 numbers are kept; a
    shorter one is filled up with 0 at the end. A word of rank r is r + 3, and 2 where that is 30,000 or more.
    y: int64, shape (n,): 0 for a negative review, 1 for a positive one.
    n_train, n_test: how many reviews, from the start of each set as Keras shuffles it; None for all 25,000.
    data_dir: the folder of ``imdb.npz``; None looks in ROSETTA_DATA, then in the user's cache, then downloads.
    synthetic: a deterministic, learnable stand-in instead of the real reviews; nothing is read or downloaded. None: as
    ROSETTA_DATA says, which may be the word "synthetic" in place of a folder.
    Raises DataError for data that is missing or damaged, ValueError for a wrong argument.
    """
    n_train = loaded.count(n_train, "n_train", REVIEWS)
    n_test = loaded.count(n_test, "n_test", REVIEWS)
    if synthetic is None:
        synthetic = loaded.is_synthetic() and data_dir is None
    if synthetic:
        parts = _synthetic(n_train, seed=1) + _synthetic(n_test, seed=2)
    else:
        path = os.path.join(locate(data_dir), ARCHIVE.members[0])
        rng = np.random.RandomState(SHUFFLED_WITH)
        parts = _read(path, "train", n_train, rng) + _read(path, "test", n_test, rng)
    loaded.remember("IMDB", bool(synthetic), train=n_train, test=n_test)
    return parts


def locate(data_dir=None, fetch=True):
    """The folder of ``imdb.npz``: the first of data_dir, ROSETTA_DATA and the user's cache that is given.

    Downloads into the cache when neither data_dir nor ROSETTA_DATA is set; with fetch=False that raises Unreachable.
    Raises DataError for a file that is no archive of arrays, too.
    """
    folder = download.locate(ARCHIVE, data_dir, fetch)
    path = os.path.join(folder, ARCHIVE.members[0])
    if not zipfile.is_zipfile(path):
        raise _damaged(path, "is no .npz archive")
    return folder


def _read(path, part, n, rng):
    """The first n reviews of a part, and their labels, in Keras' order."""
    reviews, labels = read_lists(path, "x_" + part), _labels(path, "y_" + part)
    if not len(reviews) == len(labels) == REVIEWS:
        raise _damaged(path, "has %d reviews and %d labels of %s" % (len(reviews), len(labels), part))
    order = np.arange(REVIEWS)
    rng.shuffle(order)
    chosen = order[:n]
    return cut([reviews[i] for i in chosen], path), labels[chosen]


def _labels(path, name):
    """An array of 0 and 1 in the file. Raises DataError where it is anything else."""
    try:
        with np.load(path, allow_pickle=False) as file:
            labels = file[name]
    except (IOError, OSError, KeyError, ValueError) as error:
        raise _damaged(path, "has no array %s (%s)" % (name, error)) from None
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not np.isin(labels, (0, 1)).all():
        raise _damaged(path, "holds labels in %s that are not 0 or 1" % name)
    return labels.astype(np.int64)


def cut(reviews, path):
    """Lists of ranks -> numbers of words (n, 150) as ``load`` returns them. Raises DataError, which names the path, for a rank below 1."""
    if min(min(ranks, default=1) for ranks in reviews) < 1:
        raise _damaged(path, "holds a rank below 1")
    x = np.full((len(reviews), LENGTH), PADDING, np.int64)
    for row, ranks in zip(x, reviews):
        words = ranks[-LENGTH:] if len(ranks) >= LENGTH else [START - OFFSET] + ranks
        row[: len(words)] = words
        row[: len(words)] += OFFSET
    return np.where(x < WORDS, x, UNKNOWN).astype(np.int32)


def _damaged(path, reason):
    return download.damaged(ARCHIVE, path, reason)


def _synthetic(n, seed):
    """n reviews of 100 to 299 words. Words are as frequent as in a language, and each class prefers 50 of them.

    One review in ten is of the other class than its label says, so no network classifies more than about 90 % of them correctly.
    """
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.arange(n) % 2).astype(np.int64)
    mislabelled = rng.random_sample(n) < 0.1
    preferred = np.random.RandomState(0).permutation(np.arange(50, 150)).reshape(2, 50)  # the same for every seed
    reviews = []
    for label in np.where(mislabelled, 1 - y, y):
        length = rng.randint(100, 300)
        ranks = np.minimum(rng.zipf(1.2, length), 80000)
        opinion = rng.random_sample(length) < 0.3
        ranks[opinion] = rng.choice(preferred[label], opinion.sum())
        reviews.append(ranks.tolist())
    return cut(reviews, "synthetic data"), y
