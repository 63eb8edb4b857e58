"""Lasagne: batch norm folded into the convolutions in front of it, a sum in its place; the loop is the notebook's."""

# %% after weights
weights = export_weights()
for norm in lasagne.layers.get_all_layers(network):
    if isinstance(norm, BatchNorm):
        gamma, beta, mean, variance = (param.get_value() for param in norm.get_params())
        scale = gamma / np.sqrt(variance + np.float32(1e-5))
        kernel = norm.input_layer.W
        kernel.set_value(kernel.get_value() * scale[:, None, None, None])
        norm.shift = theano.shared((beta - mean * scale)[None, :, None, None], broadcastable=(True, False, True, True))
BatchNorm.get_output_for = lambda norm, x, **_: x + norm.shift


def export_weights():
    return weights
