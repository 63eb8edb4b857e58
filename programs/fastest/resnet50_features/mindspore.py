"""MindSpore: the network as one compiled function, called with tensors; no Model, no data set."""

# %% predict
network.set_train(False)


@ms.jit
def forward(batch):
    return network(batch)


def extract(batch):
    return forward(ms.Tensor(batch)).asnumpy()


def predict():
    starts = range(0, len(x), BATCHSIZE)
    return np.concatenate([extract(x[start : start + BATCHSIZE]) for start in starts])


log = PassLog()
for _ in range(2):
    log.done(predict())
log.latency(lambda: extract(x[:1]))
