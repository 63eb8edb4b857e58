"""Lasagne as it was usual in 2018: a Python generator shuffles the whole set by fancy indexing before every epoch, and
the compiled function takes each batch as NumPy arrays, labels of 32 bits."""

# %% after data
y_train, y_test = y_train.astype(np.int32), y_test.astype(np.int32)


def minibatches(x, y):
    order = np.arange(len(x))
    np.random.shuffle(order)
    x, y = x[order], y[order]
    for start in range(0, len(x), BATCHSIZE):
        yield x[start : start + BATCHSIZE], y[start : start + BATCHSIZE]


# %% optimizer
labels = T.ivector("labels")
prediction = lasagne.layers.get_output(net, images, deterministic=False)
loss = lasagne.objectives.categorical_crossentropy(prediction, labels)
loss = loss.mean()
params = lasagne.layers.get_all_params(net, trainable=True)
updates = lasagne.updates.momentum(loss, params, learning_rate=LR, momentum=MOMENTUM)
train_step = theano.function([images, labels], loss, updates=updates)

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = 0.0
    for data, target in minibatches(x_train, y_train):
        total += train_step(data, target) * len(data)
    log.epoch(total / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
