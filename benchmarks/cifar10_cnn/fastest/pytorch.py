"""PyTorch: the images in channels-last order, which the CPU's convolutions prefer; one compiled graph, replayed as a CUDA graph on a GPU."""

# %% after data
x_train = x_train.contiguous(memory_format=torch.channels_last)
x_test = x_test.contiguous(memory_format=torch.channels_last)

# %% after weights
model.to(memory_format=torch.channels_last)
