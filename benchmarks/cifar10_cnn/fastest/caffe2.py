"""Caffe2: on a CPU forward convolutions by NNPACK (an engine that Caffe2 brings), and MKL 2020.0, which this wheel has,
told to use AVX2 on AMD's processors; no gradient of the images, which nothing uses."""

# %% after parameters
import os

with open("/proc/cpuinfo") as cpuinfo:
    if "AuthenticAMD" in cpuinfo.read():
        os.environ["MKL_DEBUG_CPU_TYPE"] = "5"

# %% after model
from caffe2.python import utils

for op in list(train_model.net.Proto().op) + list(test_model.net.Proto().op):
    if op.type == "Conv":
        if not workspace.has_cuda_support:
            op.engine = "NNPACK"
        if op.input[0] == "data":
            op.arg.extend([utils.MakeArgument("no_gradient_to_input", 1)])
