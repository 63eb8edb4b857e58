"""PaddlePaddle: the phases of a training step."""


# %% after optimizer
def place(n):
    return paddle.to_tensor(x_train[:n]), paddle.to_tensor(y_train[:n])


def forward(x, y):
    return loss_fn(network(x), y)


def backward(x, y):
    optimizer.clear_grad()
    loss = forward(x, y)
    loss.backward()
    return loss


def step(x, y):
    loss = backward(x, y)
    optimizer.step()
    return loss


def value(loss):
    return loss.item()


network.train()
