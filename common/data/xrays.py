"""X-rays of the chest with 14 labels: those of ChestX-ray14, or generated images from which the labels can be learnt."""

import csv
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from common.data import loaded
from common.data.errors import DataError
from common.data.images import fault, is_synthetic, shown

TABLES = ("Data_Entry_2017.csv", "Data_Entry_2017_v2020.csv")  # the publisher's table of images, under its two names
NONE = "No Finding"
TEST_SHARE = 0.2  # of the patients are for the test
THREADS = 8  # that read files at a time

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


def load(n_train, n_test, pixels=64, folder=None, read=None, feed="memory"):
    """(x_train, y_train, x_test, y_test). Images are uint8 (n, pixels, pixels), labels float32 (n, 14), each 0 or 1.

    The first images are the same whatever their number. Without a folder they are generated. Else they are those of ChestX-ray14:
    ``read(path)`` makes one image of a file. The training images become an array with the feed ``memory``, ``Files`` with ``disk``.
    Raises DataError for a folder that cannot be used.
    """
    if folder:
        return _of_patients(folder, n_train, n_test, read, feed)
    if feed == "disk":
        raise DataError("FEED=disk reads files: set XRAYS to the folder of ChestX-ray14")
    train, test = _generated(n_train, pixels, seed=1), _generated(n_test, pixels, seed=2)
    loaded.remember("generated X-rays", True, train=n_train, test=n_test)
    return train + test


class Files:
    """Images in files, (n, pixels, pixels). An index reads: a number makes one image, a list or a slice makes an array of them."""

    def __init__(self, paths, read):
        self.paths, self.read = np.asarray(paths), read

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, which):
        chosen = self.paths[np.asarray(which) if hasattr(which, "__len__") else which]
        if isinstance(chosen, str):
            return self._one(chosen)
        with ThreadPoolExecutor(THREADS) as threads:
            return np.stack(list(threads.map(self._one, chosen)))

    def _one(self, path):
        try:
            return np.asarray(self.read(str(path)))
        except Exception as error:  # decoders raise what they like; the last line of a trace is its reason
            reason = fault(path) or (str(error).strip() or type(error).__name__).splitlines()[-1]
            raise DataError("XRAYS: cannot read %s: %s" % (shown(os.path.basename(path)), reason)) from None


def _of_patients(folder, n_train, n_test, read, feed):
    """All images of a patient are for training, or all are for the test. Patients stand in one order, drawn by chance."""
    of_patient, left_out = _table(folder)
    names = sorted(of_patient)
    if len(names) < 2:
        raise DataError("XRAYS: %s holds images of %d patients; two are the least" % (folder, len(names)))
    patients = [of_patient[names[i]] for i in np.random.RandomState(0).permutation(len(names))]
    tests = max(1, int(round(TEST_SHARE * len(patients))))
    parts = []
    for name, n, some in (("N_TRAIN", n_train, patients[tests:]), ("N_TEST", n_test, patients[:tests])):
        examples = [example for patient in some for example in patient]
        try:
            paths, labels = zip(*examples[: loaded.count(n, name, len(examples))])
        except ValueError as error:
            raise DataError("XRAYS: %s: %s has no more images for it" % (error, folder)) from None
        files = Files(paths, read)
        parts += [files if feed == "disk" and name == "N_TRAIN" else files[:], np.array(labels, np.float32)]
    loaded.remember("ChestX-ray14", is_synthetic(folder), train=len(parts[0]), test=len(parts[2]), left_out=left_out)
    return tuple(parts)


def _table(folder):
    """The publisher's table: patient -> its images, each (path, 14 labels); and how many lines name an image that is not there."""
    table = next((path for path in (os.path.join(folder, name) for name in TABLES) if os.path.isfile(path)), None)
    if table is None:
        raise DataError("XRAYS: there is no %s in %s" % (" and no ".join(TABLES), folder))
    there = {name: os.path.join(place, name) for place, _, names in os.walk(folder) for name in names}
    patients, left_out = {}, 0
    with open(table, encoding="utf-8-sig", newline="") as lines:
        for line in csv.DictReader(lines):
            try:
                name, patient, findings = line["Image Index"], line["Patient ID"], line["Finding Labels"].split("|")
            except (KeyError, AttributeError):
                raise DataError("XRAYS: %s lacks the columns Image Index, Finding Labels, Patient ID" % table) from None
            if name not in there:  # a part of the archives alone was unpacked
                left_out += 1
                continue
            unknown = sorted(set(findings) - set(LABELS) - {NONE})
            if unknown:
                raise DataError(
                    "XRAYS: %s names a finding %s for %s; known are %s" % (table, unknown[0], name, ", ".join(LABELS))
                )
            patients.setdefault(patient, []).append((there[name], [float(label in findings) for label in LABELS]))
    if left_out:
        print("left out %d images of %s that are not in %s" % (left_out, os.path.basename(table), folder))
    return patients, left_out


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
