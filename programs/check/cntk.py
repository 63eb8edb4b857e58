"""CNTK: one convolution."""

# %% after setup
images, kernels = C.input_variable(x.shape[1:]), C.constant(w)
y = C.convolution(kernels, images, auto_padding=[False, True, True])  # channels, height, width
tell(y.eval({images: x}), device)
