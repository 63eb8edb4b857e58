"""CNTK: one convolution."""

# %% after setup
images, kernels = C.input_variable(x.shape[1:]), C.constant(w)
tell(C.convolution(kernels, images).eval({images: x}), device)
