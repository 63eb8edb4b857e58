"""PyTorch as it was usual in 2018: arrays stay in NumPy, the whole set is shuffled by fancy indexing before every epoch, each batch is
made a tensor and then a Variable, and the loss is read after every step."""

# %% data
import numpy as np
from torch.autograd import Variable

x_train, y_train, x_test, y_test = cifar10.load("NCHW", DATA_DIR, N_TRAIN, N_TEST, synthetic=SYNTHETIC)
x_test, y_test = torch.from_numpy(x_test).to(device), torch.from_numpy(y_test).to(device)


def minibatches(x, y):
    order = np.arange(len(x))
    np.random.shuffle(order)
    x, y = x[order], y[order]
    for start in range(0, len(x), BATCHSIZE):
        yield x[start : start + BATCHSIZE], y[start : start + BATCHSIZE]


# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    model.train()
    total = 0.0
    for data, target in minibatches(x_train, y_train):
        data, target = Variable(torch.FloatTensor(data).to(device)), Variable(torch.LongTensor(target).to(device))
        optimizer.zero_grad()
        loss = loss_fn(model(data), target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(data)
    log.epoch(total / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
