"""CIFAR-10 as picture files: for tasks that read a folder of pictures, where no photographs are at hand. Needs Pillow."""

import os

import numpy as np

from common.data import cifar10, loaded
from common.data.errors import DataError
from common.data.images import MARK

QUALITY = 90  # of a JPEG


def write(folder, n, size=256, data_dir=None, synthetic=None, by_class=False):
    """Write the first n test images, enlarged to size x size pixels, as ``00000-cat.jpg`` and so on; the same bytes each time.

    folder: made where it is not there; it must be empty. by_class: ``cat/00000.jpg``, which frameworks' own readers of folders
    expect. data_dir, synthetic: as for ``cifar10.load``.
    Raises DataError for a folder that holds something or cannot be written, and for what ``cifar10.load`` does.
    """
    from PIL import Image  # here, because nothing else in common needs it at once

    x, y = cifar10.load(layout="NHWC", n_train=1, n_test=n, data_dir=data_dir, synthetic=synthetic)[2:]
    try:
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):
            raise DataError("%s is not empty: name another folder" % folder)
        for number, (image, label) in enumerate(zip(x, y)):
            picture = Image.fromarray(np.round(255 * image).astype(np.uint8)).resize((size, size), Image.BICUBIC)
            name = cifar10.CLASSES[label]
            path = os.path.join(name, "%05d.jpg" % number) if by_class else "%05d-%s.jpg" % (number, name)
            path = os.path.join(folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            picture.save(path, quality=QUALITY)
        if loaded.description()["synthetic"]:  # or runs would take them for real ones
            with open(os.path.join(folder, MARK), "w") as file:
                file.write("These pictures were made of synthetic data. Runs read this file and say so.\n")
    except OSError as error:
        raise DataError("cannot write pictures to %s: %s" % (folder, error.strerror or error)) from None
