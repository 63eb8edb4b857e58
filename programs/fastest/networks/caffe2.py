"""Caffe2: on a CPU forward convolutions by NNPACK, an engine that Caffe2 brings; no gradient of the images, which nothing uses."""

# %% after weights
from caffe2.python import utils

for op in list(model.net.Proto().op):
    if op.type == "Conv":
        if not workspace.has_cuda_support:
            op.engine = "NNPACK"
        if op.input[0] == "data":
            op.arg.extend([utils.MakeArgument("no_gradient_to_input", 1)])
