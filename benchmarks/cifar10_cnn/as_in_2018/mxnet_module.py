"""MXNet Module as it was usual in 2018: the whole set is shuffled in NumPy by fancy indexing before every epoch, an NDArrayIter over it
makes the batches, and a loop of forward, update_metric, backward and update trains the module."""

# %% after data
order = np.arange(len(x_train))

# %% train
module.bind(data_shapes=train_data.provide_data, label_shapes=train_data.provide_label)
module.init_params(arg_params=weights)
module.init_optimizer(optimizer="sgd", optimizer_params=sgd)
metric = mx.metric.create("ce")
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    np.random.shuffle(order)
    metric.reset()
    for batch in ExactIter(x_train[order], y_train[order], BATCHSIZE):
        module.forward(batch, is_train=True)
        module.update_metric(metric, batch.label)
        module.backward()
        module.update()
    log.epoch(metric.get()[1])
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
