"""Mistakes to plant in notebooks of imdb_gru, as ``mutations`` has them for cifar10_cnn. A framework may have no way to make one."""

from tests.verify.mutations import Mutation

LOAD = "imdb.load(N_TRAIN, N_TEST)"


def _loaded(change: str) -> dict[str, tuple]:
    """The same change to the reviews ``a`` that the loader returns, in each notebook."""
    changed = ("data", LOAD, f"({change} if a.ndim == 2 else a for a in {LOAD})")
    return {"pytorch": changed, "mxnet_gluon": changed, "tensorflow1": changed}


def _cut(cell: str) -> tuple:
    """The loader keeps the first words of a review."""
    first = "imdb.cut = lambda reviews, path, cut=imdb.cut: cut([ranks[:149] for ranks in reviews], path)\n"
    return "data", cell, first + cell


EXPORT = """
def export_weights(export=export_weights):
    import numpy

    def changed(array):
        return numpy.concatenate([sign * numpy.split(array, 3)[i] for i, sign in zip({}, {})])

    return {{name: changed(array) if "gru" in name else array for name, array in export().items()}}


"""


def _exported(places: str, signs: str = "(1, 1, 1)") -> dict[str, tuple]:
    """Other gates than r, z, n below each other, or others with another sign, in the weights that leave a notebook."""
    begins = "test_accuracy = evaluate()"
    changed = ("record", begins, EXPORT.format(places, signs) + begins)
    return {"pytorch": changed, "mxnet_gluon": changed, "tensorflow1": changed}


MUTATIONS = {
    "gates in the order z, r, n": Mutation(level=3, **_exported("(1, 0, 2)")),
    "z and 1 - z exchanged": Mutation(level=3, **_exported("(0, 1, 2)", "(1, -1, 1)")),
    "the state after the first step": Mutation(
        level=3,
        pytorch=(
            ("model", "_, last = self.gru", "last, _ = self.gru"),
            ("model", "self.fc(last[0])", "self.fc(last[:, 0])"),
        ),
        mxnet_gluon=("model", "begin=-1, end=None", "begin=0, end=1"),
        tensorflow1=(("model", "_, last = tf", "last, _ = tf"), ("model", "dense(last,", "dense(last[:, 0],")),
    ),
    "reviews padded at the front": Mutation(
        level=3,
        **_loaded('(lambda numpy: numpy.array([numpy.roll(row, (row == 0).sum()) for row in a]))(__import__("numpy"))'),
    ),
    "reviews cut at the end": Mutation(
        level=3,
        named=None,
        pytorch=_cut("arrays = imdb.load"),
        mxnet_gluon=_cut("x_train, y_train, x_test, y_test = imdb.load"),
        tensorflow1=_cut("x_train, y_train, x_test, y_test = imdb.load"),
    ),
    "reading reviews from their end to their start": Mutation(level=3, **_loaded("a[:, ::-1].copy()")),
    "ranks without the offset of 3": Mutation(level=3, **_loaded("a - 3 * (a > 2).astype(a.dtype)")),
    "Adam without the correction of its means": Mutation(level=4, mlx=("optimizer", ", bias_correction=True", "")),
    "Adam's epsilon inside the root": Mutation(level=4, flax=("optimizer", "eps=EPSILON", "eps=0.0, eps_root=EPSILON")),
    "a summed loss": Mutation(
        level=4,
        pytorch=("optimizer", "CrossEntropyLoss()", 'CrossEntropyLoss(reduction="sum")'),
        mxnet_gluon=("train", "trainer.step(len(x))", "trainer.step(1)"),
        tensorflow1=("optimizer", "tf.reduce_mean(losses)", "tf.reduce_sum(losses)"),
    ),
    "lazy Adam": Mutation(
        level=5,
        named=None,
        mxnet_gluon=("model", "nn.Embedding(30000, 125, ", "nn.Embedding(30000, 125, sparse_grad=True, "),
        tensorflow1=("optimizer", "tf.train.AdamOptimizer(", "tf.contrib.opt.LazyAdamOptimizer("),
    ),
    "no shuffling": Mutation(
        level=5,
        named=None,
        pytorch=("train", "torch.randperm(len(x_train), device=device)", "torch.arange(len(x_train))"),
        mxnet_gluon=("data", "shuffle=True", "shuffle=False"),
        tensorflow1=("data", ".shuffle(len(x_train))", ""),
    ),
    "a generator that begins anew in every epoch": Mutation(
        level=5,
        named=None,
        pytorch=("train", "    model.train()", "    torch.manual_seed(SEED)\n    model.train()"),
        mxnet_gluon=("train", "    total = mx", "    np.random.seed(SEED)\n    total = mx"),
        flax=("train", "rngs.permutation", "nnx.Rngs(SEED).permutation"),
    ),
    "a mean of the batches' means": Mutation(
        level=5,
        named=None,
        pytorch=(
            ("train", "detach() * len(batch)", "detach()"),
            ("train", "/ len(x_train)", "/ -(-len(x_train) // BATCHSIZE)"),
        ),
        mxnet_gluon=(("train", "loss.sum()", "loss.mean()"), ("train", "/ len(x_train)", "/ len(train_data)")),
        tensorflow1=(
            ("optimizer", "reduce_sum(losses)", "reduce_mean(losses)"),
            ("train", "/ len(x_train)", "/ steps_per_epoch"),
        ),
    ),
    "the state carried over from the batch before": Mutation(
        level=4,
        named=None,
        pytorch=(
            "model",
            "_, last = self.gru(self.embedding(x))",
            "before = getattr(self, 'last', None)\n        before = before if before is not None and before.shape[1] == len(x) else None\n"
            "        _, last = self.gru(self.embedding(x), before)\n        self.last = last.detach()",
        ),
    ),
    "an optimizer that is made anew in every epoch": Mutation(
        level=4,
        named=None,
        pytorch=(
            "train",
            "    model.train()",
            "    optimizer = torch.optim.Adam(model.parameters(), lr=LR)\n    model.train()",
        ),
        mxnet_gluon=(
            "train",
            "    total = mx",
            '    trainer = gluon.Trainer(model.collect_params(), "adam", adam)\n    total = mx',
        ),
        tensorflow1=(
            "train",
            "    total = 0.0",
            "    total = 0.0\n    sess.run(tf.variables_initializer(optimizer.variables()))",
        ),
    ),
    "gradients clipped at a norm of 0.1": Mutation(
        level=4,
        named=None,
        pytorch=("train", "optimizer.step()", "nn.utils.clip_grad_norm_(model.parameters(), 0.1); optimizer.step()"),
    ),
}
