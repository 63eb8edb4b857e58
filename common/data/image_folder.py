"""Folders of pictures, a folder for each class, which frameworks read by themselves: checked before they do."""

import os

from common.data import loaded
from common.data.errors import DataError
from common.data.images import fault, is_synthetic, shown


def checked(folder, n, network):
    """The same path, where a network can take batches of n pictures from it.

    Raises DataError for a network whose inputs are no images, for a folder that has fewer than n pictures, a class without any or
    more classes than the network has outputs, and for a file that not every framework reads as the same picture: some pass over it,
    others stop.
    """
    if len(network.input_shape) != 3:
        raise DataError(
            "IMAGES: this network takes no images: leave IMAGES out, or choose one that begins with a convolution"
        )
    try:
        classes = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
        files = {path: sorted(os.path.join(path, name) for name in os.listdir(path)) for path in classes}
    except OSError as error:
        raise DataError("IMAGES: cannot read the folder %s: %s" % (folder, error.strerror)) from None
    for path in classes:
        if os.path.basename(path).startswith("."):
            raise DataError("IMAGES: %s is a hidden folder, which some frameworks take for a class: take it out" % path)
        if not files[path]:
            raise DataError("IMAGES: %s is empty: a class needs a picture" % path)
        for file in files[path]:
            reason = fault(file)
            if reason is not None:
                raise DataError("IMAGES: %s: %s (mend it or take it out)" % (shown(file), reason))
    pictures = sum(map(len, files.values()))
    if pictures < n:
        found = "%d pictures in %d folders" % (pictures, len(classes))
        raise DataError("IMAGES: %s holds %s; a batch needs %d, in a folder for each class" % (folder, found, n))
    outputs = network.output_shape[-1]
    if len(classes) > outputs:
        raise DataError("IMAGES: %s has %d classes; this network has %d outputs" % (folder, len(classes), outputs))
    loaded.remember("pictures", is_synthetic(folder), images=pictures)
    return folder
