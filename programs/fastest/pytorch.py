"""PyTorch: the images are channels last from the start, and one fused kernel updates a weight and its velocity; on a GPU the network is
compiled and replayed as CUDA graphs."""

# %% after data
x_train = x_train.contiguous(memory_format=torch.channels_last)

# %% after optimizer
if torch.__version__ >= "2":
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, fused=True)
    if device.type == "cuda":
        model.compile(mode="reduce-overhead")
