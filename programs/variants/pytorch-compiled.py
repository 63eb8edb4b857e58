"""PyTorch, compiled: `torch.compile` fuses operations into fewer kernels. Each shape of a batch gets code of its own."""

# %% after weights
model.compile(dynamic=False)
