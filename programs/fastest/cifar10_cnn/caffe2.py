"""Caffe2: on a CPU forward convolutions by NNPACK, an engine that Caffe2 brings."""

# %% after model
if not workspace.has_cuda_support:
    for op in list(train_model.net.Proto().op) + list(test_model.net.Proto().op):
        if op.type == "Conv":
            op.engine = "NNPACK"
