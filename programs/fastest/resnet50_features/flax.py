"""Flax: batch norm folded into the convolutions in front of it; the loop is the notebook's."""

# %% after weights
weights = export_weights()


class Identity(nnx.Module):
    def __call__(self, x):
        return x


def fold(conv, norm):
    """A convolution with the scale and shift of its batch norm, which is to be an identity."""
    scale = norm.scale[...] / jnp.sqrt(norm.var[...] + norm.epsilon)
    conv.kernel[...] = conv.kernel[...] * scale
    conv.use_bias = True
    conv.bias = nnx.Param(norm.bias[...] - norm.mean[...] * scale)
    return Identity()


model.bn1 = fold(model.conv1, model.bn1)
for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
    for block in stage.layers:
        for number in "123":
            setattr(block, f"bn{number}", fold(getattr(block, f"conv{number}"), getattr(block, f"bn{number}")))
        if block.downsample:
            conv, norm = block.downsample.layers
            block.downsample = nnx.Sequential(conv, fold(conv, norm))


def export_weights():
    return weights
