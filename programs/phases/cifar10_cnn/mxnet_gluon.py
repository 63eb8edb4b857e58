"""MXNet Gluon: the phases of a training step."""


# %% after optimizer
def place(n):
    return mx.nd.array(x_train[:n], ctx=device), mx.nd.array(y_train[:n], ctx=device)


def losses(x, y):
    with autograd.record():  # dropout on
        return loss_fn(net(x), y)


def forward(x, y):
    return losses(x, y).mean()


def backward(x, y):
    loss = losses(x, y)
    loss.backward()
    return loss.mean()


def step(x, y):
    loss = backward(x, y)
    trainer.step(len(x))
    return loss


def value(loss):
    mx.nd.waitall()  # the update of the weights is asynchronous too
    return loss.asscalar().item()
