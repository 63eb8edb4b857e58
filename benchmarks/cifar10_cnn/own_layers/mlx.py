"""MLX: on a CPU a convolution is a matrix product of patches, whose operands lie as the wheel's BLAS takes them fastest."""

# %% after model


def patches(x):
    """The 3x3 neighbourhood of every pixel: N, H, W, 9 * C."""
    n, h, w, c = x.shape
    x = mx.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    row = (w + 2) * c
    return mx.as_strided(x, (n, h, w, 3, 3, c), ((h + 2) * row, row, c, row, c, 1)).reshape(n, h, w, 9 * c)


@mx.custom_function
def conv3x3(x, weight):
    return patches(x) @ mx.contiguous(weight.reshape(len(weight), -1).T)  # transposed in memory: twice as fast


@conv3x3.vjp
def conv3x3_vjp(primals, gradient, _):
    x, weight = primals
    n_out, _, _, n_in = weight.shape
    turned = weight[:, ::-1, ::-1].transpose(1, 2, 0, 3).reshape(-1, n_in)
    weight_gradient = gradient.reshape(-1, n_out).T @ patches(x).reshape(-1, 9 * n_in)
    return patches(gradient) @ turned, weight_gradient.reshape(weight.shape)


class PatchesConv2d(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    def __call__(self, x):
        return conv3x3(x, self.weight) + self.bias


if device.type == mx.cpu:
    convolutions = {name: layer for name, layer in model.children().items() if isinstance(layer, nn.Conv2d)}
    model.update_modules({name: PatchesConv2d(layer) for name, layer in convolutions.items()})
