"""Chainer: the phases of a training step."""


# %% after optimizer
def place(n):
    return device.send(x_train[:n]), device.send(y_train[:n])


def forward(x, y):
    return model(x, y)


def backward(x, y):
    loss = forward(x, y)
    model.cleargrads()
    loss.backward()
    return loss


def step(x, y):
    loss = backward(x, y)
    optimizer.update()
    return loss


def value(loss):
    return float(cuda.to_cpu(loss.array))  # waits for all that was asked of a GPU before
