"""Caffe2 as it was usual in 2018: the whole set is shuffled by fancy indexing before every epoch, each batch is fed to
two blobs, the net runs once and the loss is fetched."""


# %% after data
def minibatches(x, y):
    order = np.arange(len(x))
    np.random.shuffle(order)
    x, y = x[order], y[order]
    for start in range(0, len(x), BATCHSIZE):
        yield x[start : start + BATCHSIZE], y[start : start + BATCHSIZE]


# %% train
workspace.RunOperatorsOnce(train_model.param_init_net.Proto().op[n_weight_ops:])
workspace.CreateNet(train_model.net)

log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = 0.0
    for data, target in minibatches(x_train, y_train):
        workspace.FeedBlob("data", data, device_option=device)
        workspace.FeedBlob("label", target, device_option=device)
        workspace.RunNet(train_model.net)
        total += float(workspace.FetchBlob("loss")) * len(data)
    log.epoch(total / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
