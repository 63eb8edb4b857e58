"""PaddlePaddle: the data on the device and a plain loop without a loader and without the metric of every batch."""

# %% after data
inputs, labels = paddle.to_tensor(x_train), paddle.to_tensor(y_train)

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    network.train()
    order = paddle.randperm(len(inputs))
    total = paddle.zeros([])
    for start in range(0, len(inputs), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        loss = loss_fn(network(inputs[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        total += loss.detach() * len(batch)
    log.epoch(total.item() / len(inputs), evaluate)
