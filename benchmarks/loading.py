"""Loading CIFAR-10 as this project does, against the way of 2018: pickled batches, and labels one-hot in float64 by scikit-learn.

    uv run --with scikit-learn==1.7.2 benchmarks/loading.py [--repeats 5]

Both give the same float32 images, channels first, and one-hot labels; they load by turns, from a warm file cache. The pickles are
made first, in a temporary folder, from the binary files. Prints seconds, median (min - max), and the ratio of the medians.
"""

import argparse
import pickle
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.data import cifar10
from rosetta.speed.figures import spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pickles(folder)
        ways = {"ours": ours, "as in 2018": lambda: as_in_2018(folder)}
        for old, new in zip(ways["as in 2018"](), ways["ours"]()):  # the warm-up of both
            np.testing.assert_allclose(old, new, atol=1e-6)
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way, load in ways.items():
                started = time.perf_counter()
                load()
                seconds[way].append(time.perf_counter() - started)
    for way, found in seconds.items():
        print(f"{way:<12} {spread(found, 3)} s")
    medians = {way: statistics.median(found) for way, found in seconds.items()}
    print(f"ours in {medians['ours'] / medians['as in 2018']:.3f} of the time")


def ours() -> tuple[np.ndarray, ...]:
    return cifar10.load("NCHW", one_hot=True)


def write_pickles(folder: Path) -> None:
    """The layout of the data set's Python version: five training batches and a test batch of bytes and lists."""
    x, y, x_test, y_test = cifar10.load("NCHW")
    batches = [(x[i : i + 10_000], y[i : i + 10_000]) for i in range(0, len(x), 10_000)]
    names = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    for file, (images, labels) in zip(names, [*batches, (x_test, y_test)]):
        pixels = np.rint(images * 255).astype(np.uint8).reshape(len(images), -1)
        (folder / file).write_bytes(pickle.dumps({b"data": pixels, b"labels": labels.tolist()}, protocol=2))


def as_in_2018(folder: Path) -> tuple[np.ndarray, ...]:
    """Unpickle, append batch by batch, scale in place of reading floats, and let scikit-learn make the labels one-hot."""
    from sklearn.preprocessing import OneHotEncoder

    images, labels = read_pickle(folder / "data_batch_1")
    for number in range(2, 6):
        more, classes = read_pickle(folder / f"data_batch_{number}")
        images, labels = np.vstack((images, more)), np.concatenate((labels, classes))
    test_images, test_labels = read_pickle(folder / "test_batch")
    encoder = OneHotEncoder(sparse_output=False)
    loaded = []
    for pixels, classes in ((images, labels), (test_images, test_labels)):
        loaded.append((pixels / 255.0).reshape(-1, 3, 32, 32).astype(np.float32))
        loaded.append(encoder.fit_transform(np.asarray(classes).reshape(-1, 1)).astype(np.float32))
    return tuple(loaded)


def read_pickle(file: Path) -> tuple[np.ndarray, np.ndarray]:
    with file.open("rb") as stream:
        batch = pickle.load(stream, encoding="bytes")
    return batch[b"data"], np.array(batch[b"labels"])


if __name__ == "__main__":
    main()
