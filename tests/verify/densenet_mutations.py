"""Mistakes to plant in notebooks of densenet_parallel, as ``mutations`` has them for cifar10_cnn. A framework may have no way to make one."""

from tests.verify.mutations import Mutation

STEPS = "len(x_train) // (DEVICES * BATCHSIZE)"
PARTS = "order.view(steps, DEVICES, BATCHSIZE)[:, rank]"
SPLIT = "gluon.utils.split_and_load(array, devices)"


def _behind(role: str, line: str, more: str) -> tuple:
    return role, line, f"{line}\n{more}"


DIVIDED = "BATCHSIZE //= DEVICES"

MUTATIONS = {
    "gradients that are summed over devices": Mutation(
        level=4,
        pytorch=(
            "train",
            "optimizer.step()",
            "[p.grad.mul_(DEVICES) for p in model.parameters()]\n            optimizer.step()",
        ),
        mxnet_gluon=("train", "trainer.step(DEVICES * BATCHSIZE)", "trainer.step(BATCHSIZE)"),
        tensorflow1=("optimizer", "(tf.add_n(gradients) / DEVICES,", "(tf.add_n(gradients),"),
        flax=(
            "train",
            "optimizer.update(model, grads)",
            "optimizer.update(model, jax.tree.map(lambda g: DEVICES * g, grads))",
        ),
    ),
    "devices that do not exchange gradients": Mutation(
        level=4,
        pytorch=(
            "train",
            "logits = parallel(",
            "parallel.require_backward_grad_sync = False\n            logits = parallel(",
        ),
        mxnet_gluon=(
            ("optimizer", '"adam", adam)', '"adam", adam, kvstore=None)'),
            ("train", "trainer.step(DEVICES * BATCHSIZE)", "trainer.step(BATCHSIZE)"),
        ),
        paddle=("train", "logits = parallel(", "logits = model("),
    ),
    "the gradients of the first device alone": Mutation(
        level=4, named=None, tensorflow1=("optimizer", "(tf.add_n(gradients) / DEVICES,", "(gradients[0],")
    ),
    "the same images on every device": Mutation(
        level=4,
        pytorch=("train", "[:, rank]", "[:, 0]"),
        mxnet_gluon=("train", SPLIT, "[array[:BATCHSIZE].as_in_context(device) for device in devices]"),
        flax=("train", "batch = order[start:start + size]", "batch = np.tile(order[start:start + BATCHSIZE], DEVICES)"),
    ),
    "images that are dealt out like cards": Mutation(
        level=4,
        pytorch=("train", PARTS, "order.view(steps, BATCHSIZE, DEVICES)[:, :, rank]"),
        mxnet_gluon=("train", SPLIT, "[array[i::DEVICES].as_in_context(device) for i, device in enumerate(devices)]"),
        tensorflow1=(
            ("optimizer", "tf.split(x, DEVICES)", "[x[i::DEVICES] for i in range(DEVICES)]"),
            ("optimizer", "tf.split(y, DEVICES)", "[y[i::DEVICES] for i in range(DEVICES)]"),
        ),
    ),
    "batch norm over the images of all devices": Mutation(
        level=4,
        tensorflow=("model", "BatchNormalization(", "BatchNormalization(synchronized=True, "),
        keras_tensorflow=("model", "momentum=0.9, epsilon=1e-5", "momentum=0.9, epsilon=1e-5, synchronized=True"),
    ),
    "the last device's statistics kept": Mutation(
        level=4,
        pytorch=(
            ("train", "device_ids=[rank] if on_gpu else None)", "broadcast_buffers=False)"),
            ("train", "if rank == 0:\n        torch.save", "if rank == DEVICES - 1:\n        torch.save"),
        ),
        tensorflow1=("optimizer", 'scope="tower_0/"', 'scope="tower_1/"'),
    ),
    "the statistics of another device, exported": Mutation(
        level=4, named=None, mxnet_gluon=("weights", "param.data(devices[0])", "param.data(devices[-1])")
    ),
    "BATCHSIZE as that of all devices": Mutation(
        level=4,
        pytorch=_behind("setup", "torch.manual_seed(SEED)", DIVIDED),
        mxnet_gluon=_behind("setup", "np.random.seed(SEED)", DIVIDED),
        flax=_behind("setup", "rngs = nnx.Rngs(SEED)", DIVIDED),
    ),
    "what is left over at the end of an epoch": Mutation(
        level=4,
        pytorch=(
            ("train", STEPS, f"-(-{STEPS})"),
            ("train", "        order = order[:steps * DEVICES * BATCHSIZE]\n", ""),
            ("train", PARTS, "[part.tensor_split(DEVICES)[rank] for part in order.split(DEVICES * BATCHSIZE)]"),
        ),
    ),
    "a short batch that counts as a whole one": Mutation(
        level=4,
        named=None,
        mxnet_gluon=(
            ("data", 'last_batch="discard"', 'last_batch="keep"'),
            ("train", SPLIT, "gluon.utils.split_and_load(array, devices, even_split=False)"),
        ),
        tensorflow=("data", "drop_remainder=True", "drop_remainder=False"),
    ),
    "a learning rate that is multiplied by the number of devices": Mutation(
        level=4,
        pytorch=("optimizer", "lr=LR * LR_SCALE", "lr=LR * DEVICES"),
        tensorflow1=("optimizer", "LR * LR_SCALE", "LR * DEVICES"),
        flax=("optimizer", "LR * LR_SCALE", "LR * DEVICES"),
    ),
    "no shuffling": Mutation(
        level=5,
        named=None,
        pytorch=("train", "torch.randperm(n, generator=generator) if SHUFFLE else ", ""),
        mxnet_gluon=("data", "shuffle=SHUFFLE", "shuffle=False"),
        tensorflow1=("data", "if SHUFFLE:", "if False:"),
    ),
    "an order of its own on each device": Mutation(
        level=5, named=None, pytorch=("train", ".manual_seed(SEED)", ".manual_seed(SEED + rank)")
    ),
    "a generator that begins anew in every epoch": Mutation(
        level=5,
        named=None,
        pytorch=("train", "        model.train()", "        model.train()\n        generator.manual_seed(SEED)"),
        flax=("train", "rngs.permutation", "nnx.Rngs(SEED).permutation"),
    ),
}
