"""MindSpore: the compiled training step itself, on batches that NumPy cuts out: no data pipeline, no callbacks. It is no faster than the
notebook's Model.train on a CPU, where the convolutions are nearly all of the time."""

# %% train
labels = y_train.astype("int32")
step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.CrossEntropyLoss()), optimizer)

log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    step.set_train()
    order = np.random.permutation(len(x_train))
    total = 0.0
    for start in range(0, len(order), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        loss = step(ms.Tensor(x_train[batch]), ms.Tensor(labels[batch]))
        total += float(loss) * len(batch)
    log.epoch(total / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
