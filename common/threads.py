"""How many processors and threads this process works with, read from the process instead of from what it was told."""

import ctypes
import os
import re
import sys

# Libraries that compute with threads: the file's name, and the function that tells how many
POOLS = (
    ("openmp", r"lib(?:g|i)?omp\d?(?:-[0-9a-f]+)?\.so", "omp_get_max_threads"),
    ("mkl", r"libmkl(?:_rt|ml_intel)\.so", "MKL_Get_Max_Threads"),
    ("openblas", r"lib(?:scipy_)?openblas[^/]*\.so", "openblas_get_num_threads"),
)


def thread_pools(maps="/proc/self/maps"):
    """{"processors": that the process may use, and threads of each pool it has loaded: "openmp", "mkl", "openblas", "torch"}.

    maps: the process's memory map (Linux), read so that it works for every framework alike; only processors where there is none.
    A pool that is loaded more than once counts with its largest number.
    """
    found = {"processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()}
    try:
        with open(maps) as lines:
            text = lines.read()
    except (IOError, OSError):
        text = ""
    for name, library, function in POOLS:
        for path in sorted(set(re.findall(r"(/.*/%s[.\d]*)$" % library, text, re.MULTILINE))):
            try:
                threads = getattr(ctypes.CDLL(path), function)()
            except (OSError, AttributeError):  # a pool that does not tell is left out
                continue
            found[name] = max(threads, found.get(name, 0))
    if "torch" in sys.modules:
        found["torch"] = sys.modules["torch"].get_num_threads()
    return found
