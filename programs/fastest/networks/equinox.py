"""Equinox: the weights and the optimizer's state are donated, so that new ones may take their memory."""

# %% after weights
from functools import partial

jax.jit = partial(jax.jit, donate_argnums=(2, 3, 4))
