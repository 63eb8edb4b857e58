"""Equinox: batch norm folded into the convolutions in front of it; the loop is the notebook's."""

# %% after weights
weights = export_weights()


def is_norm(node):
    return isinstance(node, eqx.nn.BatchNorm)


def is_layers(node):
    return isinstance(node, eqx.nn.Sequential) and any(map(is_norm, node.layers))


def fold(node):
    """Layers in which a convolution has the scale of the batch norm behind it, and a sum stands in its place."""
    if not is_layers(node):
        return node
    layers = list(node.layers)
    for number, norm in enumerate(layers):
        if is_norm(norm):
            mean, variance = state.get(norm.batch_state_index)
            scale = norm.weight / jnp.sqrt(variance + norm.eps)
            shift = (norm.bias - mean * scale)[:, None, None]
            conv = layers[number - 1]
            layers[number - 1] = eqx.tree_at(lambda c: c.weight, conv, conv.weight * scale[:, None, None, None])
            layers[number] = eqx.nn.Lambda(jax.tree_util.Partial(jnp.add, shift))
    return eqx.nn.Sequential([jax.tree.map(fold, layer, is_leaf=is_layers) for layer in layers])


model = jax.tree.map(fold, model, is_leaf=is_layers)


def export_weights():
    return weights
