"""Versions of what a run used, asked of the running process instead of typed."""

import ctypes
import platform
import re
import sys
from collections import OrderedDict


def versions(*modules):
    """Versions of Python, NumPy and the given modules, in that order: an ordered dict of name to version text.

    A module without ``__version__`` is looked up among the installed distributions; one that is not there is "unknown".
    """
    import numpy

    found = OrderedDict([("python", platform.python_version())])
    for module in modules:
        found[module.__name__] = _version(module)
    found["numpy"] = numpy.__version__
    return found


def _version(module):
    version = getattr(module, "__version__", None)
    if version is None:
        version = _distribution_version(module.__name__)
    return str(version)


def _distribution_version(name):
    if sys.version_info >= (3, 8):
        from importlib import metadata

        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return "unknown"
    try:  # part of setuptools, which a bare environment lacks
        import pkg_resources
    except ImportError:
        return "unknown"
    try:
        return pkg_resources.get_distribution(name).version
    except pkg_resources.DistributionNotFound:
        return "unknown"


def cuda_libraries(maps="/proc/self/maps"):
    """Versions of the CUDA runtime and cuDNN that this process has loaded, as text: {"runtime": "12.9", "cudnn": "9.1.0"}.

    maps: the process's memory map (Linux), read so that it works for every framework alike; empty where none is loaded.
    """
    try:
        with open(maps) as lines:
            paths = _cuda_paths(lines.read())
    except (IOError, OSError):
        return {}
    found = {}
    for path in paths:
        try:
            name, version = _library_version(ctypes.CDLL(path), path)
        except (OSError, AttributeError):  # a record without this version is better than no record
            continue
        found[name] = version
    return found


def _cuda_paths(text):
    """Paths of the CUDA runtime and cuDNN in the text of a memory map; PyTorch's old wheels put a hash into the name."""
    return sorted(set(re.findall(r"/.*/lib(?:cudart|cudnn)(?:-[0-9a-f]+)?\.so[.\d]*$", text, re.MULTILINE)))


def _library_version(library, path):
    """("runtime" or "cudnn", its version) asked of the opened library."""
    if "libcudart" in path:
        number = ctypes.c_int()
        library.cudaRuntimeGetVersion(ctypes.byref(number))
        if not number.value:
            raise OSError("the runtime knows no version where there is no driver")
        return "runtime", "%d.%d" % (number.value // 1000, number.value % 1000 // 10)
    library.cudnnGetVersion.restype = ctypes.c_size_t
    return "cudnn", _cudnn_version(library.cudnnGetVersion())


def _cudnn_version(number):
    """cuDNN 9 counts 90100 for 9.1.0, cuDNN 8 and older 8700 for 8.7.0."""
    unit = 10000 if number >= 90000 else 1000
    return "%d.%d.%d" % (number // unit, number % unit // 100, number % 100)
