"""CNTK: on an AMD CPU, MKL told that AVX2 is there: by itself it takes its slowest kernels on any CPU but Intel's, as guides of computing
centres for such machines warn. The loop stays: handing over a batch is nothing beside the convolutions."""

# %% after parameters
import os
import platform

if platform.system() == "Linux":
    with open("/proc/cpuinfo") as cpuinfo:
        cpu = cpuinfo.read()
    if "AuthenticAMD" in cpu and "avx2" in cpu:
        os.environ["MKL_DEBUG_CPU_TYPE"] = "5"  # AVX2; read when CNTK loads its MKL, which is older than 2020
