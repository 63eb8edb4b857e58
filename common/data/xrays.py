"""Images in grey with 14 labels, in the place of X-rays of the chest: generated, so that labels can be learnt from them."""

import numpy as np

from common.data import loaded

# What ChestX-ray14 (Wang et al., 2017) looks for. In the generated images, stripes stand for each
LABELS = (
    "Atelectasis",
    "Cardiomegaly",
    "Effusion",
    "Infiltration",
    "Mass",
    "Nodule",
    "Pneumonia",
    "Pneumothorax",
    "Consolidation",
    "Edema",
    "Emphysema",
    "Fibrosis",
    "Pleural_Thickening",
    "Hernia",
)
SHARE = 0.2  # of the images have a label, on average
CHUNK = 512  # images that are drawn at a time: a matter of memory


def load(n_train, n_test, pixels=64):
    """(x_train, y_train, x_test, y_test). Images are uint8 (n, pixels, pixels), labels float32 (n, 14), each 0 or 1.

    The first images are the same whatever their number.
    """
    train, test = _generated(n_train, pixels, seed=1), _generated(n_test, pixels, seed=2)
    loaded.remember("generated X-rays", True, train=n_train, test=n_test)
    return train + test


def _generated(n, pixels, seed):
    """Noise on a bright field; each label adds stripes of its own direction and width at a place of its own."""
    marks = np.stack([_mark(label, pixels) for label in range(len(LABELS))])
    images, labels = [], []
    for number, start in enumerate(range(0, n, CHUNK)):
        rng = np.random.RandomState([seed, number])
        y = (rng.random_sample((CHUNK, len(LABELS))) < SHARE).astype(np.float32)
        strength = y * rng.uniform(0.5, 1.5, y.shape)
        grey = rng.uniform(0.3, 0.6, (CHUNK, 1, 1)) + np.tensordot(strength, marks, axes=1)
        grey = grey + rng.normal(0, 0.08, grey.shape)
        images.append((255 * grey.clip(0, 1)).astype(np.uint8)[: n - start])
        labels.append(y[: n - start])
    return np.concatenate(images), np.concatenate(labels)


def _mark(label, pixels):
    """(pixels, pixels): stripes in a soft round window."""
    down, right = np.meshgrid(*[np.linspace(0, 1, pixels)] * 2, indexing="ij")
    place = 2 * np.pi * label / len(LABELS)
    y, x = down - 0.5 - 0.3 * np.sin(place), right - 0.5 - 0.3 * np.cos(place)
    along = y * np.sin(3 * place) + x * np.cos(3 * place)
    return 0.25 * np.exp(-(y**2 + x**2) / 0.02) * np.sin(2 * np.pi * (4 + label % 3) * along + label)
