"""MXNet Module: images and labels on the device, each batch taken there by its indices; no metric that waits for every batch."""

# %% after data
images, labels = mx.nd.array(x_train, ctx=device), mx.nd.array(y_train, ctx=device)

# %% after optimizer
module.bind(train_data.provide_data, train_data.provide_label)
module.init_params(arg_params=weights)
module.init_optimizer(optimizer="sgd", optimizer_params=sgd)

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = mx.nd.zeros(1, ctx=device)
    order = mx.nd.array(np.random.permutation(len(images)), ctx=device, dtype="int32")
    for start in range(0, len(images), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        x, y = images.take(batch), labels.take(batch)
        module.forward_backward(mx.io.DataBatch([x], [y]))  # bound anew for a short last batch
        module.update()
        (probabilities,) = module.get_outputs()
        total -= mx.nd.log(mx.nd.pick(probabilities, y)).sum()
    log.epoch(total.asscalar() / len(images))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
