"""MXNet Gluon: reviews and labels on the device, each batch taken there by its indices; network and loss hybridized as one graph."""

# %% after data
reviews, labels = mx.nd.array(x_train, ctx=device), mx.nd.array(y_train, ctx=device)


# %% after optimizer
class WithLoss(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.net, self.loss_fn = model, loss_fn

    def hybrid_forward(self, F, x, y):
        return self.loss_fn(self.net(x), y)


losses = WithLoss()
losses.hybridize(static_alloc=True, static_shape=True)

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = mx.nd.zeros(1, ctx=device)
    order = mx.nd.array(np.random.permutation(len(reviews)), ctx=device, dtype="int32")
    for start in range(0, len(reviews), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        with autograd.record():
            loss = losses(reviews.take(batch), labels.take(batch))
        loss.backward()
        trainer.step(len(batch))
        total += loss.sum()
    log.epoch(total.asscalar() / len(reviews), evaluate)
