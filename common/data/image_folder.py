"""Folders of pictures, a folder for each class, which frameworks read by themselves: checked before they do."""

import os

from common.data import loaded
from common.data.errors import DataError
from common.data.images import ENDINGS


def checked(folder, least):
    """The same path. Raises DataError where the folder has no folders with pictures, fewer pictures than ``least`` (one batch), or
    another file among them: some frameworks pass over it, others stop at it."""
    try:
        classes = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
        files = sorted(os.path.join(path, name) for path in classes for name in os.listdir(path))
    except OSError as error:
        raise DataError("IMAGES: cannot read the folder %s: %s" % (folder, error.strerror)) from None
    for file in files:
        if not file.lower().endswith(ENDINGS):
            raise DataError("IMAGES: %s is no picture: take it out of the folder" % file)
    if len(files) < least:
        found = "%d pictures in %d folders" % (len(files), len(classes))
        raise DataError("IMAGES: %s holds %s; a batch needs %d, in a folder for each class" % (folder, found, least))
    loaded.remember("pictures", False, images=len(files))
    return folder
