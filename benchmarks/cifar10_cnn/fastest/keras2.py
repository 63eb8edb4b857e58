"""Keras 2: each backend's libraries set up, fit() stays. Theano calls the OpenBLAS of SciPy directly and keeps its intermediate arrays (its
documentation on blas.ldflags and allow_gc); CNTK's MKL uses AVX2 on an AMD CPU; TensorFlow compiles clusters of operations with XLA."""

# %% after parameters
import glob
import os
import platform

import scipy

# Each of these is read by one backend alone
flags = ["allow_gc=False"]
blas_folder = os.path.dirname(scipy.__file__) + ".libs"  # where SciPy's wheel has its OpenBLAS
for blas in glob.glob(os.path.join(blas_folder, "libopenblas*.so")):
    name = os.path.basename(blas)[len("lib") : -len(".so")]
    flags.append("blas.ldflags=-L%s -l%s -Wl\\,-rpath\\,%s" % (blas_folder, name, blas_folder))
if "THEANO_FLAGS" in os.environ:
    flags.append(os.environ["THEANO_FLAGS"])  # the last of two wins
os.environ["THEANO_FLAGS"] = ",".join(flags)

os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"

if platform.system() == "Linux":
    with open("/proc/cpuinfo") as cpuinfo:
        cpu = cpuinfo.read()
    if "AuthenticAMD" in cpu and "avx2" in cpu:
        os.environ["MKL_DEBUG_CPU_TYPE"] = "5"  # MKL of before 2020 takes its slowest kernels there otherwise
