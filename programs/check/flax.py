"""Flax: one convolution."""

# %% after setup
y = jax.lax.conv(jnp.asarray(x), jnp.asarray(w), window_strides=(1, 1), padding="SAME")
tell(jax.device_get(y), y.device)
