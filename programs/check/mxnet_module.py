"""MXNet: one convolution."""

# %% after setup
images, kernels = (mx.nd.array(array, ctx=device) for array in (x, w))
y = mx.nd.Convolution(images, kernels, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True)
tell(y.asnumpy(), y.context)
