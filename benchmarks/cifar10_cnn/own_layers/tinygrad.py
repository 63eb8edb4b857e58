"""tinygrad: 50 channels become 52 with zeros, so that the kernel heuristics find an axis to vectorize (they try multiples of 3 and 4)."""


# %% after model
def conv(layer, x):
    """The layer with its channels padded by zeros to a multiple of 4; the gradients of what is padded are dropped."""
    n_out, n_in, _, _ = layer.weight.shape
    out, more = -n_out % 4, x.shape[1] - n_in
    return x.conv2d(layer.weight.pad(((0, out), (0, more), None, None)), layer.bias.pad(((0, out),)), padding=1)


class PaddedModel(Model):
    def __call__(self, x):
        x = conv(self.conv1, x).relu()
        x = conv(self.conv2, x).max_pool2d().relu().dropout(drop(0.25))
        x = conv(self.conv3, x).relu()
        x = conv(self.conv4, x).max_pool2d().relu().dropout(drop(0.25))
        x = self.fc1(x.flatten(1)).relu().dropout(drop(0.5))
        return self.fc2(x)


model = PaddedModel()
