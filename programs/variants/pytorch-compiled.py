"""PyTorch, compiled: `torch.compile` fuses operations into fewer kernels. Each shape of a batch gets code of its own.

`model.compile()` would not do here: PyTorch 2.13 compiles nothing of an `nn.Sequential` by it, and does not say so."""

# %% after weights
model.forward = torch.compile(model.forward, dynamic=False)
