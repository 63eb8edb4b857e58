"""Chainer: one convolution."""

# %% after setup
y = chainer.functions.convolution_2d(device.send(x), device.send(w), pad=1)
tell(cuda.to_cpu(y.array), device)
