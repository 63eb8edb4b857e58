"""CNTK as it was usual in 2018: one-hot labels, the whole set shuffled by fancy indexing before every epoch, arrays handed to
train_minibatch; rates and momenta are schedules."""

# %% data
x_train, y_train, x_test, y_test = cifar10.load("NCHW", DATA_DIR, N_TRAIN, N_TEST, one_hot=True, synthetic=SYNTHETIC)


def minibatches(x, y):
    order = np.arange(len(x))
    np.random.shuffle(order)
    x, y = x[order], y[order]
    for start in range(0, len(x), BATCHSIZE):
        yield x[start : start + BATCHSIZE], y[start : start + BATCHSIZE]


# %% optimizer
loss = C.cross_entropy_with_softmax(z, y)
error = C.classification_error(z, y)
learner = C.momentum_sgd(
    z.parameters,
    lr=C.learning_rate_schedule(LR, C.UnitType.minibatch),
    momentum=C.momentum_schedule(MOMENTUM),
    unit_gain=False,
)
trainer = C.Trainer(z, (loss, error), [learner])

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = 0.0
    for data, label in minibatches(x_train, y_train):
        trainer.train_minibatch({x: data, y: label})
        total += trainer.previous_minibatch_loss_average * len(data)
    log.epoch(total / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
