"""PyTorch: one fused kernel updates a weight and its velocity. On a CPU the images are channels last from the start; on a GPU the
network is compiled and replayed as CUDA graphs, each batch size as one of its own."""

# %% after data
if device.type == "cpu":
    x_train = x_train.contiguous(memory_format=torch.channels_last)

# %% after optimizer
if torch.__version__ >= "2":
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, fused=True)
    if device.type == "cuda":
        model.forward = torch.compile(model.forward, mode="reduce-overhead", dynamic=False)
