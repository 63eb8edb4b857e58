"""Equinox: pooling is a maximum of slices, whose gradient needs no scatter."""


# %% after model
def max_pool(x):
    c, h, w = x.shape
    x = x.reshape(c, h // 2, 2, w // 2, 2)
    top, bottom = (jnp.maximum(x[:, :, i, :, 0], x[:, :, i, :, 1]) for i in (0, 1))
    return jnp.maximum(top, bottom)


model = eqx.nn.Sequential(
    [eqx.nn.Lambda(max_pool) if isinstance(layer, eqx.nn.MaxPool2d) else layer for layer in model]
)
