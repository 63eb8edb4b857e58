"""Lists of integers out of a pickled array in an ``.npz`` file, and nothing else: a pickle can run any code when it is loaded."""

import pickle
import zipfile

from numpy.lib import format as npy

from common.data.errors import DataError

LARGEST = 1 << 28  # bytes of a member
# What a pickle raises that is cut short or changed
BROKEN = (
    pickle.UnpicklingError,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
)


def read_lists(path, name):
    """The lists of integers of the one-dimensional object array ``name``.npy in the archive at path, a list of lists.

    Raises DataError for a file that cannot be read or holds anything else; no name that a pickle calls is ever imported.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(name + ".npy").file_size > LARGEST:
                raise DataError("%s: %s is larger than %d MB" % (path, name, LARGEST >> 20))
            with archive.open(name + ".npy") as file:
                shape = _header(file)
                found = _Restricted(file).load()
        lists = found.values if isinstance(found, _Array) else None
    except OSError as error:
        raise DataError("cannot read %s: %s" % (path, error.strerror or error)) from None
    except (zipfile.BadZipFile, *BROKEN) as error:
        raise DataError("%s is damaged (%s): delete it and run again" % (path, " ".join(str(error).split()))) from None
    if shape is None or not _are_lists(lists):
        raise DataError("%s: %s is no array of lists of integers; nothing of it is used" % (path, name))
    return lists


def _header(file):
    """The length that the array's header tells; None where it is no list of objects. The file stands at the pickle then."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape[0] if len(shape) == 1 and dtype.kind == "O" else None


def _are_lists(lists):
    """Whether these are lists of nothing but integers."""
    if type(lists) is not list or not all(type(each) is list for each in lists):
        return False
    return set().union(*(map(type, each) for each in lists)) <= {int}


class _Array(object):
    """Stands for the array that a pickle rebuilds: its state is (version, shape, dtype, order, values)."""

    values = None

    def __setstate__(self, state):
        self.values = state[4]


class _Type(object):
    """Stands for ``numpy.dtype("O")``."""

    def __init__(self, *arguments):
        pass

    def __setstate__(self, state):
        pass


def _reconstruct(*arguments):
    return _Array()


def _encode(text, encoding):
    """Pickles of the second protocol make bytes with it."""
    return text.encode("latin1")


STANDINS = {
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,  # the same since NumPy 2
    "numpy.ndarray": _Array,
    "numpy.dtype": _Type,
    "_codecs.encode": _encode,
}


class _Restricted(pickle.Unpickler):
    """Knows no name but those by which NumPy rebuilds an array, and has stand-ins for these."""

    def find_class(self, module, name):
        asked = "%s.%s" % (module, name)
        if asked not in STANDINS:
            raise pickle.UnpicklingError("it asks for %s, which no list of words needs" % asked)
        return STANDINS[asked]
