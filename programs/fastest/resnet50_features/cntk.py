"""CNTK: the network again with batch norm folded into the convolutions in front of it; the loop is the notebook's."""

# %% after weights
weights, proven = export_weights(), iter(layers)


def conv_bn(x, size, filters, stride=1):
    conv, bn = next(proven)
    scale = bn.scale.value / np.sqrt(bn.aggregate_variance.value + 1e-5)
    folded = Convolution2D((size, size), filters, strides=stride, pad=True)
    y = folded(x)
    folded.W.value = conv.W.value * scale[:, None, None, None]
    folded.b.value = (bn.bias.value - bn.aggregate_mean.value * scale)[:, None, None]
    return y


h = MaxPooling((3, 3), strides=2, pad=True)(C.relu(conv_bn(image, 7, 64, stride=2)))
for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
    for block in range(blocks):
        h = bottleneck(h, width, 2 if block == 0 and width > 64 else 1, widen=block == 0)
z = GlobalAveragePooling()(h)


def export_weights():
    return weights
