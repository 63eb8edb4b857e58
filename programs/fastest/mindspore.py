"""MindSpore: the compiled training step itself, on batches that NumPy cuts out: no data pipeline, no callbacks. On a CPU it is no
faster than the notebook's Model.train: the network is nearly all of the time."""

# %% train
import numpy as np

train_step = nn.TrainOneStepCell(nn.WithLossCell(network, loss_fn), optimizer)

log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    train_step.set_train()
    order = np.random.permutation(len(x_train))
    total = 0.0
    for start in range(0, len(order), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        loss = train_step(ms.Tensor(x_train[batch]), ms.Tensor(y_train[batch]))
        total += loss.item() * len(batch)
    log.epoch(total / len(x_train), evaluate)
