"""MXNet Gluon as it was usual in 2018: arrays stay in NumPy, the whole set is shuffled by fancy indexing before every epoch, each batch
is made an NDArray, and the network is hybridized without static memory."""

# %% data
x_train, y_train, x_test, y_test = cifar10.load("NCHW", DATA_DIR, N_TRAIN, N_TEST, synthetic=SYNTHETIC)
test_data = gluon.data.DataLoader(gluon.data.ArrayDataset(x_test, y_test), batch_size=500)


def minibatches(x, y):
    order = np.arange(len(x))
    np.random.shuffle(order)
    x, y = x[order], y[order]
    for start in range(0, len(x), BATCHSIZE):
        yield x[start : start + BATCHSIZE], y[start : start + BATCHSIZE]


# %% after model
net.hybridize()

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = mx.nd.zeros(1, ctx=device)
    for data, target in minibatches(x_train, y_train):
        data, target = mx.nd.array(data, ctx=device), mx.nd.array(target, ctx=device)
        with autograd.record():
            loss = loss_fn(net(data), target)
        loss.backward()
        trainer.step(len(data))
        total += mx.nd.sum(loss)
    log.epoch(total.asscalar() / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
