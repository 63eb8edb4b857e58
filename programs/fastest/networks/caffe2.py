"""Caffe2: no gradient of the images, which nothing uses. NNPACK, the other engine for convolutions, is further from the reference on
resnet56 than the proof allows."""

# %% after weights
from caffe2.python import utils

for op in model.net.Proto().op:
    if op.type == "Conv" and op.input[0] == "data":
        op.arg.extend([utils.MakeArgument("no_gradient_to_input", 1)])
