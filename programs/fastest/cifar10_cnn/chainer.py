"""Chainer: the training images stay on the device, and a plain loop has neither converter nor reports nor the accuracy of each batch."""

# %% after data
x_train, y_train = device.send((x_train, y_train))

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    order = device.xp.random.permutation(len(x_train))
    total = 0.0
    for start in range(0, len(x_train), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        loss = F.softmax_cross_entropy(net(x_train[batch]), y_train[batch])
        model.cleargrads()
        loss.backward()
        optimizer.update()
        total += loss.array * len(batch)  # stays on the device
    log.epoch(total / len(x_train), evaluate)
