"""Mistakes to plant in notebooks of networks, as ``mutations`` has them for cifar10_cnn, each with a network that shows it."""

from tests.verify.mutations import Mutation

MUTATIONS = {
    "zeros of the padding that are averaged, too": Mutation(
        level=3,
        network="inception_v3",
        pytorch=("model", "count_include_pad=False", "count_include_pad=True"),
        mxnet_gluon=("model", "count_include_pad=False", "count_include_pad=True"),
    ),
    "a pooling that leaves out the last pixels": Mutation(
        level=3,
        network="googlenet",
        pytorch=("model", "ceil_mode=layer.ceil", "ceil_mode=False"),
        mxnet_gluon=("model", "ceil_mode=layer.ceil", "ceil_mode=False"),
    ),
    "an epsilon of 0.001 in batch norm": Mutation(
        level=3,
        network="resnet56",
        pytorch=("model", "eps=layer.epsilon", "eps=1e-3"),
        mxnet_gluon=("model", "epsilon=layer.epsilon", "epsilon=1e-3"),
        tensorflow1=("model", "epsilon=layer.epsilon", "epsilon=1e-3"),
    ),
    "another alpha of local response normalisation": Mutation(
        level=3,
        network="alexnet_r",
        pytorch=("model", "layer.alpha,", "layer.alpha * layer.size,"),
        mxnet_gluon=("model", "alpha=layer.alpha", "alpha=layer.alpha * layer.size"),
        tensorflow1=("model", "layer.alpha / layer.size", "layer.alpha"),
    ),
    "padding as TensorFlow's SAME where a stride is 2": Mutation(
        level=3,
        network="resnet56",
        tensorflow1=("model", "if layer.stride == 1 and layer.out_shape[1:] == layer.in_shape[1:]:", "if True:"),
    ),
    "a forget gate that begins at 1": Mutation(
        level=3,
        network="lstm",
        tensorflow1=("model", "forget_bias=0.0", "forget_bias=1.0"),
    ),
    "batch norm by the statistics of the batch": Mutation(
        level=3,
        network="resnet56",
        pytorch=("step", 'model.train(PHASE != "forward")', "model.train()"),
        mxnet_gluon=("step", "    return model(x)\n", "    with autograd.train_mode():\n        return model(x)\n"),
        tensorflow1=("model", 'training=PHASE != "forward"', "training=True"),
    ),
    "batch norm by its running statistics in training": Mutation(
        level=4,
        network="resnet56",
        pytorch=("step", 'model.train(PHASE != "forward")', "model.eval()"),
        mxnet_gluon=("step", "autograd.record()", "autograd.record(train_mode=False)"),
        tensorflow1=("model", 'training=PHASE != "forward"', "training=False"),
    ),
    "gradients that add up": Mutation(
        level=4,
        network="fcn_r",
        pytorch=("step", "optimizer.zero_grad()", "pass"),
        mxnet_gluon=("step", "loss_fn =", 'model.collect_params().setattr("grad_req", "add")\nloss_fn ='),
    ),
    "a summed loss": Mutation(
        level=4,
        network="fcn_r",
        pytorch=("step", "CrossEntropyLoss()", 'CrossEntropyLoss(reduction="sum")'),
        mxnet_gluon=("step", ".mean()", ".sum()"),
        tensorflow1=("step", "(y, logits)", "(y, logits, reduction=tf.losses.Reduction.SUM)"),
    ),
    "no momentum": Mutation(
        level=4,
        network="fcn_r",
        pytorch=("step", "momentum=MOMENTUM", "momentum=0"),
        mxnet_gluon=("step", '"momentum": MOMENTUM', '"momentum": 0.0'),
        tensorflow1=("step", "(LR, MOMENTUM)", "(LR, 0.0)"),
    ),
    "gradients that are not clipped": Mutation(
        level=4,
        network="lstm",
        pytorch=("step", 'NETWORK == "lstm"', "False"),
        mxnet_gluon=("step", 'NETWORK == "lstm"', "False"),
        tensorflow1=("step", 'NETWORK == "lstm"', "False"),
    ),
    "gradients that are clipped one by one": Mutation(
        level=4,
        network="lstm",
        pytorch=(
            "step",
            "        nn.utils.clip_grad_norm_(model.parameters(), CLIP)",
            "        for parameter in model.parameters():\n            nn.utils.clip_grad_norm_(parameter, CLIP)",
        ),
        mxnet_gluon=(
            "step",
            "        gluon.utils.clip_global_norm([p.grad() for p in params], CLIP, check_isfinite=False)",
            "        for p in params:\n            gluon.utils.clip_global_norm([p.grad()], CLIP, check_isfinite=False)",
        ),
        tensorflow1=(
            "step",
            "gradients, _ = tf.clip_by_global_norm(gradients, CLIP)",
            "gradients = [tf.clip_by_norm(gradient, CLIP) for gradient in gradients]",
        ),
    ),
}
