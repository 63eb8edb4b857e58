"""Layers as data: their words, their settings, and the shapes, weights and arithmetic that follow.

A network is a list of layers; ``connect(layers, shape)`` gives each its place. Shapes are those of one input, without the batch:
(channels, height, width) of an image, (words, features) of a text, (features,). Nothing here computes.
"""

import copy


class Layer(object):
    """A layer with its settings as attributes. ``kind`` is the word by which a notebook chooses the framework's own layer.

    In its place in a network it has ``name`` (``"3"``; ``"5.0.2"`` is within the first branch of layer 5), ``in_shape`` and
    ``out_shape``, and ``inputs``: the channels or features that come in.
    """

    kind = ""

    def __init__(self, **settings):
        vars(self).update(settings)

    def connect(self, name, shape):
        """This layer in its place. shape: of its input."""
        placed = copy.copy(self)
        placed.name, placed.in_shape = name, tuple(shape)
        placed.inputs = shape[0] if len(shape) == 3 else shape[-1]
        placed.out_shape = tuple(placed.shape())
        return placed

    def shape(self):
        """Of the output."""
        return self.in_shape

    def weights(self):
        """What it learns or gathers: names and shapes, in the canonical order and layout."""
        return []

    def multiply_adds(self):
        """Of one input's forward pass; layers without products count nothing."""
        return 0

    def parts(self):
        """The layers that compute: this one, or those within it."""
        return [self]


class Branches(Layer):
    """Lists of layers side by side, all on the same input. An empty list passes it on."""

    def __init__(self, *branches):
        Layer.__init__(self, branches=branches)

    def connect(self, name, shape):
        placed = copy.copy(self)
        placed.branches = [connect(branch, shape, "%s.%d." % (name, i)) for i, branch in enumerate(self.branches)]
        return Layer.connect(placed, name, shape)

    def ends(self):
        """The shapes of what the branches compute."""
        return [branch[-1].out_shape if branch else self.in_shape for branch in self.branches]

    def parts(self):
        return [part for branch in self.branches for layer in branch for part in layer.parts()]


class Concat(Branches):
    """The branches' outputs one behind the other, along the channels."""

    kind = "concat"

    def shape(self):
        return (sum(end[0] for end in self.ends()),) + self.ends()[0][1:]


class Add(Branches):
    """The sum of the branches' outputs."""

    kind = "add"

    def shape(self):
        return self.ends()[0]


class Window(Layer):
    """What looks at a window of pixels. size, padding: a number, or one for height and one for width; padding: on each side.

    ceil: whether a last window that is only half inside counts; nothing outside the image does.
    """

    ceil = False

    def pixels(self):
        """(height, width) of the output."""
        sizes = zip(self.in_shape[1:], pair(self.size), pair(self.padding))
        over = self.stride - 1 if self.ceil else 0
        return tuple((pixels + 2 * padding - size + over) // self.stride + 1 for pixels, size, padding in sizes)

    def edges(self):
        """((above, below), (left, right)): pixels beyond the edges that windows reach into, those that ``ceil`` adds included."""
        sizes = zip(self.in_shape[1:], self.pixels(), pair(self.size), pair(self.padding))
        return tuple(
            (padding, max(0, (windows - 1) * self.stride + size - pixels - padding))
            for pixels, windows, size, padding in sizes
        )

    def shape(self):
        return (self.inputs,) + self.pixels()


class Conv(Window):
    """Weight (filters, inputs, height, width)."""

    kind = "conv"

    def __init__(self, filters, size, stride=1, padding=0, bias=True):
        Layer.__init__(self, filters=filters, size=size, stride=stride, padding=padding, bias=bias)

    def shape(self):
        return (self.filters,) + self.pixels()

    def weights(self):
        kernel = [("weight", (self.filters, self.inputs) + pair(self.size))]
        return kernel + ([("bias", (self.filters,))] if self.bias else [])

    def multiply_adds(self):
        high, wide = pair(self.size)
        return product(self.out_shape) * self.inputs * high * wide


class MaxPool(Window):
    kind = "max_pool"

    def __init__(self, size, stride, padding=0, ceil=False):
        Layer.__init__(self, size=size, stride=stride, padding=padding, ceil=ceil)


class AveragePool(Window):
    """Pixels of the padding are not counted."""

    kind = "average_pool"

    def __init__(self, size, stride, padding=0, ceil=False):
        Layer.__init__(self, size=size, stride=stride, padding=padding, ceil=ceil)


class GlobalAveragePool(Layer):
    """The mean over all pixels."""

    kind = "global_average_pool"

    def shape(self):
        return (self.inputs,)


class BatchNorm(Layer):
    kind = "batch_norm"

    def __init__(self, epsilon=1e-5):
        Layer.__init__(self, epsilon=epsilon)

    def weights(self):
        return [(part, (self.inputs,)) for part in ("weight", "bias", "running_mean", "running_var")]


class LocalResponseNorm(Layer):
    """x / (1 + alpha * m) ** beta, where m is the mean of the squares of ``size`` channels around it (zeros beyond the ends)."""

    kind = "local_response_norm"

    def __init__(self, size, alpha, beta):
        Layer.__init__(self, size=size, alpha=alpha, beta=beta)


class Relu(Layer):
    kind = "relu"


class Sigmoid(Layer):
    kind = "sigmoid"


class Flatten(Layer):
    """Channel by channel, row by row."""

    kind = "flatten"

    def shape(self):
        return (product(self.in_shape),)


class Dense(Layer):
    """Of features; for a text of each word's. Weight (units, inputs)."""

    kind = "dense"

    def __init__(self, units):
        Layer.__init__(self, units=units)

    def shape(self):
        return self.in_shape[:-1] + (self.units,)

    def weights(self):
        return [("weight", (self.units, self.inputs)), ("bias", (self.units,))]

    def multiply_adds(self):
        return product(self.out_shape) * self.inputs


class PadChannels(Layer):
    """Every ``stride``-th pixel, with channels of zeros behind the others: a shortcut without parameters."""

    kind = "pad_channels"

    def __init__(self, channels, stride):
        Layer.__init__(self, channels=channels, stride=stride)

    def shape(self):
        return (self.channels,) + tuple(-(-pixels // self.stride) for pixels in self.in_shape[1:])


class Embedding(Layer):
    """(words,) -> (words, width). Weight (vocabulary, width)."""

    kind = "embedding"

    def __init__(self, vocabulary, width):
        Layer.__init__(self, vocabulary=vocabulary, width=width)

    def shape(self):
        return self.in_shape + (self.width,)

    def weights(self):
        return [("weight", (self.vocabulary, self.width))]


class LSTM(Layer):
    """The states after every word. Gates in the order input, forget, cell, output; one bias; weights (4 units, inputs or units)."""

    kind = "lstm"

    def __init__(self, units):
        Layer.__init__(self, units=units)

    def shape(self):
        return (self.in_shape[0], self.units)

    def weights(self):
        gates = 4 * self.units
        return [("weight_ih", (gates, self.inputs)), ("weight_hh", (gates, self.units)), ("bias", (gates,))]

    def multiply_adds(self):
        return self.in_shape[0] * 4 * self.units * (self.inputs + self.units)


def connect(layers, shape, prefix=""):
    """The layers in their places, one after the other. shape: of the input."""
    placed = []
    for number, layer in enumerate(layers):
        placed.append(layer.connect("%s%d" % (prefix, number), shape))
        shape = placed[-1].out_shape
    return placed


def pair(size):
    """Of height and width."""
    return size if isinstance(size, tuple) else (size, size)


def product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result
