"""MXNet Gluon: network and loss are hybridized as one graph."""

# %% after weights
network_alone = model


class WithLoss(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.net, self.loss_fn = network_alone, gluon.loss.SoftmaxCrossEntropyLoss()

    def hybrid_forward(self, F, x, y):
        return self.loss_fn(self.net(x), y).mean()


# %% step
losses = WithLoss()
losses.hybridize(static_alloc=True, static_shape=True)
trainer = gluon.Trainer(model.collect_params(), "sgd", {"learning_rate": LR, "momentum": MOMENTUM})
log = StepLog(REPEATS)
for steps in [WARMUP] + [STEPS] * REPEATS:
    for x, y in log.take(batches, steps):
        with autograd.record():
            result = losses(x, y)
        result.backward()
        if NETWORK == "lstm":
            gluon.utils.clip_global_norm([p.grad() for p in params], CLIP, check_isfinite=False)
        trainer.step(1)
    mx.nd.waitall()
    log.done(steps, result.asnumpy())
