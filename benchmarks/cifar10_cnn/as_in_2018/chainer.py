"""Chainer as it was usual in 2018: the whole set is shuffled in NumPy by fancy indexing before every epoch, each batch is sent to the
device and made a Variable, a manual loop calls loss, backward and update, and the loss is read after every step."""

# %% data
from chainer import Variable

x_train, y_train, x_test, y_test = cifar10.load("NCHW", DATA_DIR, N_TRAIN, N_TEST, synthetic=SYNTHETIC)
y_train = y_train.astype(np.int32)


def minibatches(x, y):
    order = np.arange(len(x))
    np.random.shuffle(order)
    x, y = x[order], y[order]
    for start in range(0, len(x), BATCHSIZE):
        yield x[start : start + BATCHSIZE], y[start : start + BATCHSIZE]


# %% optimizer
optimizer = chainer.optimizers.MomentumSGD(lr=LR, momentum=MOMENTUM)
optimizer.setup(net)

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = 0.0
    for data, target in minibatches(x_train, y_train):
        data, target = Variable(device.send(data)), Variable(device.send(target))
        loss = F.softmax_cross_entropy(net(data), target)
        net.cleargrads()
        loss.backward()
        optimizer.update()
        total += float(loss.array) * len(data)
    log.epoch(total / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
