#!/usr/bin/env python
"""Give NVIDIA's libraries the names that old frameworks look for, in the environment of the Python that runs this file.

The wheels of NVIDIA hold ``libcublas.so.11`` and the like. PaddlePaddle 2.6 opens ``libcublas.so``, the name that an
installation of CUDA for developers adds. Each library gets it, as a link beside it.

Usage:  /path/to/that/environment/bin/python nvidia_links.py

Without NVIDIA's wheels it does nothing. Running it again does no harm.
"""

import re
import sysconfig
from pathlib import Path


def main():
    """Make the links that are missing; say how many."""
    made = 0
    for library in sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*/lib/lib*.so.*")):
        link = library.with_name(re.sub(r"\.so\..*", ".so", library.name))
        if not link.exists():
            link.symlink_to(library.name)
            made += 1
    print("nvidia_links: made %d links" % made)


if __name__ == "__main__":
    main()
