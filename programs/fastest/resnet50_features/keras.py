"""Keras: batch norm folded into the convolutions in front of it; the loop is the notebook's."""

# %% after weights
weights = export_weights()
for conv, norm in pairs:
    kernel, bias = conv.get_weights()
    gamma, beta, mean, variance = norm.get_weights()
    scale = gamma / np.sqrt(variance + norm.epsilon)
    conv.set_weights([kernel * scale, (bias - mean) * scale + beta])
    norm.call = lambda inputs, **_: inputs


def export_weights():
    return weights
