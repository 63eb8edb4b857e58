"""MXNet Module: reviews and labels on the device, each batch taken there by its indices; no metric that waits for every batch."""

# %% after data
reviews_there, labels_there = mx.nd.array(x_train, ctx=device), mx.nd.array(y_train, ctx=device)

# %% after optimizer
model.bind(train_data.provide_data, train_data.provide_label)
model.init_params(mx.init.Xavier(), arg_params=arg_params, allow_missing=True)
model.init_optimizer(optimizer="adam", optimizer_params=optimizer_params)

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = mx.nd.zeros(1, ctx=device)
    order = mx.nd.array(np.random.permutation(len(x_train)), ctx=device, dtype="int32")
    for start in range(0, len(x_train), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        x, y = reviews_there.take(batch), labels_there.take(batch)
        model.forward_backward(mx.io.DataBatch([x], [y]))  # bound anew for a short last batch
        model.update()
        (probabilities,) = model.get_outputs()
        total -= mx.nd.log(mx.nd.pick(probabilities, y)).sum()
    log.epoch(total.asscalar() / len(x_train), evaluate)
