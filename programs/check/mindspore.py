"""MindSpore: one convolution."""

# %% after setup
y = ms.ops.conv2d(ms.Tensor(x), ms.Tensor(w), pad_mode="same")
tell(y.asnumpy(), device)
