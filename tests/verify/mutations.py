"""Mistakes to plant in notebooks, one at a time: what a porter gets wrong, and the level that must see it.

For each notebook: the cell, what stands there, and what the mistake makes of it.
"""

from dataclasses import dataclass

Edit = tuple[str, str, str]


@dataclass(frozen=True)
class Mutation:
    level: int  # that must fail; others may as well
    named: str | None = ""  # in the diagnosis, where that is not the key; None where nobody can tell
    # By the row, one edit or several
    pytorch: Edit | tuple[Edit, ...] = ()
    tensorflow: Edit | tuple[Edit, ...] = ()
    mxnet_gluon: Edit | tuple[Edit, ...] = ()
    tensorflow1: Edit | tuple[Edit, ...] = ()
    tinygrad: Edit | tuple[Edit, ...] = ()
    flax: Edit | tuple[Edit, ...] = ()
    mlx: Edit | tuple[Edit, ...] = ()
    equinox: Edit | tuple[Edit, ...] = ()
    keras_jax: Edit | tuple[Edit, ...] = ()
    keras_tensorflow: Edit | tuple[Edit, ...] = ()
    paddle: Edit | tuple[Edit, ...] = ()
    network: str = ""  # of a task that has several: the one that shows it; nobody can tell which mistake it is

    def edits(self, row: str) -> tuple[Edit, ...]:
        found = getattr(self, row.replace("[", "_").rstrip("]"))
        return (found,) if found and isinstance(found[0], str) else found


LOAD = "cifar10.load({layout}, N_TRAIN, N_TEST)"


def _loaded(change: str) -> dict[str, tuple]:
    """The same change to the arrays ``a`` that the loader returns, in each notebook."""
    places = (("pytorch", '"NCHW"', 2), ("mxnet_gluon", '"NCHW"', 2), ("tensorflow1", '"NHWC"', 1))
    calls = {name: (LOAD.format(layout=layout), change.format(h=h, w=h + 1)) for name, layout, h in places}
    return {name: ("data", call, f"({changed} for a in {call})") for name, (call, changed) in calls.items()}


# A layer of Keras that a porter writes with a number for a seed, as ``keras.random`` takes it, too
FIXED = """
class Fixed(layers.Dropout):
    def call(self, inputs, training=False):
        return keras.random.dropout(inputs, self.rate, seed=5) if training else inputs


"""
MUTATIONS = {
    "valid padding": Mutation(
        level=3,
        pytorch=("model", "padding=1", "padding=0"),
        mxnet_gluon=("model", "padding=1", "padding=0"),
        tensorflow1=("model", 'padding="same"', 'padding="valid"'),
    ),
    "average pooling": Mutation(
        level=3,
        pytorch=("model", "MaxPool2d", "AvgPool2d"),
        mxnet_gluon=("model", "MaxPool2D", "AvgPool2D"),
        tensorflow1=("model", "max_pooling2d", "average_pooling2d"),
    ),
    "no ReLU after conv1": Mutation(
        level=3,
        pytorch=("model", "padding=1), nn.ReLU(),\n    nn.Conv2d(50, 50", "padding=1),\n    nn.Conv2d(50, 50"),
        mxnet_gluon=(
            "model",
            'nn.Conv2D(50, kernel_size=3, padding=1, activation="relu")',
            "nn.Conv2D(50, kernel_size=3, padding=1)",
        ),
        tensorflow1=("model", 'activation=tf.nn.relu, name="conv1"', 'name="conv1"'),
    ),
    "unit-gain momentum": Mutation(
        level=4,
        pytorch=("optimizer", "lr=LR", "lr=LR * (1 - MOMENTUM)"),
        mxnet_gluon=("optimizer", '"learning_rate": LR', '"learning_rate": LR * (1 - MOMENTUM)'),
        tensorflow1=("optimizer", "(LR, MOMENTUM)", "(LR * (1 - MOMENTUM), MOMENTUM)"),
    ),
    "Nesterov's momentum": Mutation(
        level=4,
        pytorch=("optimizer", "momentum=MOMENTUM", "momentum=MOMENTUM, nesterov=True"),
        mxnet_gluon=("optimizer", '"sgd"', '"nag"'),
        tensorflow1=("optimizer", "(LR, MOMENTUM)", "(LR, MOMENTUM, use_nesterov=True)"),
    ),
    "summed loss": Mutation(
        level=4,
        pytorch=("optimizer", "CrossEntropyLoss()", 'CrossEntropyLoss(reduction="sum")'),
        mxnet_gluon=("train", "trainer.step(len(x))", "trainer.step(1)"),
        tensorflow1=("optimizer", "tf.reduce_mean(losses)", "tf.reduce_sum(losses)"),
    ),
    "a short batch divided by BATCHSIZE": Mutation(
        level=4,
        pytorch=("train", "loss.backward()", "(loss * len(batch) / BATCHSIZE).backward()"),
        mxnet_gluon=("train", "trainer.step(len(x))", "trainer.step(BATCHSIZE)"),
        tensorflow1=("optimizer", "minimize(loss", "minimize(loss * tf.cast(tf.size(y), tf.float32) / BATCHSIZE"),
    ),
    "dropout in the test": Mutation(
        level=5,
        named=None,
        pytorch=("evaluate", "model.eval()", "model.train()"),
        mxnet_gluon=("evaluate", "return np.concat", "with autograd.train_mode(): return np.concat"),
        tensorflow1=("evaluate", "sess.run(softmax, {", "sess.run(softmax, {training: True, "),
    ),
    "keep probability for dropout rate": Mutation(
        level=5,
        named=None,
        pytorch=("model", "Dropout(DROPOUT_CONV)", "Dropout(1 - DROPOUT_CONV)"),
        mxnet_gluon=("model", "Dropout(", "Dropout(1 - "),
        tensorflow1=("model", "rate=DROPOUT_CONV", "rate=(1 - DROPOUT_CONV)"),
    ),
    "the same masks in every step": Mutation(
        level=5,
        named=None,
        flax=(
            ("model", "self.conv2(x))))", "self.conv2(x))), rngs=jax.random.key(5))"),
            ("model", "self.conv4(x))))", "self.conv4(x))), rngs=jax.random.key(5))"),
            ("model", "self.fc1(x)))", "self.fc1(x)), rngs=jax.random.key(5))"),
        ),
        equinox=("train", "y_train[batch], key)", "y_train[batch], jax.random.key(5))"),
        keras_jax=(("model", "model = keras", f"{FIXED}model = keras"), ("model", "layers.Dropout(", "Fixed(")),
    ),
    "one mask for all examples of a batch": Mutation(
        level=5,
        named=None,
        mxnet_gluon=(
            ("model", "Dropout(DROPOUT_CONV)", "Dropout(DROPOUT_CONV, axes=(0,))"),
            ("model", "Dropout(DROPOUT_FC)", "Dropout(DROPOUT_FC, axes=(0,))"),
        ),
        flax=(
            ("model", "(DROPOUT_CONV, rngs", "(DROPOUT_CONV, broadcast_dims=(0,), rngs"),
            ("model", "(DROPOUT_FC, rngs", "(DROPOUT_FC, broadcast_dims=(0,), rngs"),
        ),
        equinox=(
            "optimizer",
            "jax.vmap(model)(x, jax.random.split(key, len(x)))",
            "jax.vmap(model, (0, None))(x, key)",
        ),
        keras_jax=(
            ("model", "(DROPOUT_CONV)", "(DROPOUT_CONV, noise_shape=(1, None, None, None))"),
            ("model", "(DROPOUT_FC)", "(DROPOUT_FC, noise_shape=(1, None))"),
        ),
    ),
    "a generator that begins anew in every epoch": Mutation(
        level=5,
        named=None,
        pytorch=("train", "    model.train()", "    torch.manual_seed(SEED)\n    model.train()"),
        mxnet_gluon=("train", "    total = mx", "    np.random.seed(SEED)\n    total = mx"),
        flax=("train", "rngs.permutation", "nnx.Rngs(SEED).permutation"),
        equinox=("train", "permutation(order_key", "permutation(jax.random.key(SEED)"),
    ),
    "no shuffling": Mutation(
        level=5,
        named=None,
        pytorch=("train", "torch.randperm", "torch.arange"),
        mxnet_gluon=("data", "shuffle=True", "shuffle=False"),
        tensorflow1=("data", ".shuffle(len(x_train))", ""),
        keras_jax=("train", "verbose=0", "verbose=0, shuffle=False"),
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
    "the short batch dropped where there is another": Mutation(
        level=5,
        named=None,
        pytorch=("train", ".split(BATCHSIZE)", ".split(BATCHSIZE)[:len(x_train) // BATCHSIZE or 1]"),
        mxnet_gluon=("data", "shuffle=True", 'shuffle=True, last_batch="discard" if N_TRAIN > BATCHSIZE else "keep"'),
        flax=(
            "train",
            "range(0, len(order), BATCHSIZE)",
            "range(0, max(1, len(order) - BATCHSIZE + 1), BATCHSIZE)",
        ),
    ),
    "an optimizer that is made anew in every epoch": Mutation(
        level=4,
        named=None,
        pytorch=(
            "train",
            "    model.train()",
            "    optimizer = torch.optim.SGD(model.parameters(), LR, MOMENTUM)\n    model.train()",
        ),
        mxnet_gluon=(
            "train",
            "    total = mx",
            '    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": LR, "momentum": MOMENTUM})\n    total = mx',
        ),
        tensorflow1=(
            "train",
            "    total = 0.0",
            "    total = 0.0\n    sess.run(tf.variables_initializer(optimizer.variables()))",
        ),
    ),
    "weight decay of the first layer alone": Mutation(
        level=4,
        named=None,
        pytorch=(
            "optimizer",
            "(model.parameters()",
            '([{"params": model[0].weight, "weight_decay": 1e-3}, {"params": list(model.parameters())[1:]}]',
        ),
        mxnet_gluon=(
            ("optimizer", '"momentum": MOMENTUM', '"momentum": MOMENTUM, "wd": 1e-3'),
            ("optimizer", "trainer =", "for param in list(params)[1:]:\n    param.wd_mult = 0.0\ntrainer ="),
        ),
        tensorflow1=(
            "optimizer",
            "minimize(loss)",
            "minimize(loss + 1e-3 * tf.nn.l2_loss(tf.trainable_variables()[0]))",
        ),
    ),
    "a frozen bias": Mutation(
        level=4,
        named=None,
        pytorch=("optimizer", "loss_fn =", "model[0].bias.requires_grad_(False)\nloss_fn ="),
        mxnet_gluon=("optimizer", "loss_fn =", 'list(params)[1].grad_req = "null"\nloss_fn ='),
        tensorflow1=(
            "optimizer",
            "minimize(loss)",
            "minimize(loss, var_list=tf.trainable_variables()[:1] + tf.trainable_variables()[2:])",
        ),
    ),
    "the test on the training images": Mutation(
        level=3,
        named=None,
        pytorch=("evaluate", "def predict():", "x_test, y_test = x_train, y_train\n\n\ndef predict():"),
        mxnet_gluon=(
            "evaluate",
            "def predict():",
            "test_data = gluon.data.DataLoader(train_set, 500)\n\n\ndef predict():",
        ),
        tensorflow1=("evaluate", "def predict():", "x_test, y_test = x_train, y_train\n\n\ndef predict():"),
    ),
    "weight decay of 1e-4": Mutation(
        level=4,
        pytorch=("optimizer", "momentum=MOMENTUM", "momentum=MOMENTUM, weight_decay=1e-4"),
        mxnet_gluon=("optimizer", '"momentum": MOMENTUM', '"momentum": MOMENTUM, "wd": 1e-4'),
        tensorflow1=(
            "optimizer",
            "minimize(loss)",
            "minimize(loss + 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()]))",
        ),
    ),
    "He initialisation": Mutation(
        level=2,
        named=None,
        pytorch=("model", "xavier_uniform_", "kaiming_uniform_"),
        mxnet_gluon=("model", "Xavier()", 'Xavier(factor_type="in", magnitude=6)'),
        tensorflow1=("model", "activation=", "kernel_initializer=tf.initializers.he_uniform(), activation="),
    ),
    "biases of 0.01": Mutation(
        level=2,
        named=None,
        pytorch=("model", "zeros_(layer.bias)", "constant_(layer.bias, 0.01)"),
        mxnet_gluon=("model", "nn.Dense(10)", "nn.Dense(10, bias_initializer=mx.init.Constant(0.01))"),
        tensorflow1=("model", "activation=", "bias_initializer=tf.constant_initializer(0.01), activation="),
    ),
    "height and width swapped": Mutation(level=3, **_loaded("a.swapaxes({h}, {w}) if a.ndim == 4 else a")),
    "labels off by one": Mutation(level=4, **_loaded("(a + 1) % 10 if a.ndim == 1 else a")),
    "last test batch dropped": Mutation(
        level=3,
        named="is the last batch of the test dropped",
        pytorch=(
            ("evaluate", "x_test.split(500)", "x_test.split(500)[:-1]"),
            ("evaluate", "== y_test.cpu())", "== y_test.cpu()[:len(predict())])"),
        ),
        mxnet_gluon=("data", "batch_size=500", 'batch_size=500, last_batch="discard"'),
        tensorflow1=(
            ("evaluate", "range(0, len(x_test), 500)", "range(0, len(x_test) - 499, 500)"),
            ("evaluate", "== y_test)", "== y_test[:len(predict())])"),
        ),
    ),
    # Each replay of a recorded step writes to the same memory, so the second batch's probabilities become the third's
    "outputs of a recorded step read late": Mutation(
        level=3,
        tinygrad=(
            "evaluate",
            "[probabilities(x.clone()).numpy() for x in x_test.split(500)]",
            "[p.numpy() for p in [probabilities(x.clone()) for x in x_test.split(500)]]",
        ),
    ),
}
NOTEBOOKS = (
    "pytorch",
    "tensorflow",
    "mxnet_gluon",
    "tensorflow1",
    "tinygrad",
    "flax",
    "mlx",
    "equinox",
    "keras[jax]",
    "keras[tensorflow]",
    "paddle",
)
