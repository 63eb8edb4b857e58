"""tinygrad: one convolution."""

# %% after setup
y = Tensor(x).conv2d(Tensor(w), padding=1)
tell(y.numpy(), y.device)
