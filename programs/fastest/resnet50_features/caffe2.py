"""Caffe2: on a CPU convolutions by NNPACK, an engine that Caffe2 brings."""

# %% after model
if not gpu:
    for op in net.Proto().op:
        if op.type == "Conv":
            op.engine = "NNPACK"
