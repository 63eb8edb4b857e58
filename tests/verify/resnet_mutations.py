"""Mistakes to plant in notebooks of resnet50_features, as ``mutations`` has them for cifar10_cnn. A framework may have no way to make one."""

from tests.verify.mutations import Mutation

GENERATE = "images.generate(N_INPUTS)"


def _generated(change: str) -> dict[str, tuple]:
    """The same change to the images ``a`` that the loader makes, (n, 3, 224, 224), in each notebook."""
    params = '__import__("common.params.resnet50_features", fromlist=["MEAN"])'
    changed = ("data", GENERATE, f"(lambda a: {change.replace('PARAMS', params)})({GENERATE})")
    return {"pytorch": changed, "mxnet_gluon": changed, "flax": changed}


def _zoo(*lines: str) -> tuple:
    """Lines of Python right after PyTorch's network has been made."""
    cut = "model.fc = nn.Identity()"
    return "model", cut, "\n".join([*lines, cut])


MUTATIONS = {
    "the stride in the first 1x1 convolution of a stage": Mutation(
        level=3,
        pytorch=_zoo(
            "for m in model.modules():",
            "    if getattr(m, 'stride', 1) == 2 and hasattr(m, 'conv2'):",
            "        m.conv1.stride, m.conv2.stride = (2, 2), (1, 1)",
        ),
        flax=(
            (
                "model",
                "self.bn1 = conv(inputs, width, (1, 1))",
                "self.bn1 = conv(inputs, width, (1, 1), strides=stride)",
            ),
            ("model", "(3, 3), strides=stride", "(3, 3), strides=1"),
        ),
    ),
    "an epsilon of 0.001 in batch norm": Mutation(
        level=3,
        pytorch=_zoo("for m in model.modules():", "    if hasattr(m, 'eps'):", "        m.eps = 1e-3"),
        flax=(
            ("model", "partial(nnx.BatchNorm, epsilon=1e-5", "partial(nnx.BatchNorm, epsilon=1e-3"),
            ("model", "nnx.BatchNorm(64, epsilon=1e-5", "nnx.BatchNorm(64, epsilon=1e-3"),
        ),
    ),
    "batch norm by the statistics of the batch": Mutation(
        level=3,
        flax=("model", "model.eval()\n", ""),
        mxnet_gluon=(  # the graph that MKLDNN has fused is one for inference in either mode
            ("predict", "if device == mx.cpu():", "if False:"),
            ("predict", "    return net(", "    with mx.autograd.train_mode():\n        return net("),
        ),
    ),
    # PyTorch gathers statistics in training, so they are no longer those that were given
    "batch norm in training mode, which gathers statistics": Mutation(
        level=1, pytorch=("model", "model.eval().to", "model.to")
    ),
    "blue, green, red instead of red, green, blue": Mutation(level=3, **_generated("a[:, ::-1].copy()")),
    "images that are not normalised": Mutation(
        level=3,
        **_generated(
            "(a.transpose(0, 2, 3, 1) * PARAMS.DEVIATION + PARAMS.MEAN).transpose(0, 3, 1, 2).astype(a.dtype)"
        ),
    ),
    "a crop that is off by one pixel": Mutation(level=3, **_generated('__import__("numpy").roll(a, 1, axis=3)')),
    "a first pooling that is padded behind alone": Mutation(
        level=3,
        pytorch=_zoo("model.maxpool = nn.MaxPool2d(3, 2, ceil_mode=True)"),
        flax=("model", "((1, 1), (1, 1))", "((0, 1), (0, 1))"),
    ),
    "features before the last pooling": Mutation(
        level=3,
        named=None,
        pytorch=_zoo("model.avgpool = nn.Identity()"),
        mxnet_gluon=("model", "zoo.features", "zoo.features[:-1]"),
    ),
    "the largest of all pixels in the place of their mean": Mutation(
        level=3,
        pytorch=_zoo("model.avgpool = nn.AdaptiveMaxPool2d(1)"),
        flax=("model", "x.mean(axis=(1, 2))", "x.max(axis=(1, 2))"),
    ),
    "last short batch dropped": Mutation(
        level=3,
        named=None,  # the run itself fails: "a pass had 8 inputs, expected 10"
        pytorch=("predict", "x.split(BATCHSIZE)", "x[: len(x) // BATCHSIZE * BATCHSIZE].split(BATCHSIZE)"),
        mxnet_gluon=("data", "batch_size=BATCHSIZE)", 'batch_size=BATCHSIZE, last_batch="discard")'),
    ),
}
