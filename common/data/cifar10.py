"""CIFAR-10, the binary version, as NumPy arrays. No pickle is ever read.

Source: Alex Krizhevsky, https://www.cs.toronto.edu/~kriz/cifar.html: 60,000 colour images of 32x32 pixels in 10 classes,
six files of 10,000 records of 1 label byte and 3,072 pixel bytes (red, green, blue planes, each row by row).
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from common.data import download, loaded
from common.data.errors import DataError

# The publisher states the MD5 c32a1d4ab5d03f1284b67883e8d87530. MindSpore's tutorials download from the second address; they show
# the same size and folder, and state no checksum. The second address has not been tried from here
ARCHIVE = download.Archive(
    urls=(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-10-binary.tar.gz",
    ),
    size=170052171,
    sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    folder="cifar-10-batches-bin",
    members=tuple("data_batch_%d.bin" % i for i in range(1, 6)) + ("test_batch.bin",),
)
TRAIN_FILES, TEST_FILES = ARCHIVE.members[:5], ARCHIVE.members[5:]
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
RECORDS, PIXELS = 10000, 3 * 32 * 32  # a file, an image
LAYOUTS = ("NCHW", "NHWC")


def load(layout="NCHW", n_train=None, n_test=None, one_hot=False, data_dir=None, synthetic=None):
    """Read CIFAR-10: (x_train, y_train, x_test, y_test).

    x: float32 in [0, 1] (pixel / 255), shape (n, 3, 32, 32) for "NCHW", (n, 32, 32, 3) for "NHWC"; C-contiguous.
    y: int64 class numbers 0-9, shape (n,); with one_hot float32 of shape (n, 10).
    n_train, n_test: how many images, from the start of each set; None for all 50,000 and 10,000.
    data_dir: the extracted folder or the one that holds it; None looks in ROSETTA_DATA, then in the user's cache, then downloads.
    synthetic: a deterministic, learnable stand-in instead of the real images; nothing is read or downloaded. None: as
    ROSETTA_DATA says, which may be the word "synthetic" in place of a folder.
    Raises DataError for data that is missing or damaged, ValueError for a wrong argument.
    """
    if layout not in LAYOUTS:
        raise ValueError("layout must be NCHW or NHWC, not %r" % (layout,))
    n_train = loaded.count(n_train, "n_train", 5 * RECORDS)
    n_test = loaded.count(n_test, "n_test", RECORDS)
    if synthetic is None:
        synthetic = loaded.is_synthetic() and data_dir is None
    if synthetic:
        parts = _synthetic(n_train, seed=1) + _synthetic(n_test, seed=2)
        x_train, y_train, x_test, y_test = (_layout(a, layout) if a.ndim == 4 else a for a in parts)
    else:
        folder = locate(data_dir)
        x_train, y_train = _read(folder, TRAIN_FILES, n_train, layout)
        x_test, y_test = _read(folder, TEST_FILES, n_test, layout)
    if one_hot:
        y_train, y_test = (np.eye(len(CLASSES), dtype=np.float32)[y] for y in (y_train, y_test))
    loaded.remember("CIFAR-10", bool(synthetic), train=n_train, test=n_test)
    return x_train, y_train, x_test, y_test


def locate(data_dir=None, fetch=True):
    """The folder of the extracted files: the first of data_dir, ROSETTA_DATA and the user's cache that is given.

    Downloads into the cache when neither data_dir nor ROSETTA_DATA is set; with fetch=False that raises Unreachable.
    Raises DataError for a file of another size, too.
    """
    folder = download.locate(ARCHIVE, data_dir, fetch)
    for path in (os.path.join(folder, name) for name in ARCHIVE.members):
        size, expected = os.path.getsize(path), RECORDS * (1 + PIXELS)
        if size != expected:
            raise download.damaged(ARCHIVE, path, "has %d bytes instead of %d" % (size, expected))
    return folder


def _read(folder, names, n, layout):
    """The first n records of the files, each file read and converted by a thread of its own (NumPy frees the GIL)."""
    shape = (n, 3, 32, 32) if layout == "NCHW" else (n, 32, 32, 3)
    x, y = np.empty(shape, np.float32), np.empty(n, np.int64)
    jobs = [
        (os.path.join(folder, name), slice(start, min(start + RECORDS, n)))
        for name, start in zip(names, range(0, n, RECORDS))
    ]
    with ThreadPoolExecutor(max_workers=min(len(jobs), os.cpu_count() or 1)) as pool:
        for done in [pool.submit(_read_file, path, x[part], y[part], layout) for path, part in jobs]:
            done.result()
    return x, y


def _read_file(path, x, y, layout):
    try:
        records = np.fromfile(path, np.uint8, len(y) * (1 + PIXELS)).reshape(len(y), 1 + PIXELS)
    except (IOError, OSError) as error:
        raise DataError("cannot read %s: %s" % (path, error.strerror or error)) from None
    y[:] = records[:, 0]
    if y.max() >= len(CLASSES):
        raise download.damaged(ARCHIVE, path, "holds the label %d, but CIFAR-10 has 0 to 9" % y.max())
    _scale(records[:, 1:].reshape(-1, 3, 32, 32), x, layout)


def _scale(pixels, x, layout):
    """Bytes NCHW -> float32 in [0, 1] in the asked layout; a block at a time stays in the processor's cache."""
    planes = x if layout == "NCHW" else x.transpose(0, 3, 1, 2)  # a view of x, so writing it writes NHWC
    for start in range(0, len(x), 100):
        block = slice(start, start + 100)
        for channel in range(3):  # one by one: NumPy is slow at a transpose of all three
            np.divide(pixels[block, channel], np.float32(255), out=planes[block, channel], dtype=np.float32)


def _layout(x, layout):
    return x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def _synthetic(n, seed):
    """n images of 10 classes. A class is a pattern of 4 x 4 coloured squares, the same for every seed; noise is added.

    One image in ten shows another class than its label says, so no network classifies more than about 90 % of them correctly.
    """
    patterns = np.random.RandomState(0).uniform(0, 0.8, (len(CLASSES), 3, 4, 4)).astype(np.float32)
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.arange(n) % len(CLASSES)).astype(np.int64)
    mislabelled = rng.random_sample(n) < 0.1
    shown = (y + mislabelled * rng.randint(1, len(CLASSES), n)) % len(CLASSES)
    x = patterns.repeat(8, axis=2).repeat(8, axis=3)[shown]
    for image in x:  # one by one: noise is drawn as float64, and of all images it would need 1.2 GB
        image += rng.uniform(0, 0.2, image.shape)
    return x, y
