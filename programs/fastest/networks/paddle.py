"""PaddlePaddle: the network is made a static graph, and its forward and backward passes are one operation each."""

# %% after weights
model.forward = paddle.jit.to_static(model.forward)
